"""Solve the finite-width theory for a batch of draws and sweep points."""

from job import log_to
from method import run_method

from ggdln.experiments.methods.theory import measure

if __name__ == "__main__":
    with log_to(snakemake.log[0]) as log:
        run_method(snakemake, measure, log)
