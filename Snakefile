# Storages x staging x workloads x nodes x repeats: each point is one job, `burstlab run`.
# Targets: `demo`, every experiment of config/experiments/ by name, `report`.
import gc
import sys
from pathlib import Path

from snakemake.utils import min_version

from burstlab.config.campaign import Campaign
from burstlab.errors import BurstlabError

min_version("9.27")

# A DAG is all live objects: scanning them over and over took a fifth of a large dry run.
gc.set_threshold(100_000)

try:
    campaign = Campaign(Path(workflow.basedir), config)
except BurstlabError as error:
    sys.exit(f"burstlab: {error}")


for path in sorted(Path(workflow.basedir).glob("rules/*.smk")):

    include: path


rule demo:
    default_target: True
    input:
        campaign.demo(),
    localrule: True


for name in campaign.experiments:

    rule:
        name:
            name
        input:
            lambda wildcards, experiment=name: campaign.targets(experiment),
        localrule: True


onstart:
    if problem := campaign.refuse_to_start(local=workflow.local_exec):
        sys.exit(f"burstlab: {problem}")
