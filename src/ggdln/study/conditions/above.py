"""A quantity above another, point by point within a draw."""

from typing import ClassVar

import numpy as np
from pydantic import Field

from ggdln.study.conditions import Comparison, Condition


class Above(Condition):
    """On the side `sign` of the other quantity, at nearly every point."""

    meaning = "relative difference, mean over the points"
    sign: ClassVar[int] = 1

    other: Comparison = Field(description="What the quantity is compared with")
    share: float = Field(0.9, gt=0, le=1, description="Least share of the points at which a draw has to meet the condition")

    def test(self, x, values, *, other, **_):
        difference = (values - other) / np.abs(other)
        return np.mean(self.sign * difference > 0) >= self.share, difference.mean()

    def words(self):
        return f"{self.kind_name()} {self.other.words()} at {100 * self.share:g} % of the points or more"
