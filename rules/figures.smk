# Records into tables, tables into figures. Every output says what it is in the report.
from analysis.sources import digest, short_title

FIGURES = "results/figures/{experiment}/{scale}"


wildcard_constraints:
    experiment="[^/]+",
    scale="[^/]+",


ANALYSIS = digest("analysis/*.py", "analysis/reference/*.csv")


# One job reads the records: ten figures of ten thousand cells each would make a huge graph.
rule tables:
    input:
        records=lambda wildcards: campaign.records(
            wildcards.experiment, wildcards.scale
        ),
    output:
        tables=directory("results/tables/{experiment}/{scale}"),
    log:
        "results/logs/tables/{experiment}-{scale}.log",
    localrule: True
    conda:
        "../envs/analysis/conda.yaml"
    params:
        cells=campaign.cells,
        code=ANALYSIS,
    shell:
        "PYTHONPATH=src python -m analysis tables --experiment {wildcards.experiment}"
        " --scale {wildcards.scale} --output {output.tables} > {log} 2>&1"


rule phases:
    input:
        tables=rules.tables.output.tables,
    output:
        summary=report(
            f"{FIGURES}/summary.rst",
            caption="../report/summary.rst",
            category="What was measured",
            labels={
                "shows": "conditions",
                "experiment": "{experiment}",
                "scale": "{scale}",
            },
        ),
        page=report(
            f"{FIGURES}/phases.html",
            caption="../report/phases.rst",
            category="What was measured",
            labels={
                "shows": "phases of a cell",
                "experiment": "{experiment}",
                "scale": "{scale}",
            },
        ),
        data=f"{FIGURES}/phases.csv",
    log:
        "results/logs/phases/{experiment}-{scale}.log",
    localrule: True
    conda:
        "../envs/analysis/conda.yaml"
    params:
        directory=subpath(output.page, parent=True),
        code=ANALYSIS,
    shell:
        "PYTHONPATH=src python -m analysis tell --tables {input.tables}"
        " --output {params.directory} > {log} 2>&1"


for figure in sorted(
    {name for one in campaign.experiments.values() for name in one.figures}
):
    paper, number = figure.split("-", 1)
    labels = {
        "figure": number,
        "shows": short_title(figure),
        "experiment": "{experiment}, {scale} scale",
    }

    rule:
        name:
            f"figure_{paper}_{number}"
        input:
            tables=rules.tables.output.tables,
        output:
            svg=report(
                f"{FIGURES}/{figure}.svg",
                caption=f"../report/{figure}.rst",
                category=paper.capitalize(),
                labels={**labels, "as": "drawing"},
            ),
            csv=report(
                f"{FIGURES}/{figure}.csv",
                caption=f"../report/{figure}.rst",
                category=paper.capitalize(),
                labels={**labels, "as": "numbers"},
            ),
            png=f"{FIGURES}/{figure}.png",
        log:
            f"results/logs/{figure}/{{experiment}}-{{scale}}.log",
        localrule: True
        conda:
            "../envs/analysis/conda.yaml"
        params:
            figure=f"{paper} {number}",
            code=ANALYSIS,
            stem=subpath(output.svg, strip_suffix=".svg"),
        shell:
            "PYTHONPATH=src python -m analysis figure {params.figure} --tables {input.tables}"
            " --output {params.stem} > {log} 2>&1"
