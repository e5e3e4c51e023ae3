# As rules/workloads.smk has it, but for the environment: Chainer's is called after Chainer.
rule chainermn:
    input:
        campaign.prepared("chainer"),
    output:
        record=campaign.record("chainermn"),
    log:
        "results/{cell}/run.log",
    retries: 0
    conda:
        "../envs/chainer/conda.yaml"
    envmodules:
        *campaign.modules("chainer"),
    resources:
        **campaign.resources,
    params:
        run=campaign.run,
        program=campaign.program,
        conditions=campaign.conditions,
    shell:
        "burstlab run {params.run} {params.program} > {log} 2>&1"
