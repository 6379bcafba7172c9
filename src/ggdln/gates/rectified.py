"""Random gates that grow with their input once open: the generic case, where products of gates are independent."""

from typing import ClassVar

import numpy as np

from ggdln.core.kinds import Variable
from ggdln.gates import drive
from ggdln.gates.random import Random


class Rectified(Random):
    """g_m(x) = max(V_m.x / sqrt(N0) - b, 0), with the same V as random gates."""

    variables: ClassVar[dict[str, Variable]] = Random.variables | {
        "weights": Variable("weights of the gates", "V", "g_m(x) = max(V_m.x / sqrt(N0) - b, 0)"),
    }

    def values(self, x, subtask, *, weights):
        return np.maximum(drive(x, weights, self.b), 0.0)
