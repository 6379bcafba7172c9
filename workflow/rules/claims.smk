# Needs the numbers of a figure, and the curves of controls and variants. Makes results/claims/CLAIM.json, the verdict on one claim
# about a figure, and results/claims.json, all of them with the distances between simulations and theory.


rule judge_claim:
    input:
        data=lambda w: FIGURE_DATA.format(figure=CONFIG.claims[w.claim]["figure"]),
        curves=lambda w: JOBS.claim_files(w.claim),
        code=code("judge_claim"),
    output:
        CLAIM,
    log:
        f"logs/judge_claim/{RUN}{{claim}}.log",
    benchmark:
        f"benchmarks/judge_claim/{RUN}{{claim}}.tsv"
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=memory("judge_claim"),
        runtime=minutes("judge_claim"),
    params:
        claim=lambda w: CONFIG.claims[w.claim],
        experiments=lambda w: claimed_experiments(w.claim),
    script:
        "../scripts/judge_claim.py"


rule collect_claims:
    input:
        claims=expand(CLAIM, claim=CONFIG.claims),
        data=expand(FIGURE_DATA, figure=dict.fromkeys(entry["figure"] for entry in CONFIG.agreement)),
        findings=list(dict.fromkeys(FINDINGS.values())),
        code=code("collect_claims"),
    output:
        report(CLAIMS, caption="../report/claims.rst", category="Report", labels={"page": "verdicts as JSON"}),
    log:
        f"logs/collect_claims/{RUN}claims.log",
    benchmark:
        f"benchmarks/collect_claims/{RUN}claims.tsv"
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=15,
    params:
        run=CONFIG.run,
        agreement=CONFIG.agreement,
        findings=FINDINGS,
    script:
        "../scripts/collect_claims.py"
