"""A quantity that doesn't depend on the axis of the sweep."""

import numpy as np
from pydantic import Field

from ggdln.study.conditions import Condition


class Constant(Condition):
    """The same at every point, up to a relative tolerance."""

    points = 2
    meaning = "relative spread along the sweep"

    relative: float = Field(ge=0, description="Relative tolerance")

    def test(self, x, values, **_):
        spread = np.ptp(values) / np.abs(values).mean()
        return spread <= self.relative, spread

    def words(self):
        return f"constant up to {self.relative:g} of its value"
