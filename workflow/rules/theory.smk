# Needs results/data and results/gates. Makes results/gp: the infinite-width limit, a batch of draws and points a file.


rule solve_gp:
    input:
        tasks=lambda w: task_files(CURVES[w.curve], chunk_of(w)),
        gates=lambda w: GATES_FILE.format(gating=CURVES[w.curve].gating_id, draws=w.draws, points=w.points),
        code=code("solve_gp"),
    output:
        CURVE_FILE.replace("{method}", "gp"),
    log:
        "logs/solve_gp/{curve}/draws_{draws}_points_{points}.log",
    benchmark:
        "benchmarks/solve_gp/{curve}/draws_{draws}_points_{points}.tsv"
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=3000,
        runtime=60,
    params:
        curve=lambda w: asdict(CURVES[w.curve]),
    script:
        "../scripts/solve_gp.py"
