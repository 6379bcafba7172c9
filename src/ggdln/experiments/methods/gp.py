"""The infinite-width limit as a method."""

import xarray as xr

from ggdln.theory.kernels import normalized_gp_kernel
from ggdln.observables import observe
from ggdln.theory.gp import gp_limit

MEASURED = ("predictor", "kernel_shape", "task_correlation", "kernel_blocks")
"""Observables of the limit; the others are about the order parameters, which are trivial there."""


def measure(curve, task, gates, draw, point):
    """Predictor statistics and the shape of the kernel at each depth and prior."""
    g, g_test = gates(task.x, task.task), gates(task.x_test, task.task_test)
    return [_measure(curve, task, g, g_test, network) for network in curve.inner_points()]


def _measure(curve, task, g, g_test, network):
    if "kernel_profile" in curve.observables:
        profile = normalized_gp_kernel(task.x[:1], g[:1], task.x_test, g_test, depth=network["L"])[0]
        return {"kernel_profile": xr.DataArray(profile, coords={"theta": task.notes["theta"][1]}, dims="theta")}
    solution = gp_limit(
        task.x,
        g,
        task.y,
        depth=network["L"],
        sigma=network["sigma"],
        temperature=network["T"],
        rank_tolerance=curve.settings["rank_tolerance"],
    )
    names = [name for name in curve.observables if name in MEASURED]
    return {
        "training_error": solution.train_error,
        "rank": solution.rank,
        "dead": solution.dead,
        **observe(names, solution, task, g, g_test),
    }
