# Needs the curves of a figure's experiments. Makes results/FIGURE.nc, all numbers behind a figure, and the figure itself.


rule collect_figure:
    input:
        curves=lambda w: JOBS.curve_files(w.figure),
        code=code("collect_figure"),
    output:
        FIGURE_DATA,
    log:
        f"logs/collect_figure/{RUN}{{figure}}.log",
    benchmark:
        f"benchmarks/collect_figure/{RUN}{{figure}}.tsv"
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=memory("collect_figure"),
        runtime=minutes("collect_figure"),
    params:
        experiments=lambda w: shown_experiments(w.figure),
    script:
        "../scripts/collect_figure.py"


rule draw_figure:
    input:
        data=FIGURE_DATA,
        code=code("draw_figure"),
    output:
        pdf=FIGURE_PDF,
        png=report(FIGURE_PNG, caption="../report/figure.rst", category="Figures", labels={"figure": "{figure}"}),
    log:
        f"logs/draw_figure/{RUN}{{figure}}.log",
    benchmark:
        f"benchmarks/draw_figure/{RUN}{{figure}}.tsv"
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=memory("draw_figure"),
        runtime=minutes("draw_figure"),
    params:
        layout=lambda w: CONFIG.figures[w.figure],
        experiments=lambda w: shown_experiments(w.figure),
    script:
        "../scripts/draw_figure.py"
