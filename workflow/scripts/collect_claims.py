"""Gather all verdicts, and how far simulations are from the theory, in one file."""

import json
from pathlib import Path

from job import log_to

from ggdln.experiments import store
from ggdln.study.claims import agreement
from ggdln.core.files import write_json


def main(snakemake, log):
    claims = [json.loads(Path(file).read_text()) for file in snakemake.input.claims]
    for claim in claims:
        finding = snakemake.params.findings.get(claim["id"])
        claim["finding"] = Path(finding).read_text() if finding else ""
    data = {Path(file).stem: store.groups(file) for file in snakemake.input.data}
    distances = [agreement(entry, data[entry["figure"]]) for entry in snakemake.params.agreement]
    for claim in claims:
        log(f"{claim['id']}: {claim['verdict']}")
    write_json(snakemake.output[0], {"run": snakemake.params.run, "claims": claims, "agreement": distances})


if __name__ == "__main__":
    with log_to(snakemake.log[0]) as log:
        main(snakemake, log)
