"""Put the pieces of a curve together: one file for a method of an experiment, over draws and the axes of its sweep."""

from pathlib import Path

from job import log_to, provenance


def main(snakemake, log):
    from ggdln.experiments import store
    from ggdln.experiments.experiment import assemble

    spec, pieces, sources = snakemake.params.spec, {}, set()
    for file in snakemake.input.pieces:
        part = store.read(file)
        pieces.setdefault(Path(file).parent.name, []).append(part)
        sources |= set(part.attrs["data_source"].split("; "))
    curve = assemble(spec["axes"], spec["draws"], [pieces[name] for name in spec["pieces"]])
    log(f"{dict(curve.sizes)} from {len(snakemake.input.pieces)} files")
    origin = provenance(snakemake, seed=spec["seed"], data_source="; ".join(sorted(sources)))
    store.write(curve, snakemake.output[0], provenance=origin)


if __name__ == "__main__":
    with log_to(snakemake.log[0]) as log:
        main(snakemake, log)
