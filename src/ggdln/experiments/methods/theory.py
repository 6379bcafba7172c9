"""The finite-width theory."""

import math
from typing import ClassVar

import numpy as np
from pydantic import Field

from ggdln.core.errors import InputError
from ggdln.core.kinds import Costs, Look, Terms, Variable
from ggdln.experiments.methods import Method
from ggdln.observables import observe, wanted
from ggdln.theory.loops import one_loop
from ggdln.theory.solution import TABLE, Solver, solve_sweep

ENOUGH = 100
"""Test inputs that tell whether a correction can be trusted."""


class Theory(Method):
    """Finite-width theory"""

    look: ClassVar[Look] = Look("theory", "ink", linestyle="-")
    several_outputs: ClassVar[bool] = True
    offers: ClassVar[tuple] = ("predict", "kernel", "order_parameters")
    costs: ClassVar[Costs] = Costs(
        {"factors": 0.255, "points": 0.0185, "powers": 18.0, "start": 1.41},
        {"inputs": 1.72, "kernels": 2.19, "powers": 60.1, "start": 145.0},
    )
    variables: ClassVar[dict[str, Variable]] = {
        "training_error": Variable("training error", "epsilon_t", "mean over training inputs of (<f(x)> - Y)^2"),
        **TABLE,
        "evaluations": Variable("factorizations of the kernel that the solve took"),
        "trusted": Variable("one loop: whether the next order of the variance is at most half of the correction"),
        "dead": Variable("training inputs without an active gate", "", "g(x) = 0"),
    }

    tolerance: float = Field(
        1e-8,
        gt=0,
        le=0.001,
        description="Largest residual of the saddle-point equation, relative to its terms, that counts as solved",
    )
    max_evaluations: int = Field(500, ge=1, le=1_000_000, description="Most factorizations of the kernel in one solve")
    loops: int | None = Field(None, ge=0, le=1, description="1 for predictions and evidence corrected to order 1/N")

    def measure(self, point):
        """Sweeps of width or prior follow the saddle point from value to value; other parameters begin anew."""
        sample, networks = point.sample, point.networks
        swept = "sigma" if len({network["sigma"] for network in networks}) > 1 else "N"
        chains = {}
        for i, network in enumerate(networks):
            fixed = tuple(value for key, value in sorted(network.items()) if key != swept)
            chains.setdefault(fixed, []).append(i)
        results = [None] * len(networks)
        for indices in chains.values():
            network = networks[indices[0]]
            values = [networks[i][swept] for i in indices]
            along = (
                {"sigmas": values, "width": network["N"]} if swept == "sigma" else {"widths": values, "sigma": network["sigma"]}
            )
            solutions = solve_sweep(
                sample.task.x,
                sample.g,
                sample.task.y,
                depth=network["L"],
                temperature=network["T"],
                solver=Solver(tolerance=self.tolerance, max_evaluations=self.max_evaluations),
                **along,
            )
            for i in indices:
                # A solution that has made predictions holds a kernel; let go of each before the next.
                results[i] = self._at(point, solutions.pop(0))
        return results

    def _at(self, point, solution):
        task, g = point.sample.task, point.sample.g
        if solution.temperature > 0:
            fitted, _ = solution.predict(task.x, g)
            training_error = np.mean((fitted - task.y) ** 2)
        else:
            # Every live training input is fitted exactly; a dead one is predicted 0.
            training_error = np.sum(task.y[~g.any(axis=1)] ** 2) / task.y.size
        found = {
            "training_error": training_error,
            "hamiltonian": solution.hamiltonian,
            "log_evidence": solution.log_evidence,
            "residual": solution.residual,
            "evaluations": solution.evaluations,
            "dead": solution.dead,
            **observe(point.observables, solution, point.sample, self.offers),
        }
        return found | self._corrected(point, solution) if self.loops else found

    def _corrected(self, point, solution):
        """What one loop changes; NaN where the network is too narrow for the expansion."""
        task = point.sample.task
        try:
            corrected = one_loop(solution, self.loops)
        except InputError:
            names = [name for one in wanted(point.observables, ("predict",)) for name in one.variables]
            return dict.fromkeys(["log_evidence", "trusted", *names], np.nan)
        return {
            "log_evidence": corrected.log_evidence,
            "evaluations": corrected.evaluations,
            "trusted": float(corrected.trusted(task.x_test[:ENOUGH], point.sample.g_test[:ENOUGH])),
            **observe(point.observables, corrected, point.sample, ("predict",)),
        }

    def terms(self, sizes, M, network, *, runs, memory_mb):
        everywhere, depth = sizes.pairs * sizes.C * (sizes.P + sizes.P_t), network["L"]
        # Distinct products of L gates, of which there are no more than distinct inputs or sets of open gates, for each output.
        powers = sizes.C * min(math.comb(M + depth - 1, depth), sizes.P, 2 ** min(M, 60))
        return Terms(
            {"factors": sizes.pairs * everywhere / 1e9, "powers": depth * sizes.pairs * powers**2 / 1e9},
            {"kernels": 8 * everywhere / 1e6, "powers": 8 * sizes.pairs * powers / 1e6},
        )
