"""Which of two quantities is nearer to a third."""

import numpy as np
from pydantic import Field

from ggdln.study.conditions import Comparison, Condition


class Closer(Condition):
    """Nearer to the reference than the other quantity is, on average over the points."""

    meaning = "mean relative distance from the reference, minus that of the other"

    other: Comparison = Field(description="What is farther from the reference")
    reference: Comparison = Field(description="What both are compared with")

    def test(self, x, values, *, other, reference, **_):
        mine, theirs = (np.abs(y / reference - 1).mean() for y in (values, other))
        return mine < theirs, mine - theirs

    def words(self):
        return f"closer to {self.reference.words()} than {self.other.words()}"
