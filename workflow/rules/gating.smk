# Needs results/data. Makes results/gates: fitted gates for a batch of draws and of sweep points a file.


rule fit_gates:
    input:
        tasks=lambda w: task_files(GATINGS[w.gating], chunk_of(w)),
        code=code("fit_gates"),
    output:
        GATES_FILE,
    log:
        "logs/fit_gates/{gating}/draws_{draws}_points_{points}.log",
    benchmark:
        "benchmarks/fit_gates/{gating}/draws_{draws}_points_{points}.tsv"
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=3000,
        runtime=30,
    params:
        points=lambda w: GATINGS[w.gating].outer_points(),
        seed=CONFIG.seed,
    script:
        "../scripts/fit_gates.py"
