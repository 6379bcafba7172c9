"""Train a block of networks, from different initial weights, for a batch of draws and sweep points."""

from functools import partial

from job import log_to, span
from method import resumable, run_method

from ggdln.experiments.methods.training import train

if __name__ == "__main__":
    with log_to(snakemake.log[0]) as log, resumable(snakemake) as state:
        runs = span(snakemake.wildcards.runs)
        run_method(snakemake, partial(train, runs=runs, machine=snakemake.params.machine, state=state), log)
