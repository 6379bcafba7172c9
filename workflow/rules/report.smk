# Needs the verdicts, and the numbers and the picture of every figure. Makes the report, one HTML page.

REPORT = f"figures/{RUN}report.html"


rule make_report:
    input:
        claims=CLAIMS,
        numbers=[FIGURE_DATA.format(figure=figure) for figure in CONFIG.figures],
        pictures=[FIGURE_PNG.format(figure=figure) for figure in CONFIG.figures],
        schema="workflow/schemas/config.schema.yaml",
        templates=sorted(str(path.relative_to(ROOT)) for path in (ROOT / "src/ggdln/report/templates").iterdir()),
        code=code("make_report"),
    output:
        report(REPORT, caption="../report/page.rst", category="Report", labels={"page": "verdicts and figures"}),
    log:
        f"logs/make_report/{RUN}report.log",
    benchmark:
        f"benchmarks/make_report/{RUN}report.tsv"
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=15,
    params:
        figures=list(CONFIG.figures),
        configuration=config,
    script:
        "../scripts/make_report.py"
