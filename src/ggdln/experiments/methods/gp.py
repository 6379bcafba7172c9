"""The infinite-width limit."""

from typing import ClassVar

from pydantic import Field

from ggdln.core.kinds import Costs, Look, Terms, Variable
from ggdln.core.variables import LOG_EVIDENCE
from ggdln.experiments.methods import Method
from ggdln.observables import observe
from ggdln.theory.gp import gp_limit
from ggdln.theory.regression import RANK_TOLERANCE


class Gp(Method):
    """Infinite-width limit"""

    look: ClassVar[Look] = Look("infinite width", "blue", linestyle="--")
    ignores: ClassVar[tuple] = ("N",)
    needs: ClassVar[dict] = {}
    offers: ClassVar[tuple] = ("predict", "kernel")
    needs_labels: ClassVar[bool] = False
    several_outputs: ClassVar[bool] = True
    costs: ClassVar[Costs] = Costs(
        {"factors": 0.022, "kernels": 0.0814, "points": 0.00234, "start": 1.21},
        {"inputs": 2.11, "kernels": 2.6, "start": 113.0},
    )
    variables: ClassVar[dict[str, Variable]] = {
        "training_error": Variable("training error", "epsilon_t", "mean over training inputs of (<f(x)> - Y)^2"),
        "rank": Variable("rank of the kernel matrix", "", "rank K_GP"),
        "log_evidence": LOG_EVIDENCE,
        "dead": Variable("training inputs without an active gate", "", "g(x) = 0"),
    }

    rank_tolerance: float = Field(
        RANK_TOLERANCE,
        gt=0,
        le=0.01,
        description="A direction counts as independent if its squared length exceeds this share of the largest",
    )

    def measure(self, point):
        return [self._at(point, network) for network in point.networks]

    def _at(self, point, network):
        sample = point.sample
        solution = gp_limit(
            sample.task.x,
            sample.g,
            sample.task.y,
            depth=network["L"],
            sigma=network["sigma"],
            temperature=network["T"],
            rank_tolerance=self.rank_tolerance,
        )
        return {
            "training_error": solution.train_error,
            "rank": solution.rank,
            "log_evidence": solution.log_evidence,
            "dead": solution.dead,
            **observe(point.observables, solution, sample, self.offers),
        }

    def terms(self, sizes, M, network, *, runs, memory_mb):
        everywhere = sizes.P * (sizes.P + sizes.P_t)
        return Terms(
            {"factors": sizes.P * everywhere / 1e9, "kernels": everywhere * (sizes.N0 + M) / 1e9},
            {"kernels": 8 * everywhere / 1e6},
        )
