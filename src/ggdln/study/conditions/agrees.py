"""A quantity that equals another, up to a tolerance and its error."""

import numpy as np
from pydantic import Field

from ggdln.study.conditions import Comparison, Condition


class Agrees(Condition):
    """|value - other| <= absolute + relative |other| + 2 standard errors, at nearly every point.

    Where two standard errors are larger than the other quantity itself nothing can be told, and the point doesn't count as met.
    """

    meaning = "relative difference, mean over the points"

    other: Comparison = Field(description="What the quantity is compared with")
    relative: float | None = Field(None, ge=0, description="Relative tolerance")
    absolute: float | None = Field(None, ge=0, description="Absolute tolerance")
    share: float = Field(0.9, gt=0, le=1, description="Least share of the points at which a draw has to meet the condition")

    def test(self, x, values, *, other, error, **_):
        difference, absolute = values - other, self.absolute or 0.0
        allowed = absolute + (self.relative or 0.0) * np.abs(other) + 2 * error
        told = 2 * error <= np.maximum(np.abs(other), absolute)
        return np.mean(told & (np.abs(difference) <= allowed)) >= self.share, (difference / np.abs(other)).mean()

    def words(self):
        terms = [] if self.relative is None else [f"{100 * self.relative:g} %"]
        terms += [] if self.absolute is None else [f"{self.absolute:g}"]
        within = " and ".join([*terms, "two standard errors"])
        return f"within {within} of {self.other.words()} at {100 * self.share:g} % of the points or more"
