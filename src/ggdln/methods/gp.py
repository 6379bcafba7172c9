"""The infinite-width limit as a method."""

import xarray as xr

from ggdln.kernels import normalized_gp_kernel
from ggdln.statistics import predictor_statistics
from ggdln.theory.gp import gp_limit


def measure(curve, task, gates):
    """Predictor statistics, or the shape of the kernel, at each depth and prior."""
    g, g_test = gates(task.x, task.task), gates(task.x_test, task.task_test)
    results = []
    for network in curve.inner_points():
        result = {}
        if "predictor" in curve.observables:
            result |= _predictor(task, g, g_test, network, curve.settings)
        if "kernel_profile" in curve.observables:
            profile = normalized_gp_kernel(task.x[:1], g[:1], task.x_test, g_test, depth=network["L"])[0]
            result["kernel_profile"] = xr.DataArray(profile, coords={"theta": task.notes["theta"][1]}, dims="theta")
        results.append(result)
    return results


def _predictor(task, g, g_test, network, settings):
    solution = gp_limit(
        task.x,
        g,
        task.y,
        depth=network["L"],
        sigma=network["sigma"],
        temperature=network["T"],
        rank_tolerance=settings["rank_tolerance"],
    )
    mean, variance = solution.predict(task.x_test, g_test)
    return {
        "training_error": solution.train_error,
        **predictor_statistics(mean, variance, task.y_test),
        "rank": solution.rank,
        "dead": solution.dead,
    }
