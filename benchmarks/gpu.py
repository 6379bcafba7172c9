"""Every simulation on the GPUs of this machine and on its CPU: whether the numbers agree, and what each takes.

make check-gpu                                  or  python benchmarks/gpu.py
python benchmarks/gpu.py --width 1000 --runs 64     at other sizes
"""

import argparse
import sys
import time

import numpy as np
import torch

from ggdln.networks.device import devices
from ggdln.networks.gibbs import sample_posterior
from ggdln.networks.langevin import langevin
from ggdln.networks.settings import Runtime, Sampling, Training
from ggdln.networks.training import train_ensemble, train_relu

LIMITS = {"float32": 1e-2, "float64": 1e-5}
"""Largest difference of predictions, relative to their norm: devices share initial weights and random numbers."""


def task(points, inputs=100, gates=8, tests=100):
    """Gaussian inputs, random 0/1 gates and labels of a linear teacher with noise."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((points + tests, inputs))
    g = (x @ rng.standard_normal((inputs, gates)) > 0).astype(float)
    g[:, 0] = 1
    y = x @ rng.standard_normal(inputs) / np.sqrt(inputs) + 0.1 * rng.standard_normal(points + tests)
    return x[:points], g[:points], y[:points], x[points:], g[points:]


def simulations(points, width, runs):
    """Name -> precision and a function of a `Runtime`."""
    data = task(points)
    x, _, y, x_test, _ = data
    chains = Sampling(chains=runs, draws=10, warmup=40, thin=1)
    sampled = dict(width=width, temperature=0.1, seed=1, sampling=chains)
    descent = Training("descent", max_steps=50)
    return {
        "gradient flow": ("float32", lambda r: train_ensemble(*data, width=width, runs=runs, seed=1, runtime=r)),
        "gradient flow, depth 2": (
            "float32",
            lambda r: train_ensemble(*data, width=width, depth=2, runs=runs, seed=1, runtime=r),
        ),
        "50 steps of descent": (
            "float32",
            lambda r: train_ensemble(*data, width=width, runs=runs, seed=1, training=descent, runtime=r),
        ),
        "ReLU, gradient flow": ("float32", lambda r: train_relu(x, y, x_test, width=width, runs=runs, seed=1, runtime=r)),
        "50 steps of Langevin": ("float32", lambda r: langevin(*data, runtime=r, **sampled)),
        "50 sweeps of Gibbs": ("float64", lambda r: sample_posterior(*data, runtime=r, **sampled)),
    }


def timed(function, device, dtype):
    """Predictions, and the seconds that they took."""
    start = time.perf_counter()
    prediction = function(Runtime(device=device, dtype=dtype)).prediction.values
    return prediction, time.perf_counter() - start


def compare(cards, points, width, runs):
    """Print a table; whether all numbers agree."""
    print("| simulation | device | CPU, s | device, s | times faster | difference | |")
    print("|---|---|--:|--:|--:|--:|---|")
    well = True
    for name, (dtype, function) in simulations(points, width, runs).items():
        expected, seconds = timed(function, "cpu", dtype)
        for card in cards:
            if card == "mps" and dtype == "float64":
                print(f"| {name} | {card} | {seconds:.2f} | | | | has no float64 |")
                continue
            timed(function, card, dtype)  # the first call loads libraries
            found, took = timed(function, card, dtype)
            difference = np.linalg.norm(found - expected) / np.linalg.norm(expected)
            agrees = bool(difference <= LIMITS[dtype])  # not for NaN
            well &= agrees
            verdict = "agrees" if agrees else f"DIFFERS by more than {LIMITS[dtype]:g}"
            print(
                f"| {name} | {card} | {seconds:.2f} | {took:.2f} | {seconds / took:.1f} | {difference:.1e} | {verdict} |",
                flush=True,
            )
    return well


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=300, help="training inputs")
    parser.add_argument("--width", type=int, default=300, help="units of a layer")
    parser.add_argument("--runs", type=int, default=16, help="networks or chains at once")
    sizes = parser.parse_args(arguments)
    cards = [name for name in devices() if name not in ("cpu", "cuda")]
    if not cards:
        print(f"torch {torch.__version__} finds no GPU here, only the CPU: nothing to compare.")
        return 0
    return 0 if compare(cards, sizes.points, sizes.width, sizes.runs) else 1


if __name__ == "__main__":
    sys.exit(main())
