"""Gates that are always open; with M = 1 the network is linear."""

from typing import ClassVar

import numpy as np

from ggdln.core.kinds import Variable
from ggdln.gates import Gates


class Open(Gates):
    """g_m(x) = 1 for every input."""

    dims: ClassVar[dict[str, tuple]] = {}
    variables: ClassVar[dict[str, Variable]] = {}

    def fit(self, x, *, subtask, seed, draw):
        return {}, {}

    def values(self, x, subtask):
        return np.ones((len(x), self.M))
