"""Put the blocks of trained networks together: bias, variance and errors over runs."""

import xarray as xr
from job import log_to
from method import run_method

from ggdln.experiments import store
from ggdln.experiments.methods.averaging import average


def main(snakemake, log):
    trained = xr.concat([store.read(file) for file in snakemake.input.runs], "run", join="outer").sortby("run")

    def measure(curve, task, gates, draw, point):
        n = len(curve.inner_points())
        blocks = (trained.sel(draw=draw, point=point * n + i) for i in range(n))
        return [average(curve, block, task, gates) for block in blocks]

    run_method(snakemake, measure, log)


if __name__ == "__main__":
    with log_to(snakemake.log[0]) as log:
        main(snakemake, log)
