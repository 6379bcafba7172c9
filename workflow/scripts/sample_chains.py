"""Sample the posterior by Langevin dynamics or exactly, for a batch of draws and sweep points."""

from functools import partial

from job import log_to
from method import resumable, run_method

from ggdln.experiments.methods.sampling import sample

if __name__ == "__main__":
    with log_to(snakemake.log[0]) as log, resumable(snakemake) as state:
        run_method(snakemake, partial(sample, machine=snakemake.params.machine, state=state), log)
