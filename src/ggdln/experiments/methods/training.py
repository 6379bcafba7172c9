"""Trained networks as a method: gated networks by gradient descent, and ReLU networks.

Training is split into blocks of runs, which `ggdln.experiments.methods.averaging` puts together.
"""

from pathlib import Path

import numpy as np

from ggdln.core import seeds
from ggdln.networks.training import train_ensemble, train_relu
from ggdln.experiments.methods.readout import NEEDS_U


def train(curve, task, gates, draw, point, *, runs, machine, state):
    """Predictions of the networks numbered by the range `runs`, at each inner point."""
    results = []
    for i, network in enumerate(curve.inner_points()):
        common = {
            "width": network["N"],
            "sigma": network["sigma"],
            "runs": len(runs),
            "first_run": runs.start,
            "seed": seeds.entropy(curve.seed, curve.method, draw),
            "checkpoint": Path(state) / f"draw_{draw}_point_{point}_{i}.npz",
            **machine,
            **curve.settings,
        }
        if curve.method == "relu":
            trained = train_relu(task.x, task.y, task.x_test, **common)
        else:
            g, g_test = gates(task.x, task.task), gates(task.x_test, task.task_test)
            trained = train_ensemble(task.x, g, task.y, task.x_test, g_test, depth=network["L"], **common)
        kept = trained[["prediction", "train_mse", "steps", "status"]]
        kept["prediction"] = kept.prediction.astype(np.float32)
        result = dict(kept.data_vars)
        if set(NEEDS_U) & set(curve.observables):
            result["U"] = trained.U.rename(m="gate", n="gate2")
        results.append(result)
    return results
