"""A rank that counts the independent effective inputs."""

import numpy as np
from pydantic import Field

from ggdln.study.conditions._capacity import AtCapacity


class Counts(AtCapacity):
    """Equal to the capacity, or to the number of examples that open a gate where that is smaller."""

    meaning = "largest relative difference"
    also = ("dead",)

    relative: float = Field(0.0, ge=0, description="Relative tolerance")

    def test(self, x, values, *, dead, experiment, **_):
        expected = np.minimum(self.capacities(x, experiment), experiment["task"]["P"] - dead)
        difference = np.abs(values - expected) / expected
        return difference.max() <= self.relative, difference.max()

    def words(self):
        examples = "the number of examples that open a gate"
        return f"equal to the {self.capacity_words()}, or to {examples}, up to {100 * self.relative:g} %"
