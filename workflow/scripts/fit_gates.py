"""Fit the gates of a batch of draws and sweep points on unlabelled training inputs."""

from job import log_to, provenance, read_tasks, span

from ggdln.experiments import store
from ggdln.gates import fit_gates, pack_gates


def main(snakemake, log):
    seed, points = snakemake.params.seed, snakemake.params.points
    task_of, source = read_tasks(snakemake.input.tasks, [point["task"] for point in points], seed)
    gates = {}
    for draw in span(snakemake.wildcards.draws):
        for point in span(snakemake.wildcards.points):
            task = task_of(draw, point)
            gates[draw, point] = fit_gates(points[point]["gates"], task.x, seed=seed, draw=draw, task=task.task)
            log(f"draw {draw}, point {point}: {points[point]['gates']} {gates[draw, point].fit}")
    store.write(pack_gates(gates), snakemake.output[0], provenance=provenance(snakemake, seed=seed, data_source=source))


if __name__ == "__main__":
    with log_to(snakemake.log[0]) as log:
        main(snakemake, log)
