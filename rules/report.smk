# Snakemake's own report of the demo. It needs the finished run, so a second, read-only Snakemake
# writes it; as a job it is made again exactly when a figure is newer.


report: "../report/workflow.rst"


DEMO = [name for name, one in campaign.experiments.items() if one.part_of_demo]


rule report:
    input:
        figures=[path for name in DEMO for path in campaign.figures(name, "demo")],
        summaries=expand(
            "results/figures/{experiment}/demo/summary.rst", experiment=DEMO
        ),
    output:
        "results/report.html",
    log:
        "results/logs/report.log",
    localrule: True
    conda:
        "../envs/analysis/conda.yaml"
    params:
        snakefile=workflow.main_snakefile,
        texts=digest("report/*.rst", "rules/figures.smk", "rules/report.smk"),
        config=[f"{key}={value}" for key, value in config.items()],
    shell:
        "PYTHONPATH=src snakemake --snakefile {params.snakefile:q} --config {params.config:q}"
        " --report {output} {input} > {log} 2>&1"
