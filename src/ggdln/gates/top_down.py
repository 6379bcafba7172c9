"""Random gates under the control of the sub-task, which permits some of them and forbids the others."""

from typing import ClassVar

import numpy as np
from pydantic import Field

from ggdln.core import seeds
from ggdln.core.errors import InputError
from ggdln.core.kinds import Variable
from ggdln.gates.random import Random


class TopDown(Random):
    """Random gates of which each sub-task permits a random subset: `permitted` (sub-tasks, M) is 1 or 0."""

    dims: ClassVar[dict[str, tuple]] = Random.dims | {"permitted": ("sub_task", "gate")}
    needs_subtasks: ClassVar[bool] = True
    variables: ClassVar[dict[str, Variable]] = Random.variables | {
        "permitted": Variable("gates that each sub-task permits", "", "g^p(x) = permitted_p g(x)"),
    }

    p_permitted: float = Field(gt=0, le=1, description="Chance that a task permits a gate")

    def fit(self, x, *, subtask, seed, draw):
        if subtask is None:
            raise InputError("subtask: top-down gates need the sub-task of each training input")
        n_subtasks = int(np.max(subtask)) + 1
        # One row per gate, so that the masks too are nested in M.
        permitted = self.p_permitted > seeds.rng(seed, "top_down", "permitted", draw).random((self.M, n_subtasks)).T
        V = seeds.rng(seed, "top_down", "gates", draw).standard_normal((self.M, x.shape[1]))
        return {"weights": V, "permitted": permitted.astype(np.float64)}, {}

    def values(self, x, subtask, *, weights, permitted):
        if subtask is None or len(subtask) != len(x) or not np.isin(subtask, np.arange(len(permitted))).all():
            raise InputError(f"subtask: these gates need a sub-task from 0 to {len(permitted) - 1} for each input")
        return super().values(x, subtask, weights=weights) * permitted[np.asarray(subtask)]
