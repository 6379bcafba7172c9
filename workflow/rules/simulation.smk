# Needs results/data and results/gates. Makes results/runs, trained networks in blocks of runs; results/gd and results/relu, their
# averages; results/langevin and results/posterior, averages over sampled posteriors. The state of a running job is in
# results/state.


rule train_networks:
    input:
        unpack(curve_inputs),
        code=code("train_networks"),
    output:
        RUNS_FILE,
    log:
        "logs/train_networks/{curve}/draws_{draws}_points_{points}_runs_{runs}.log",
    benchmark:
        "benchmarks/train_networks/{curve}/draws_{draws}_points_{points}_runs_{runs}.tsv"
    wildcard_constraints:
        curve="(gd|relu)-[0-9a-f]{10}",
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=memory("train_networks"),
        runtime=minutes("train_networks"),
    params:
        curve=lambda w: asdict(CURVES[w.curve]),
        machine=CONFIG.machine,
    script:
        "../scripts/train_networks.py"


rule average_runs:
    input:
        unpack(curve_inputs),
        runs=run_files,
        code=code("average_runs"),
    output:
        CURVE_FILE,
    log:
        "logs/average_runs/{method}/{curve}/draws_{draws}_points_{points}.log",
    benchmark:
        "benchmarks/average_runs/{method}/{curve}/draws_{draws}_points_{points}.tsv"
    wildcard_constraints:
        method="gd|relu",
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=memory("average_runs"),
        runtime=minutes("average_runs"),
    params:
        curve=lambda w: asdict(CURVES[w.curve]),
    script:
        "../scripts/average_runs.py"


rule sample_chains:
    input:
        unpack(curve_inputs),
        code=code("sample_chains"),
    output:
        CURVE_FILE,
    log:
        "logs/sample_chains/{method}/{curve}/draws_{draws}_points_{points}.log",
    benchmark:
        "benchmarks/sample_chains/{method}/{curve}/draws_{draws}_points_{points}.tsv"
    wildcard_constraints:
        method="langevin|posterior",
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=memory("sample_chains"),
        runtime=minutes("sample_chains"),
    params:
        curve=lambda w: asdict(CURVES[w.curve]),
        machine=CONFIG.machine,
    script:
        "../scripts/sample_chains.py"
