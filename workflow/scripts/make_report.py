"""Make the page that says what holds: verdicts, figures with their numbers, and the agreement with simulations."""

import json
from pathlib import Path

import yaml
from job import log_to

from ggdln.study.report.page import render


def main(snakemake, log):
    figures = snakemake.params.figures
    schema = yaml.safe_load(Path(snakemake.input.schema).read_text())
    claims = json.loads(Path(snakemake.input.claims).read_text())
    numbers = dict(zip(figures, snakemake.input.numbers, strict=True))
    pictures = dict(zip(figures, snakemake.input.pictures, strict=True))
    page = render(snakemake.params.configuration, schema, claims, numbers, pictures)
    log(f"{len(claims['claims'])} claims, {len(figures)} figures, {len(page) / 1e6:.1f} MB")
    Path(snakemake.output[0]).write_text(page)


if __name__ == "__main__":
    with log_to(snakemake.log[0]) as log:
        main(snakemake, log)
