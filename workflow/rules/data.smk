# Needs the digits of the configured source. Makes results/data: the inputs and labels of each task, a batch of draws a file.


rule prepare_task:
    input:
        code=code("prepare_task"),
    output:
        TASK_FILE,
    log:
        "logs/prepare_task/{task}/draws_{draws}.log",
    benchmark:
        "benchmarks/prepare_task/{task}/draws_{draws}.tsv"
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=memory("prepare_task"),
        runtime=minutes("prepare_task"),
    params:
        task=lambda w: TASKS[w.task],
        digits=lambda w: CONFIG.digits if "digits" in TASKS[w.task] else {},
        seed=CONFIG.seed,
    script:
        "../scripts/prepare_task.py"
