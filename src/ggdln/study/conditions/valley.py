"""A quantity with a minimum inside the sweep."""

import numpy as np
from pydantic import Field

from ggdln.study.conditions import Condition
from ggdln.study.conditions.rises import rank_correlation


class Valley(Condition):
    """Falls to a minimum inside the sweep, and rises from there."""

    points = 3
    meaning = "depth of the minimum below the lower end, relative to the minimum"

    margin: float = Field(0.01, ge=0, description="Least depth of a valley, relative to its minimum")
    strength: float = Field(0.5, gt=0, le=1, description="Least size of Kendall's rank correlation on either side")
    at: float | None = Field(None, ge=-1e9, description="Point of the sweep at which a valley has its minimum")

    def test(self, x, values, **_):
        low = int(np.argmin(values))
        depth = min(values[0], values[-1]) / values[low] - 1
        if low in (0, len(x) - 1) or depth < self.margin or self.at not in (None, x[low]):
            return False, depth
        before, after = rank_correlation(x[: low + 1], values[: low + 1]), rank_correlation(x[low:], values[low:])
        return -before >= self.strength and after >= self.strength, depth

    def words(self):
        at = "" if self.at is None else f" at {self.at:g}"
        sides = f"Kendall's tau beyond {self.strength:g} on both sides"
        return f"minimum inside the sweep{at}, at least {100 * self.margin:g} % below both ends; {sides}"
