"""A quantity that rises along the sweep, by the order of the values alone: neither the scale of the axis nor theirs matters."""

from typing import ClassVar

import numpy as np
from pydantic import Field

from ggdln.study.conditions import Condition

SAME = 1e-9
"""Relative spread up to which values are one value with rounding errors, which have no trend."""


class Rises(Condition):
    """Kendall's rank correlation tau with x, beyond `strength` in the direction of `sign`."""

    points = 3
    meaning = "relative change from the first to the last third of the sweep"
    sign: ClassVar[int] = 1

    strength: float = Field(0.5, gt=0, le=1, description="Least size of Kendall's rank correlation along the sweep")

    def test(self, x, values, **_):
        third = max(1, len(x) // 3)
        change = (values[-third:].mean() - values[:third].mean()) / np.abs(values).mean()
        if np.ptp(values) <= SAME * np.abs(values).max():
            return False, change
        return self.sign * rank_correlation(x, values) >= self.strength, change

    def words(self):
        bound = f">= {self.strength:g}" if self.sign > 0 else f"<= -{self.strength:g}"
        return f"{self.kind_name()}: Kendall's tau {bound}"


def rank_correlation(x, values):
    """Kendall's tau."""
    from scipy.stats import kendalltau  # a slow import, which every call of Snakemake would wait for

    return kendalltau(x, values).statistic
