# Needs results/data and results/gates. Makes results/gp and results/theory: the infinite-width limit and the finite-width
# theory, a batch of draws and points a file.


rule solve_gp:
    input:
        unpack(curve_inputs),
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
        mem_mb=memory("solve_gp"),
        runtime=minutes("solve_gp"),
    params:
        curve=lambda w: asdict(CURVES[w.curve]),
    script:
        "../scripts/solve_gp.py"


rule solve_theory:
    input:
        unpack(curve_inputs),
        code=code("solve_theory"),
    output:
        CURVE_FILE.replace("{method}", "theory"),
    log:
        "logs/solve_theory/{curve}/draws_{draws}_points_{points}.log",
    benchmark:
        "benchmarks/solve_theory/{curve}/draws_{draws}_points_{points}.tsv"
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=memory("solve_theory"),
        runtime=minutes("solve_theory"),
    params:
        curve=lambda w: asdict(CURVES[w.curve]),
    script:
        "../scripts/solve_theory.py"
