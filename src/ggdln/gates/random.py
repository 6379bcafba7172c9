"""Random half-spaces: each gate is open on one side of a random hyperplane."""

from typing import ClassVar

import numpy as np

from ggdln.core import seeds
from ggdln.core.kinds import Variable
from ggdln.gates import Gates, Threshold, drive


class Random(Gates):
    """g_m(x) = 1 if V_m.x / sqrt(N0) > b, else 0, with Gaussian V (M, N0)."""

    variables: ClassVar[dict[str, Variable]] = Gates.variables | {"b": Variable("threshold of the gates", "b")}

    b: Threshold = 0.0

    def fit(self, x, *, subtask, seed, draw):
        return {"weights": seeds.rng(seed, "random", "gates", draw).standard_normal((self.M, x.shape[1]))}, {}

    def values(self, x, subtask, *, weights):
        return (drive(x, weights, self.b) > 0).astype(np.float64)
