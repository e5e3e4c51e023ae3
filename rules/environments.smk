# Whether the programs of a workload are there, and their versions; records are not remade for it.


for environment in campaign.environments:

    rule:
        name:
            f"environment_{environment}"
        output:
            f"results/environments/{environment}.json",
        log:
            f"results/environments/{environment}.log",
        localrule: True
        conda:
            f"../envs/{environment}/conda.yaml"
        envmodules:
            *campaign.modules(environment),
        params:
            environment=environment,
        shell:
            "burstlab doctor --environment {params.environment} --output {output} > {log} 2>&1"
