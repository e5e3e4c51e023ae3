# What each storage of a site can do, before anything is measured on it (workflows/probe).


rule probe:
    input:
        campaign.prepared("probe"),
    output:
        record=campaign.record("probe"),
    log:
        "results/{cell}/run.log",
    retries: 0
    conda:
        "../envs/probe/conda.yaml"
    envmodules:
        *campaign.modules("probe"),
    resources:
        **campaign.resources,
    params:
        run=campaign.run,
        conditions=campaign.conditions,
    shell:
        "burstlab run {params.run} -- workflows/probe/run > {log} 2>&1"
