"""Does `ggdln.solve` find the lowest minimum of H at T > 0? Random problems over P, N0, N, L to 8, T, sigma and gates.

    python benchmarks/minima.py [--cases 1200] [--workers 2]

With one gate that is always open all layers are alike, and H is a function of one number: a fine scan of it gives the truth.
With gates the solution is compared with the minima reached from ten random starting points, eigenvalues of whose order
parameters are spread over decades. Writes docs/benchmarks/minima.md.
"""

import argparse
import math
import multiprocessing
import os
import time
from collections import Counter
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np

from ggdln.core.errors import ConvergenceError, RankError
from ggdln.theory.newton import minimise
from ggdln.theory.saddle import Problem, Whitened
from ggdln.theory.solution import Solver, solve

OUTPUT = Path(__file__).resolve().parent.parent / "docs" / "benchmarks"
STARTS = 10


def problem_of(seed, gated):
    """Inputs, gates, labels and the network of a random problem."""
    rng = np.random.default_rng([2022, seed, gated])
    choose = rng.choice
    count, dimension, depth = int(choose([5, 10, 20, 40, 60])), int(choose([5, 10, 30, 60])), int(rng.integers(1, 9))
    width, sigma = float(choose([3, 10, 30, 100, 300, 1000])), float(10 ** rng.uniform(-1, 0.3))
    temperature = float(10 ** rng.uniform(-6, 0))
    x = rng.standard_normal((count, dimension))
    drive = x @ rng.standard_normal((dimension, int(choose([2, 3, 4, 6])) if gated else 1)) / math.sqrt(dimension)
    gates = np.ones((count, 1)) if not gated else (drive > 0).astype(float) if rng.random() < 0.5 else np.maximum(drive, 0)
    y = np.sign(rng.standard_normal(count)) if rng.random() < 0.5 else x @ rng.standard_normal(dimension) / math.sqrt(dimension)
    return (x, gates, y), dict(width=width, depth=depth, sigma=sigma, temperature=temperature)


def scanned(x, gates, y, *, width, depth, sigma, temperature):
    """All minima of H for one open gate, from a scan over the one number q = V_l / prior."""
    values, vectors = np.linalg.eigh(sigma ** (2 * depth + 2) * x @ x.T / x.shape[1])
    squares, log = (vectors.T @ y) ** 2, np.linspace(-7, 9, 32001)
    values[values < 1e-12 * values[-1]] = 0  # rounding, which a large factor would make a direction of its own
    k = temperature + np.exp(depth * log) * values[:, None]
    h = (squares[:, None] / k + np.log(k)).sum(axis=0) / 2 + width * depth / 2 * (np.exp(log) - log - 1)
    inner = h[1:-1]
    return inner[(inner < h[:-2]) & (inner < h[2:])]


def others(solution, seed):
    """H at the minima reached from random starts."""
    rng, training, shape = np.random.default_rng([7, seed]), solution.training, solution.shape
    likelihood, found = training.likelihood(shape.scale, solution.temperature), []
    top = max(float(layer.logs.max()) for layer in solution.layers)
    for _ in range(STARTS):
        problem, scale = Problem(likelihood, shape.levels), math.exp(rng.uniform(-0.3, max(top, 1.0)) / 2)
        roots = [scale * (np.eye(r) + rng.standard_normal((r, r)) / math.sqrt(2 * r)) for r in training.powers.sizes]
        try:
            state = minimise(problem, [Whitened.of(root) for root in roots], tolerance=1e-7, limit=500)
        except (ConvergenceError, RankError, FloatingPointError):
            continue
        found.append(state.value + likelihood.shift)
    return np.array(found)


def judge(case):
    """What came out for one case: a tag, and what to print of it."""
    seed, gated = case
    data, network = problem_of(seed, gated)
    if not data[1].any():
        return "dead", None
    try:
        solution = solve(*data, **network, solver=Solver(tolerance=1e-7))
    except (ConvergenceError, RankError) as error:
        return type(error).__name__, (case, network, str(error)[:60])
    minima = others(solution, seed) if gated else scanned(*data, **network)
    if not len(minima):
        return "nothing to compare with", None
    slack = 1e-5 * (1 + abs(solution.hamiltonian))
    several = np.ptp(np.append(minima, solution.hamiltonian)) > slack
    if solution.hamiltonian > minima.min() + slack:
        return "wrong", (case, network, solution.hamiltonian, minima, solution.starts)
    return "several minima, the lowest found" if several else "one minimum", None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=1200)
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    rows, begin = [], time.time()
    for gated, name in ((False, "one open gate"), (True, "2 to 6 gates")):
        with multiprocessing.Pool(arguments.workers) as pool:
            found = pool.map(judge, [(seed, gated) for seed in range(arguments.cases // 2)], chunksize=4)
        for tag, what in found:
            if what:
                print(tag, what, flush=True)
        counts = Counter(tag for tag, _ in found)
        print(name, dict(counts), flush=True)
        rows += [f"| {name} | {tag} | {count} |" for tag, count in sorted(counts.items())]
    told = __doc__.split("\n\n", 2)[2].replace(" Writes docs/benchmarks/minima.md.", "").strip()
    text = ["# The lowest minimum at T > 0", "", told, ""]
    text += [
        "| gates | outcome | cases |",
        "|---|---|--:|",
        *rows,
        "",
        f"`python benchmarks/minima.py`, {time.time() - begin:.0f} s.",
    ]
    OUTPUT.mkdir(parents=True, exist_ok=True)
    (OUTPUT / "minima.md").write_text("\n".join(text) + "\n")


if __name__ == "__main__":
    main()
