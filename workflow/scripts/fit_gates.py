"""Fit the gates of some sweep points on unlabelled training inputs, for a block of draws."""

from job import Samples, log_to, provenance, span


def main(snakemake, log):
    from ggdln.experiments import store
    from ggdln.experiments.packing import pack_gates
    from ggdln.gates import fit_gates

    spec = snakemake.params.spec
    points, seed = spec["points"], spec["seed"]
    samples = Samples(snakemake.input, points, spec["tasks"])
    gates = {}
    for draw in span(snakemake.wildcards.draws):
        for point, values in enumerate(points):
            task = samples.task(draw, point)
            gates[draw, point] = fit_gates(values["gates"], task.x, seed=seed, draw=draw, subtask=task.subtask)
            log(f"draw {draw}, point {point}: {values['gates']} {gates[draw, point].report}")
    origin = provenance(snakemake, seed=seed, data_source=samples.source)
    store.write(pack_gates(gates), snakemake.output[0], provenance=origin)


if __name__ == "__main__":
    with log_to(snakemake.log[0]) as log:
        main(snakemake, log)
