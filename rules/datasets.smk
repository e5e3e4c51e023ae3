# Data sets of config/datasets.yaml, each known by its manifest.


rule dataset:
    output:
        manifest="results/datasets/{dataset}/manifest.json",
    log:
        "results/datasets/{dataset}/make.log",
    localrule: True
    conda:
        "../envs/montage/conda.yaml"
    envmodules:
        *campaign.modules("montage"),
    params:
        definition=campaign.definition,
    shell:
        "burstlab dataset make {wildcards.dataset} --output {output.manifest} > {log} 2>&1"
