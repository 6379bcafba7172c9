"""Make the page that says what holds: verdicts, figures with their numbers, and the agreement with simulations."""

import json
from pathlib import Path

from job import log_to


def main(snakemake, log):
    from ggdln.study.compose import Figure
    from ggdln.study.report.page import Entry, render
    from ggdln.workflow.overview import measured_cost

    spec = snakemake.params.spec
    claims = json.loads(Path(snakemake.input.claims[0]).read_text())
    files = zip(spec["figures"].items(), snakemake.input.numbers, snakemake.input.pictures, strict=True)
    entries = [
        Entry(
            name=name,
            layout=Figure.make(shown["figure"]),
            numbers=numbers,
            picture=picture,
            experiments=shown["experiments"],
            parameters=spec["parameters"][name],
            cost=measured_cost(spec["benchmarks"][name]),
        )
        for (name, shown), numbers, picture in files
    ]
    page = render(entries, claims, spec["run"])
    log(f"{len(claims['claims'])} claims, {len(entries)} figures, {len(page) / 1e6:.1f} MB")
    Path(snakemake.output[0]).write_text(page, encoding="utf-8")


if __name__ == "__main__":
    with log_to(snakemake.log[0]) as log:
        main(snakemake, log)
