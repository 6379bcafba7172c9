"""Where a network reaches capacity, for conditions on a sweep over the number of gates M."""

from typing import ClassVar, Literal

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


class Onset(AtCapacity):
    """Zero on one side of capacity and not on the other; a point within half a gate of capacity may be either.

    Kinds say in words `where` it is zero; expected(x, critical): at which points that is; change(x, zero): the first point
    after the change between zero and not zero.
    """

    points = 3
    meaning = "gates from capacity to the change"
    where: ClassVar[str]

    relative: float = Field(1e-6, ge=0, description="What counts as zero, relative to the largest value")

    def test(self, x, values, *, experiment, **_):
        critical = self.critical(experiment)
        zero = values <= self.relative * values.max()
        # With a whole number of gates at capacity, that point is on neither side.
        judged = np.abs(x - critical) > 0.5 if np.isclose(critical, round(critical)) else np.ones(len(x), dtype=bool)
        met = np.array_equal(zero[judged], self.expected(x, critical)[judged])
        reached = x[x > critical - 1e-9].min(initial=x.max())
        return met, np.clip(self.change(x, zero) - reached, x.min() - x.max(), x.max() - x.min())

    def words(self):
        return f"zero (up to {self.relative:g} of its largest value) {self.where}; {self.capacity_words()}"
