"""The exact posterior, one loop and the theory: how far apart they are, and what the first costs beside Gibbs sampling.

    python benchmarks/exact.py [--quick]

Writes docs/benchmarks/exact.md; --quick takes few draws and writes exact_quick.md there.
"""

import argparse
import math
import os
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch

from ggdln.core.diagnostics import rhat_and_ess
from ggdln.core.errors import InputError
from ggdln.gates import fit_gates
from ggdln.networks.gibbs import sample_posterior
from ggdln.networks.settings import Sampling
from ggdln.observables import Sample
from ggdln.tasks import make_task
from ggdln.theory.ensemble import ensemble_statistics
from ggdln.theory.exact import solve_exact
from ggdln.theory.solution import Solver, solve
from ggdln.workflow.config import read_config
from ggdln.workflow.files import default_files, load

ROOT = Path(__file__).resolve().parent.parent
OUTPUT = ROOT / "docs" / "benchmarks"
CHAINS = 4
FEW = 4
"""Draws of each chain in the run that tells what comes before them."""


@dataclass(frozen=True)
class Task:
    """An experiment, its depth, and how long to sample: draws of the exact posterior, sweeps of Gibbs sampling by width.

    Data, gates, sigma and T are those of the experiment.
    """

    experiment: str
    depth: int
    draws: int
    sweeps: dict
    forget: int  # sweeps of Gibbs sampling, from the prior, until tr U is within 1 % of where it stays


TASKS = {
    "Fig. S2, regular inputs": Task("posterior_regular", 1, 25, {100: 40}, 10),
    "Fig. S2, preferred inputs": Task("posterior_preferred", 1, 150, {100: 500, 3200: 15}, 5),
    "Fig. 5d, depth 3": Task("depth_sampled", 3, 40, {100: 60}, 40),
}

FORGET = ", ".join(str(task.forget) for task in TASKS.values())
COSTS = f"""\
## Seconds of CPU time to 1 % in bias and variance

One draw of data and gates of each experiment, one thread, {CHAINS} chains. A method is done when the standard errors of bias
and variance over the test inputs are 1 % of them. The time is that of what comes before the draws, and of as many draws as that
takes by their scatter and effective sample size in a longer run. Before the draws of the exact posterior come the saddle point,
the quadratic form and the warm-up. Gibbs sampling starts from the prior and needs {FORGET} sweeps of each chain on these tasks
until the trace of U is within 1 % of where it stays. *Draws alone* has the ratio of the times without what comes before, that
for errors far below 1 %. Gibbs sampling is left out where it is far slower still.
"""

DISTANCES = """\
## The error of the theory, and of one loop

A ReLU teacher in 20 dimensions with real gates, 40 test inputs. Errors are relative to the exact posterior, whose own
standard errors, of bias and variance, stand in the last column; its draws are used with control variates. One loop is refused
for widths up to the number of features of a layer. The first task is near the prior, and the theory is off by a term in 1/N
from N = 25 on. It was chosen for that among five that differed in samples, dimension, sigma and T: it shows how errors fall
where they do so cleanly. On the second labels are large for the prior, the order parameters change with N throughout, and the
error of the theory falls more slowly.
"""

EVIDENCE = """\
## The evidence

log p(y) for 20 samples, M = 3, sigma = 1, T = 0.3, and what theory and one loop add to it. That at infinite width agrees with
scikit-learn, and that of narrow networks with averages over weights drawn from the prior, by tests in
`tests/test_theory_exact.py`.
"""


# ---- Costs


def sample_of(config, name, draw=0):
    """One draw of an experiment's task and gates."""
    experiment = config.experiments[name]
    task = make_task(experiment.task, seed=experiment.seed, draw=draw)
    return Sample(task, fit_gates(experiment.gates, task.x, seed=experiment.seed, draw=draw, subtask=task.subtask))


def draws_to_one_percent(means, variances, y):
    """Draws until bias and variance have relative errors of 1 %, from means and variances given draws (chain, draw, test)."""
    mean = means.mean((0, 1))
    bias = np.mean((mean - y) ** 2)
    around = (variances + (means - mean) ** 2).mean(-1)
    # The bias changes with the mean of all draws, to first order by this for each.
    shifts = 2 * ((means - mean) * (mean - y)).mean(-1)
    needed = []
    for values, size in ((around, around.mean()), (shifts, bias)):
        _, ess = rhat_and_ess(values[..., None])
        needed.append((values.std() / (0.01 * size)) ** 2 * values.size / float(ess[0]))
    return max(*needed, CHAINS)


def exact_run(sample, draws, **network):
    """Seconds before the draws, seconds of a draw, draws to 1 %, and what was found."""
    task, seconds = sample.task, {}
    for count in (FEW, draws):
        begin = time.process_time()
        solution = solve_exact(
            task.x, sample.g, task.y, draws=count, chains=CHAINS, seed=1, solver=Solver(tolerance=1e-6), **network
        )
        means, variances = solution.conditional_everywhere(task.x_test, sample.g_test)
        seconds[count] = time.process_time() - begin
    each = (seconds[draws] - seconds[FEW]) / (CHAINS * (draws - FEW))
    before = max(seconds[FEW] - CHAINS * FEW * each, 0.0)
    found = ensemble_statistics(means, task.y_test, variances=variances)
    return before, each, draws_to_one_percent(means, variances, task.y_test), found


def gibbs_run(sample, sweeps, forget, **network):
    """The same for Gibbs sampling."""
    task, arrays = sample.task, (sample.task.x, sample.g, sample.task.y, sample.task.x_test, sample.g_test)
    begin = time.process_time()
    sampling = Sampling(chains=CHAINS, draws=sweeps, warmup=forget)
    values = sample_posterior(*arrays, seed=1, sampling=sampling, **network).prediction.values
    each = (time.process_time() - begin) / (CHAINS * (sweeps + forget))
    needed = draws_to_one_percent(values, np.zeros_like(values), task.y_test)
    return CHAINS * forget * each, each, needed, ensemble_statistics(values, task.y_test)


def costs(config, quick):
    """The table of times."""
    head = ["task", "N", "exact: s before draws", "draws", "s in all", "Gibbs: s before draws", "draws", "s in all", "ratio"]
    head.append("draws alone")
    rows = [f"| {' | '.join(head)} |", f"|---|{'--:|' * (len(head) - 1)}"]
    for label, task in TASKS.items():
        sample = sample_of(config, task.experiment)
        given = config.experiments[task.experiment].network
        network = dict(depth=task.depth, sigma=given["sigma"], temperature=given["T"])
        label = f"{label}, sigma = {given['sigma']:g}, T = {given['T']:g}"
        for width in (100,) if quick else (100, 3200):
            found = [exact_run(sample, task.draws // (5 if quick else 1), width=width, **network)]
            sweeps = task.sweeps.get(width)
            if sweeps is not None:
                found.append(gibbs_run(sample, sweeps // (3 if quick else 1), task.forget, width=width, **network))
            for before, each, needed, statistics in found:
                told = {name: f"{statistics[name]:.5f} +- {statistics[f'{name}_error']:.5f}" for name in ("bias", "variance")}
                print(label, width, f"{before:.2f} s, {needed:.0f} draws of {1e3 * each:.1f} ms", told, flush=True)
            cells = [label, width]
            for before, each, needed, _ in found:
                cells += [f"{before:.2f}", f"{needed:.0f}", f"{before + needed * each:.2f}"]
            if len(found) == 2:
                totals, draws = ([f(*one) for one in found] for f in (lambda b, e, n, _: b + e * n, lambda b, e, n, _: e * n))
                cells += [f"{values[1] / values[0]:.1f}" for values in (totals, draws)]
            else:
                cells += [""] * 5
            rows.append(f"| {' | '.join(map(str, cells))} |")
    return rows


# ---- Errors


def teacher(count, gates, dimension=20, test=40, seed=0):
    """Training arrays, test inputs with gates, and test labels."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((count + test, dimension))
    hidden = np.maximum(x @ rng.standard_normal((dimension, 50)) / math.sqrt(dimension), 0)
    y = hidden @ rng.standard_normal(50) / math.sqrt(50)
    g = np.maximum(x @ rng.standard_normal((dimension, gates)) / math.sqrt(dimension), 0) + 0.1
    return (x[:count], g[:count], y[:count]), (x[count:], g[count:]), y[count:]


def truth(data, test, y_test, draws, chains=8, **network):
    """Bias and variance of the exact posterior with their errors, and its saddle point."""
    solution = solve_exact(*data, draws=draws, chains=chains, seed=1, **network)
    means, variances = (values.reshape(chains * draws, -1) for values in solution.conditional_everywhere(*test))
    outputs, used = np.hstack([means, variances + means**2]), 0
    if network["width"] > max(solution.training.powers.sizes):
        controls = controls_of(solution)
        # Deviations from means on both sides: otherwise a share of the scatter of the means would stay, and be hidden.
        factors = np.linalg.lstsq(controls - controls.mean(axis=0), outputs - outputs.mean(axis=0))[0]
        outputs, used = outputs - controls @ factors, controls.shape[1]
    each = outputs.reshape(chains, draws, -1).mean(axis=1)

    def statistics(mean):
        first, second = np.split(mean, 2)
        return np.array([np.mean((first - y_test) ** 2), np.mean(second - first**2)])

    left = np.array([statistics(np.delete(each, i, axis=0).mean(axis=0)) for i in range(chains)])
    errors = np.sqrt((chains - 1) / chains * np.square(left - left.mean(axis=0)).sum(axis=0))
    return statistics(each.mean(axis=0)), errors / (1 - used / len(outputs)), solution.saddle


def controls_of(solution):
    """Functions of a draw u whose means are zero, dE/du_j and delta_ij - u_i dE/du_j: (draws, D + D^2).

    By partial integration over the posterior e^-E, if it vanishes where a z_ii is zero, which it does for N > r. What is
    linear in them is taken off the outputs, which leaves far less to scatter.
    """
    draws = [(chain.posterior, u) for chain in solution._chains for u in chain.u]
    u, gradients = np.array([u for _, u in draws]), np.array([posterior.energy(u)[1] for posterior, u in draws])
    products = np.eye(u.shape[1]) - (u - u.mean(axis=0))[:, :, None] * gradients[:, None, :]
    return np.hstack([gradients, products.reshape(len(u), -1)])


FROM = 12
"""The least width in the fit of powers."""


def power(widths, errors, noise):
    """The power of 1/N with which errors fall, and its standard error, by those that are well above their noise."""
    widths, errors = np.array(widths), np.abs(errors)
    seen = (errors > 3 * noise) & (widths >= FROM)
    if seen.sum() < 3:
        return "too small to tell"
    weights = 1 / np.hypot(noise / errors, 0.05)[seen]  # terms of higher order are about 5 % of them
    slopes, covariance = np.polyfit(np.log(widths[seen]), np.log(errors[seen]), 1, w=weights, cov="unscaled")
    return f"{-slopes[0]:.2f} ± {math.sqrt(covariance[0, 0]):.2f} (N to {widths[seen].max()})"


NEAR = dict(count=60, gates=(4, 2, 2), sigma=1.0, temperature=0.1, widths=(8, 12, 25, 50, 100, 200))
FAR = dict(count=80, gates=(6,), sigma=0.5, temperature=0.01, widths=(12, 50, 200))
SAMPLED = 12, 50
"""Widths at which Gibbs sampling stands beside the exact posterior."""


def distances(quick):
    """The tables of errors over widths and depths, and the powers with which they fall."""
    return [*errors_of(NEAR, quick, fitted=True), "", *errors_of(FAR, quick, fitted=False)]


def errors_of(task, quick, *, fitted):
    """The table of errors for a task, and the powers if they are `fitted`."""
    head = ["L", "M", "N", "variance, exact", "Gibbs", "theory: bias", "variance", "one loop: bias", "variance", "± exact"]
    told = f"{task['count']} samples, sigma = {task['sigma']}, T = {task['temperature']}:"
    rows, powers = [told, "", f"| {' | '.join(head)} |", f"|{'--:|' * len(head)}"], []
    for depth, gates in enumerate(task["gates"], 1):
        data, test, y_test = teacher(task["count"], gates)
        kept, draws = {"theory": [], "one loop": []}, 100 if quick else 300
        for width in SAMPLED if quick else task["widths"]:
            network = dict(width=width, depth=depth, sigma=task["sigma"], temperature=task["temperature"])
            values, errors, saddle = truth(data, test, y_test, draws, **network)
            cells = [depth, gates, width, f"{values[1]:.5f} ± {errors[1]:.5f}"]
            if width in SAMPLED:
                sampling = Sampling(chains=8, draws=5 * draws // 4, warmup=100)
                chains = sample_posterior(*data, *test, seed=1, sampling=sampling, **network).prediction.values
                statistics = ensemble_statistics(chains, y_test)
                cells.append(f"{statistics['variance']:.5f} ± {statistics['variance_error']:.5f}")
            else:
                cells.append("")
            found = {"theory": saddle.predict(*test), "one loop": None}
            with suppress(InputError):
                found["one loop"] = solve(*data, **network, loops=1).predict(*test)
            for name, pair in found.items():
                if pair is None:
                    cells += ["", ""]
                    continue
                off = np.array([np.mean((pair[0] - y_test) ** 2), pair[1].mean()]) / values - 1
                kept[name].append((width, off, errors / values))
                cells += [f"{100 * one:+.2f} %" for one in off]
            cells.append(", ".join(f"{100 * one:.2f} %" for one in errors / values))
            rows.append(f"| {' | '.join(map(str, cells))} |")
            print(rows[-1], flush=True)
        for name, points in kept.items():
            widths, off, noise = zip(*points, strict=True)
            fits = [power(widths, *(np.array(values)[:, k] for values in (off, noise))) for k in (0, 1)]
            powers.append(f"| {depth} | {name} | {fits[0]} | {fits[1]} |")
            print(powers[-1], flush=True)
    told = f"Powers of 1/N like which errors fall from N = {FROM} on, by those above three standard errors of the exact:"
    return [*rows, "", told, "", "| L | | bias | variance |", "|--:|---|---|---|", *powers] if fitted else rows


def evidence(quick):
    """The table of evidence over widths and depths."""
    head = ["L", "N", "exact", "theory", "one loop"]
    rows = [f"| {' | '.join(head)} |", f"|{'--:|' * len(head)}"]
    for depth in (1, 2):
        data = teacher(20, 3, dimension=5)[0]
        for width in (12, 50) if quick else (4, 12, 25, 50, 200):
            network = dict(width=width, depth=depth, temperature=0.3)
            exact = solve_exact(*data, draws=100 if quick else 1000, chains=4, seed=1, **network)
            cells = [depth, width, f"{exact.log_evidence:.3f} ± {exact.log_evidence_error:.3f}"]
            cells.append(f"{exact.saddle.log_evidence - exact.log_evidence:+.3f}")
            try:
                cells.append(f"{solve(*data, width, depth, 1.0, 0.3, loops=1).log_evidence - exact.log_evidence:+.3f}")
            except InputError:
                cells.append("")
            rows.append(f"| {' | '.join(map(str, cells))} |")
            print(rows[-1], flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    torch.set_num_threads(1)
    config = read_config(load(default_files(ROOT)))
    # What is imported and compiled on first use belongs to no row.
    data, test, _ = teacher(20, 2, dimension=5)
    solve_exact(*data, width=5, temperature=0.1, draws=4, chains=2).prediction(*test)
    text = ["# The exact posterior", "", f"Written by `python benchmarks/exact.py{' --quick' if quick else ''}`.", ""]
    for told, table in ((COSTS, costs(config, quick)), (DISTANCES, distances(quick)), (EVIDENCE, evidence(quick))):
        text += [told, *table, ""]
    OUTPUT.mkdir(parents=True, exist_ok=True)
    (OUTPUT / ("exact_quick.md" if quick else "exact.md")).write_text("\n".join(text))


if __name__ == "__main__":
    main()
