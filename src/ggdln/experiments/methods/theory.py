"""The finite-width theory as a method."""

import numpy as np

from ggdln.observables import block_ratio, observe
from ggdln.theory.solution import solve_sweep


def measure(curve, task, gates, draw, point):
    """Observables at each width, depth and prior; sweeps of width or prior follow the saddle point from point to point."""
    g, g_test = gates(task.x, task.task), gates(task.x_test, task.task_test)
    networks = curve.inner_points()
    results = [None] * len(networks)
    swept = "sigma" if "network.sigma" in curve.sweep else "N"
    chains = {}
    for i, network in enumerate(networks):
        fixed = tuple(value for key, value in sorted(network.items()) if key != swept)
        chains.setdefault(fixed, []).append(i)
    for indices in chains.values():
        network = networks[indices[0]]
        values = [networks[i][swept] for i in indices]
        along = {"sigmas": values, "width": network["N"]} if swept == "sigma" else {"widths": values, "sigma": network["sigma"]}
        solutions = solve_sweep(task.x, g, task.y, depth=network["L"], temperature=network["T"], **along, **curve.settings)
        for i in indices:
            # A solution that has made predictions holds a kernel; let go of each before the next.
            results[i] = _measure(curve, task, g, g_test, solutions.pop(0))
    return results


def _measure(curve, task, g, g_test, solution):
    if solution.temperature > 0:
        fitted, _ = solution.predict(task.x, g)
        training_error = np.mean((fitted - task.y) ** 2)
    else:
        # Every live training input is fitted exactly; a dead one is predicted 0.
        training_error = np.sum(task.y[~g.any(axis=1)] ** 2) / len(task.y)
    result = {
        "training_error": training_error,
        "hamiltonian": solution.hamiltonian,
        "residual": solution.residual,
        "evaluations": solution.evaluations,
        "dead": solution.dead,
        **observe(curve.observables, solution, task, g, g_test),
    }
    if "order_parameter" in result and "subsets" in curve.gates:
        result["block_ratio"] = block_ratio(result["order_parameter"].values, curve.gates["subsets"])
    return result
