"""Where a network reaches capacity, for conditions on a sweep over the number of gates M."""

from typing import Literal

import numpy as np
from pydantic import Field

from ggdln.study.conditions import Condition
from ggdln.theory.capacity import capacity, gates_at_capacity


class AtCapacity(Condition):
    """A condition on what happens where the capacity of a gated network reaches the number P of examples."""

    formula: Literal["generic", "binary"] = Field(
        description="Capacity for generic gates, N_0 C(M+L-1, L), or for binary ones, N_0 sum_k C(M, k)"
    )
    depth: int = Field(ge=1, description="Depth for which capacity is taken")

    def critical(self, experiment):
        """The number of gates, which may be fractional, at which P examples reach capacity."""
        task = experiment["task"]
        return gates_at_capacity(task["N0"], task["P"], self.depth, binary=self.formula == "binary")

    def capacities(self, M, experiment):
        """The capacity with each number of gates M."""
        N0, binary = experiment["task"]["N0"], self.formula == "binary"
        return np.array([round(capacity(N0, m, self.depth, binary=binary)) for m in M])

    def capacity_words(self):
        return f"capacity for {self.formula} gates at depth {self.depth}"
