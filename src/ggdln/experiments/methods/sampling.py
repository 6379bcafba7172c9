"""Samples of the posterior as a method: Langevin dynamics, and exact Gibbs sampling."""

from pathlib import Path

from ggdln.core import seeds
from ggdln.networks.gibbs import sample_posterior
from ggdln.networks.langevin import langevin
from ggdln.experiments.methods.averaging import over_runs
from ggdln.experiments.methods.readout import readout_observables

SAMPLERS = {"langevin": langevin, "posterior": sample_posterior}


def sample(curve, task, gates, draw, point, *, machine, state):
    """Statistics over the chains of a sampler at each inner point, with its diagnostics."""
    g, g_test = gates(task.x, task.task), gates(task.x_test, task.task_test)
    settings = {"draws" if key == "samples" else key: value for key, value in curve.settings.items()}
    results = []
    for i, network in enumerate(curve.inner_points()):
        chains = SAMPLERS[curve.method](
            task.x,
            g,
            task.y,
            task.x_test,
            g_test,
            width=network["N"],
            depth=network["L"],
            sigma=network["sigma"],
            temperature=network["T"],
            seed=seeds.entropy(curve.seed, curve.method, draw),
            checkpoint=Path(state) / f"draw_{draw}_point_{point}_{i}.npz",
            **machine,
            **settings,
        )
        use = (chains.status == 0).values
        result = {
            "training_error": float(chains.train_mse.values[use].mean()),
            "runs_used": int(use.sum()),
            "runs_failed": int((~use).sum()),
            "largest_rhat": chains.attrs["largest_rhat"],
            "least_ess": chains.attrs["least_ess"],
            "mixed": bool(chains.attrs["mixed"]),
            **over_runs(chains.prediction.values, task.y_test, use),
        }
        results.append(result | readout_observables(curve, chains.U.values[use].mean(axis=0), task, gates))
    return results
