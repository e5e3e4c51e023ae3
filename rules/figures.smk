# Records into tables, tables into figures. Every output says what it is in the report.
import hashlib

FIGURES = "results/figures/{experiment}/{scale}"


wildcard_constraints:
    experiment="[^/]+",
    scale="[^/]+",


def digest(*patterns):
    """Of the files' content: drawings are made again when what draws them changed."""
    files = sorted(
        path for each in patterns for path in Path(workflow.basedir).glob(each)
    )
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[
        :12
    ]


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
        "../envs/burstlab/conda.yaml"
    params:
        records="results/{experiment}/{scale}",
        code=ANALYSIS,
    shell:
        "python -m analysis tables {params.records} --output {output.tables} > {log} 2>&1"


rule phases:
    input:
        tables=rules.tables.output.tables,
    output:
        summary=report(
            f"{FIGURES}/summary.rst",
            caption="../report/summary.rst",
            category="What was measured",
            labels={
                "experiment": "{experiment}",
                "scale": "{scale}",
                "shows": "conditions",
            },
        ),
        page=report(
            f"{FIGURES}/phases.html",
            caption="../report/phases.rst",
            category="What was measured",
            labels={
                "experiment": "{experiment}",
                "scale": "{scale}",
                "shows": "phases of a cell",
            },
        ),
        data=f"{FIGURES}/phases.csv",
    log:
        "results/logs/phases/{experiment}-{scale}.log",
    localrule: True
    conda:
        "../envs/burstlab/conda.yaml"
    params:
        directory=subpath(output.page, parent=True),
        code=ANALYSIS,
    shell:
        "python -m analysis tell --tables {input.tables} --output {params.directory} > {log} 2>&1"


for figure in sorted(
    {name for one in campaign.experiments.values() for name in one.figures}
):
    paper, number = figure.split("-", 1)

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
                labels={
                    "figure": number,
                    "experiment": "{experiment}",
                    "scale": "{scale}",
                },
            ),
            png=f"{FIGURES}/{figure}.png",
            csv=f"{FIGURES}/{figure}.csv",
        log:
            f"results/logs/{figure}/{{experiment}}-{{scale}}.log",
        localrule: True
        conda:
            "../envs/burstlab/conda.yaml"
        params:
            figure=f"{paper} {number}",
            code=ANALYSIS,
            stem=subpath(output.svg, strip_suffix=".svg"),
        shell:
            "python -m analysis figure {params.figure} --tables {input.tables}"
            " --output {params.stem} > {log} 2>&1"
