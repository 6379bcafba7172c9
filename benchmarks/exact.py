"""The exact posterior, one loop and the theory: how far apart they are, and what the first costs beside Gibbs sampling.

    python benchmarks/exact.py [--quick]

Tasks of Fig. S2 (one layer, 20 and 50 gates) and of Fig. 5d (three layers, 6 gates), one draw of data and gates, one thread.
The time to 1 % is that until bias and variance of the test predictions have relative standard errors of 1 %, extrapolated from
a run with the errors that its chains show. A second table has theory, one loop, exact posterior and Gibbs sampling over widths
and depths on a small task. Writes docs/benchmarks/exact.md.
"""

import argparse
import math
import os
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch

from ggdln.core.errors import InputError
from ggdln.gates import fit_gates
from ggdln.networks.gibbs import sample_posterior
from ggdln.networks.settings import Sampling
from ggdln.observables import Sample
from ggdln.tasks import make_task
from ggdln.theory.ensemble import ensemble_statistics
from ggdln.theory.exact import solve_exact
from ggdln.theory.solution import solve
from ggdln.workflow.config import default_files, load, read_config

ROOT = Path(__file__).resolve().parent.parent
OUTPUT = ROOT / "docs" / "benchmarks"
NAMES = ("bias", "variance")

TASKS = {
    # experiment, depth, temperature, and draws of the exact posterior and of Gibbs sampling
    "Fig. S2, regular inputs": ("posterior_regular", 1, 0.01, 60, 150),
    "Fig. S2, preferred inputs": ("posterior_preferred", 1, 0.001, 150, 600),
    "Fig. 5d, depth 3": ("depth_sampled", 3, 1e-5, 40, 40),
}


def sample_of(config, name, draw=0):
    """One draw of an experiment's task and gates."""
    experiment = config.experiments[name]
    task = make_task(experiment.task, seed=experiment.seed, draw=draw)
    return Sample(task, fit_gates(experiment.gates, task.x, seed=experiment.seed, draw=draw, subtask=task.subtask))


def to_one_percent(found, seconds, setup):
    """Seconds until the larger of both relative errors is 1 %."""
    error = max(found[f"{name}_error"] / found[name] for name in NAMES)
    return setup + (seconds - setup) * (error / 0.01) ** 2


def exact_run(sample, draws, **network):
    task, begin = sample.task, time.process_time()
    solve_exact(task.x, sample.g, task.y, draws=4, chains=1, seed=1, **network)
    setup = time.process_time() - begin
    begin = time.process_time()
    solution = solve_exact(task.x, sample.g, task.y, draws=draws, chains=8, seed=1, **network)
    means, variances = solution.conditional_everywhere(task.x_test, sample.g_test)
    seconds = time.process_time() - begin
    return ensemble_statistics(means, task.y_test, variances=variances), seconds, setup


def gibbs_run(sample, draws, **network):
    task, arrays = sample.task, (sample.task.x, sample.g, sample.task.y, sample.task.x_test, sample.g_test)
    begin = time.process_time()
    chains = sample_posterior(*arrays, seed=1, sampling=Sampling(chains=8, draws=draws, warmup=draws // 4), **network)
    seconds = time.process_time() - begin
    return ensemble_statistics(chains.prediction.values, task.y_test), seconds, seconds / 5


def costs(config, quick):
    """Rows of the table of times."""
    rows = []
    for label, (name, depth, temperature, draws, sweeps) in TASKS.items():
        sample = sample_of(config, name)
        sigma = config.experiments[name].network["sigma"]
        for width in (100,) if quick else (100, 3200):
            network = dict(width=width, depth=depth, sigma=sigma, temperature=temperature)
            times = []
            for run, count in ((exact_run, draws), (gibbs_run, sweeps)):
                if run is gibbs_run and width * depth > 3200:
                    times.append(None)  # the hidden layers alone have M N^2 weights each
                    continue
                found, seconds, setup = run(sample, max(count // 4, 8) if quick else count, **network)
                times.append((to_one_percent(found, seconds, setup), found))
                print(label, width, run.__name__, f"{seconds:.1f} s", {k: round(found[k], 5) for k in found}, flush=True)
            exact, gibbs = times
            told = [f"{exact[0]:.1f}", "too large" if gibbs is None else f"{gibbs[0]:.1f}"]
            ratio = "" if gibbs is None else f"{gibbs[0] / exact[0]:.1f}"
            rows.append(f"| {label} | {width} | {told[0]} | {told[1]} | {ratio} |")
    return rows


def distances(quick):
    """Rows of the table of distances from the exact posterior, on a teacher task with real gates."""
    rng, rows = np.random.default_rng(0), []
    x = rng.standard_normal((160, 20))
    teacher = np.maximum(x @ rng.standard_normal((20, 50)) / math.sqrt(20), 0) @ rng.standard_normal(50) / math.sqrt(50)
    for depth, gates in ((1, 20), (2, 4), (3, 3)):
        g = (x @ rng.standard_normal((20, gates)) > -1).astype(float)
        data, test, y_test = (x[:120], g[:120], teacher[:120]), (x[120:], g[120:]), teacher[120:]
        for width in (5, 25, 50, 100) if quick else (5, 12, 25, 50, 100, 200, 500):
            network = dict(width=width, depth=depth, sigma=0.5, temperature=0.01)
            exact = solve_exact(*data, draws=200 if quick else 1000, chains=8, seed=1, **network)
            means, variances = exact.conditional_everywhere(*test)
            truth = ensemble_statistics(means, y_test, variances=variances)
            sampling = Sampling(chains=8, draws=500 if quick else 4000, warmup=200)
            chains = sample_posterior(*data, *test, seed=1, sampling=sampling, **network)
            gibbs = ensemble_statistics(chains.prediction.values, y_test)
            found = {"theory": exact.saddle.predict(*test)}
            try:
                found["one loop"] = solve(*data, width, depth, 0.5, 0.01, loops=1).predict(*test)
            except InputError:
                found["one loop"] = None
            cells = [
                f"{truth['variance']:.5f} ± {truth['variance_error']:.5f}",
                f"{gibbs['variance']:.5f} ± {gibbs['variance_error']:.5f}",
            ]
            for name in ("theory", "one loop"):
                pair = found[name]
                for k in (0, 1):
                    value = None if pair is None else [np.mean((pair[0] - y_test) ** 2), pair[1].mean()][k]
                    cells.append("" if value is None else f"{100 * (value / truth[NAMES[k]] - 1):+.2f} %")
            rows.append(f"| {depth} | {gates} | {width} | {' | '.join(cells)} |")
            print(rows[-1], flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    config = read_config(load(default_files(ROOT)))
    text = ["# The exact posterior", "", __doc__.split("\n\n", 2)[2].strip(), ""]
    text += ["## Seconds of CPU time to 1 % in bias and variance", ""]
    text += ["| task | N | exact | Gibbs | ratio |", "|---|--:|--:|--:|--:|", *costs(config, arguments.quick)]
    text += ["", "## Variance, and relative distances of bias and variance from the exact posterior", ""]
    text += [
        "120 samples of a ReLU teacher, sigma = 0.5, T = 0.01. One loop needs N above the number of features of a layer.",
        "",
    ]
    text += ["| L | M | N | exact | Gibbs | theory: bias | variance | one loop: bias | variance |"]
    text += ["|--:|--:|--:|--:|--:|--:|--:|--:|--:|", *distances(arguments.quick)]
    OUTPUT.mkdir(parents=True, exist_ok=True)
    name = "exact_quick.md" if arguments.quick else "exact.md"
    (OUTPUT / name).write_text("\n".join(text) + "\n")


if __name__ == "__main__":
    main()
