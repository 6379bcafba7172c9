"""A quantity that is zero on one side of capacity, and not on the other."""

from typing import ClassVar

import numpy as np
from pydantic import Field

from ggdln.study.conditions._capacity import AtCapacity


class Onset(AtCapacity):
    """Zero exactly where `expected` says so; a point within half a gate of capacity may be either."""

    points: ClassVar[int] = 3
    meaning: ClassVar[str] = "gates from capacity to the change"
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

    def expected(self, x, critical):
        """Where the quantity should be zero."""
        raise NotImplementedError

    def change(self, x, zero):
        """The first point after the change between zero and not zero."""
        raise NotImplementedError

    def words(self):
        return f"zero (up to {self.relative:g} of its largest value) {self.where}; {self.capacity_words()}"
