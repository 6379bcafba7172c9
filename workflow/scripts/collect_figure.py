"""Gather all numbers behind a figure into one file: a group for each experiment and method, its variables described."""

from job import log_to, provenance


def main(snakemake, log):
    from ggdln.experiments import store
    from ggdln.experiments.variables import described

    curves = dict(zip(snakemake.params.spec["curves"], map(store.read, snakemake.input.curves), strict=True))
    sources = {source for curve in curves.values() for source in curve.attrs["data_source"].split("; ")}
    seeds = sorted({int(curve.attrs["seed"]) for curve in curves.values()})
    for name, curve in curves.items():
        log(f"{name}: {dict(curve.sizes)}")
    origin = provenance(snakemake, seed=seeds, data_source="; ".join(sorted(sources)))
    store.write({name: described(curve) for name, curve in curves.items()}, snakemake.output[0], provenance=origin)


if __name__ == "__main__":
    with log_to(snakemake.log[0]) as log:
        main(snakemake, log)
