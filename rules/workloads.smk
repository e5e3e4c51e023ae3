# One cell, one job: each program workflows/NAME/run, judged by workflows/NAME/check where there is
# one. A workload that wants more has a rule NAME of its own beside this one.


for name in campaign.workloads([rule.name for rule in workflow.rules]):

    rule:
        name:
            name
        input:
            campaign.prepared(name),
        output:
            record=campaign.record(name),
        log:
            "results/{cell}/run.log",
        retries: 0
        conda:
            f"../envs/{campaign.environment(name)}/conda.yaml"
        envmodules:
            *campaign.modules(name),
        resources:
            **campaign.resources,
        params:
            run=campaign.run,
            program=campaign.program,
            conditions=campaign.conditions,
        shell:
            "burstlab run {params.run} {params.program} > {log} 2>&1"
