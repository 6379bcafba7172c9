"""A kind of a user's own."""

import numpy as np

from ggdln.core import seeds
from ggdln.gates import Gates


class Slanted(Gates):
    """Random half-spaces of positive weights."""

    def fit(self, x, *, subtask, seed, draw):
        return {"weights": np.abs(seeds.rng(seed, "slanted", draw).standard_normal((self.M, x.shape[1])))}, {}

    def values(self, x, subtask, *, weights):
        return (x @ weights.T > 0).astype(float)
