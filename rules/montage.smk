# Montage mosaics (workflows/montage), one cell per job.


rule montage:
    input:
        campaign.prepared("montage"),
    output:
        record=campaign.record("montage"),
    log:
        "results/{cell}/run.log",
    retries: 0
    conda:
        "../envs/montage/conda.yaml"
    envmodules:
        *campaign.modules("montage"),
    resources:
        **campaign.resources,
    params:
        run=campaign.run,
        conditions=campaign.conditions,
    shell:
        "burstlab run {params.run} --check workflows/montage/check"
        " -- workflows/montage/run > {log} 2>&1"
