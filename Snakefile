# Storages x staging x workloads x nodes x repeats: each point is one job, `burstlab run`.
# Targets: `demo`, every experiment of config/experiments/ by name, `report`.
import gc
from pathlib import Path

from snakemake.utils import min_version

from burstlab.config.campaign import Campaign, in_one_line
from burstlab.scheduler.driver import cancel_when_interrupted, drive_alone

min_version("9.27")

# A DAG is all live objects: scanning them over and over took a fifth of a large dry run.
gc.set_threshold(100_000)

campaign = in_one_line(Campaign, Path(workflow.basedir), config)


for path in sorted(Path(workflow.basedir).glob("rules/*.smk")):
    if path.stem != "workloads":

        include: path


include: "rules/workloads.smk"  # for those that have no rule yet


rule demo:
    default_target: True
    input:
        campaign.demo(),
    localrule: True


in_one_line(campaign.check_targets, [rule.name for rule in workflow.rules])

for name in campaign.experiments:

    rule:
        name:
            name
        input:
            lambda wildcards, name=name: in_one_line(campaign.targets, name),
        localrule: True


onstart:
    in_one_line(drive_alone)
    if not workflow.local_exec:
        cancel_when_interrupted()
    in_one_line(campaign.check_start, local=workflow.local_exec)


onerror:
    in_one_line(campaign.tell_failures)
