"""The exact posterior at any width, by Hamiltonian Monte Carlo on the order parameters."""

import math
from typing import ClassVar

from pydantic import Field

from ggdln.core.kinds import Costs, Look, Terms, Variable
from ggdln.experiments.methods import ERRORS, Method
from ggdln.observables import observe
from ggdln.theory.ensemble import ensemble_statistics
from ggdln.theory.exact import solve_exact
from ggdln.theory.solution import Solver


class Exact(Method):
    """Exact posterior, by sampling the order parameters"""

    look: ClassVar[Look] = Look("exact posterior", "teal", marker="s", markerfacecolor="white")
    needs: ClassVar[dict] = Method.needs | {"T": "a temperature above 0"}
    several_outputs: ClassVar[bool] = True
    offers: ClassVar[tuple] = ("kernel", "order_parameters")
    costs: ClassVar[Costs] = Costs(
        {"points": 0.5, "start": 1.41, "factors": 0.03, "powers": 0.7},
        {"inputs": 1.72, "kernels": 2.5, "powers": 60.1, "start": 145.0},
    )
    variables: ClassVar[dict[str, Variable]] = {
        **ERRORS,
        "bias": Variable("bias", "bias", "mean over test inputs of (<f(x)> - y(x))^2"),
        "variance": Variable("variance", "variance", "mean over test inputs of <df(x)^2>"),
        "generalization_error": Variable("generalization error", "epsilon_g", "bias + variance"),
        "error_rate": Variable("error rate", "", "mean over test inputs of the chance of the wrong sign or class"),
        "largest_rhat": Variable("largest R-hat of energy and order parameters"),
        "least_ess": Variable("smallest effective sample size of energy and order parameters"),
        "mixed": Variable("chains have mixed: R-hat at most 1.05 and effective sample size at least 100"),
        "acceptance": Variable("share of accepted trajectories"),
        "evaluations": Variable("factorizations of the kernel that the samples took"),
    }

    chains: int = Field(4, ge=2, le=100_000, description="Independent chains for each draw and point")
    samples: int = Field(60, ge=4, le=1_000_000, description="Samples kept of each chain")
    rounds: int = Field(
        4, ge=1, le=1000, description="Most rounds of so many samples; the next is made if chains haven't mixed"
    )
    tolerance: float = Field(1e-6, gt=0, le=0.001, description="Residual of the saddle point from which the chains start")

    def measure(self, point):
        return [self._at(point, network) for network in point.networks]

    def _at(self, point, network):
        sample, task = point.sample, point.sample.task
        solution = solve_exact(
            *(task.x, sample.g, task.y),
            width=network["N"],
            depth=network["L"],
            sigma=network["sigma"],
            temperature=network["T"],
            draws=self.samples,
            chains=self.chains,
            rounds=self.rounds,
            seed=point.stream("exact"),
            solver=Solver(tolerance=self.tolerance),
        )
        means, variances = solution.conditional_everywhere(task.x_test, sample.g_test)
        found = ensemble_statistics(means, task.y_test, variances=variances)
        names = [name for error in ERRORS for name in (error.removesuffix("_error"), error)]
        return {
            **{name: found[name] for name in names},
            "largest_rhat": solution.rhat,
            "least_ess": solution.ess,
            "mixed": solution.mixed,
            "acceptance": solution.acceptance,
            "evaluations": solution.evaluations,
            **observe(point.observables, solution, sample, self.offers),
        }

    def terms(self, sizes, M, network, *, runs, memory_mb):
        """Some four kernels for a sample, and another one for its predictions."""
        depth, samples = network["L"], self.chains * (self.samples + 15) + 40
        powers = sizes.C * min(math.comb(M + depth - 1, depth), sizes.P, 2 ** min(M, 60))
        kernels = sizes.pairs**2 * (4 * sizes.pairs + sizes.C * sizes.P_t)
        return Terms(
            {"factors": samples * kernels / 1e9, "powers": samples * depth * powers**3 / 1e9},
            {"kernels": 8 * sizes.pairs * sizes.C * (sizes.P + sizes.P_t) / 1e6, "powers": 8 * sizes.pairs * powers / 1e6},
        )
