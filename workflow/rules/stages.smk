# Needs the table of stages, src/ggdln/workflow/stages.py. Makes a rule of each: the rules differ in nothing else.

for stage in map(Asked, STAGES.table.values()):

    rule:
        name:
            stage.stage.name
        input:
            unpack(stage.inputs),
        output:
            **stage.output(),
        log:
            stage.stage.note("logs", ".log"),
        benchmark:
            stage.stage.note("benchmarks", ".tsv")
        priority: stage.priority
        conda:
            "../../environment.yml"
        threads: 1
        resources:
            mem_mb=stage.memory,
            runtime=stage.minutes,
        params:
            spec=stage.spec,
            code=stage.code,
            programs=stage.programs,
            script=stage.stage.script or stage.stage.name,
        script:
            "../scripts/{params.script}.py"
