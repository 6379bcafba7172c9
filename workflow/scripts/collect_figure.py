"""Gather all numbers behind a figure into one file: a group for each experiment and method."""

from pathlib import Path

from job import log_to, provenance

from ggdln.experiments import store
from ggdln.experiments.experiment import Experiment, assemble


def main(snakemake, log):
    parts = {}
    for file in snakemake.input.curves:
        parts.setdefault(Path(file).parent.name, []).append(store.read(file))
    groups = {}
    for name, values in snakemake.params.experiments.items():
        for curve in Experiment(**values).curves():
            groups[f"{name}/{curve.method}"] = assemble(curve, parts[curve.id])
            log(f"{name}/{curve.method}: {dict(groups[f'{name}/{curve.method}'].sizes)}")
    sources = {part.attrs["data_source"] for chunks in parts.values() for part in chunks}
    seeds = {values["seed"] for values in snakemake.params.experiments.values()}
    attributes = provenance(snakemake, seed=sorted(seeds), data_source="; ".join(sorted(sources)))
    store.write(groups, snakemake.output[0], provenance=attributes)


if __name__ == "__main__":
    with log_to(snakemake.log[0]) as log:
        main(snakemake, log)
