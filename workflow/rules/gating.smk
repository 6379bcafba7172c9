# Needs results/data. Makes results/gates: fitted gates for a batch of draws and of sweep points a file.


rule fit_gates:
    input:
        tasks=gate_inputs,
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
        mem_mb=memory("fit_gates"),
        runtime=minutes("fit_gates"),
    params:
        points=lambda w: JOBS.points(w.gating),
        seed=CONFIG.seed,
    script:
        "../scripts/fit_gates.py"
