"""Random gates with receptive fields: each sees one block of the input dimensions only."""

import numpy as np
from pydantic import Field

from ggdln.core import seeds
from ggdln.core.errors import InputError
from ggdln.core.problems import Problem
from ggdln.gates.random import Random


class Local(Random):
    """M / subsets gates for each block of N0 / subsets input dimensions, in the order of the blocks.

    V is zero outside a gate's block.
    """

    subsets: int = Field(ge=1, le=10_000, description="Number m of subsets of input dimensions")

    @property
    def blocks(self):
        return self.subsets

    def problems(self, task):
        found, N0 = [], task.sizes().N0
        if self.M % self.subsets:
            found.append(Problem("gates.M", self.M, f"multiples of gates.subsets = {self.subsets}"))
        if N0 % self.subsets:
            found.append(Problem("gates.subsets", self.subsets, f"divisors of the input dimension {N0}"))
        return found

    def fit(self, x, *, subtask, seed, draw):
        N0 = x.shape[1]
        if self.M % self.subsets or N0 % self.subsets:
            raise InputError(f"M, N0: got {self.M}, {N0}; accepted: multiples of subsets = {self.subsets}")
        field_of = np.arange(self.M) * self.subsets // self.M
        block_of = np.arange(N0) * self.subsets // N0
        V = seeds.rng(seed, "local", "gates", draw).standard_normal((self.M, N0))
        return {"weights": V * (field_of[:, None] == block_of)}, {}
