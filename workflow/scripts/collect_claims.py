"""Gather all verdicts, and how far simulations are from the theory, in one file."""

import json
from pathlib import Path

from job import log_to


def main(snakemake, log):
    from ggdln.core.files import write_json
    from ggdln.experiments import store
    from ggdln.study.calibration import tried
    from ggdln.study.claims import agreement

    spec = snakemake.params.spec
    claims = [json.loads(Path(file).read_text()) for file in snakemake.input.get("claims", [])]
    calibration = [choice for file in snakemake.input.get("calibration", []) for choice in json.loads(Path(file).read_text())]
    judged = {claim["id"] for claim in claims}
    calibration = [choice for choice in calibration if any(judged & set(option["claims"]) for option in choice["options"])]
    for claim in claims:
        claim["tried"] = tried(calibration, claim["id"])
        finding = spec["findings"].get(claim["id"])
        claim["finding"] = Path(finding).read_text(encoding="utf-8") if finding else ""
        log(f"{claim['id']}: {claim['outcome']}")
    data = {"/".join(Path(file).with_suffix("").parts[-2:]): store.read(file) for file in snakemake.input.get("curves", [])}
    distances = [agreement(entry, data) for entry in spec["agreement"]]
    write_json(snakemake.output[0], {"run": spec["run"], "claims": claims, "agreement": distances, "calibration": calibration})


if __name__ == "__main__":
    with log_to(snakemake.log[0]) as log:
        main(snakemake, log)
