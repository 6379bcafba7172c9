"""A quantity that diverges at capacity."""

import numpy as np
from pydantic import Field

from ggdln.study.conditions._capacity import AtCapacity


class Peak(AtCapacity):
    """At capacity, or one point of the sweep beside it, much larger than the least value on either side."""

    points = 3
    meaning = "decimal logarithm of the height over the higher foot of the peak"

    factor: float = Field(3.0, gt=1, description="Least height of a peak over its feet")

    def test(self, x, values, *, experiment, **_):
        nearest = int(np.searchsorted(x, self.critical(experiment) - 1e-9))
        first, last = max(nearest - 1, 0), min(nearest + 1, len(x) - 1)
        if first == 0 or last == len(x) - 1:
            return False, 0.0
        height = values[first : last + 1].max() / max(values[:first].min(), values[last + 1 :].min())
        return height >= self.factor, np.log10(height)

    def words(self):
        height = f"at least {self.factor:g} times the least value on either side"
        return f"within one point of capacity {height}; {self.capacity_words()}"
