"""Judge one claim from the numbers behind its figure, its control and its variants."""

from pathlib import Path

from job import log_to

from ggdln.experiments import store
from ggdln.study.claims import judge
from ggdln.experiments.experiment import Experiment, assemble
from ggdln.core.files import write_json


def main(snakemake, log):
    data = store.groups(snakemake.input.data)
    parts = {}
    for file in snakemake.input.curves:
        parts.setdefault(Path(file).parent.name, []).append(store.read(file))
    for name, values in snakemake.params.experiments.items():
        plain = {key: value for key, value in values.items() if key != "varied"}
        for curve in Experiment(**plain).curves():
            if curve.id in parts:
                data[f"{name}/{curve.method}"] = assemble(curve, parts[curve.id])
    verdict = {"id": snakemake.wildcards.claim} | judge(snakemake.params.claim, data, snakemake.params.experiments)
    log(f"{verdict['verdict']}: {verdict['holds']} of {verdict['draws']} draws; control: {verdict['control']}")
    write_json(snakemake.output[0], verdict)


if __name__ == "__main__":
    with log_to(snakemake.log[0]) as log:
        main(snakemake, log)
