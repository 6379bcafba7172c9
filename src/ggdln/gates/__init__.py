"""Gates g(x): which dendrites of every neuron an input opens, fixed before the network learns.

Each module without an underscore is a kind of gates, a subclass of `Gates`. `fit_gates` chooses by name and returns
`FittedGates`, which map inputs (P, N0) to gate values (P, M) and hold all that is needed for new inputs.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from ggdln.core import checks, seeds
from ggdln.core.display import Shown
from ggdln.core.errors import InputError
from ggdln.core.kinds import REGISTRIES, Costs, Kind, Terms, Variable
from ggdln.core.types import GateValues, Inputs, OtherInputs, OtherSubtasks, Subtasks

Threshold = Annotated[float, Field(ge=-1000, le=1000, description="Threshold b of the gates")]


class Gates(Kind):
    """A kind of gates: fields are its parameters."""

    sort: ClassVar[str] = "gates"
    dims: ClassVar[dict[str, tuple]] = {"weights": ("gate", "feature")}
    """Dimensions of the arrays that `fit` gives; "gate" has length M, "feature" N0, "sub_task" one entry a sub-task."""
    needs_subtasks: ClassVar[bool] = False
    needs_notes: ClassVar[tuple] = ()
    """Notes of the task that it looks at."""
    by_row: ClassVar[bool] = False
    """Whether `values` gets the row of each input in the source of the task, as `row`."""
    costs: ClassVar[Costs] = Costs({"start": 1.1, "points": 0.002}, {"start": 106.0, "inputs": 1.2})
    variables: ClassVar[dict[str, Variable]] = {
        "weights": Variable("weights of the gates", "V", "g_m(x) = Theta(V_m.x / sqrt(N0) - b)"),
    }

    M: int = Field(ge=1, le=100_000, description="Number M of gates")

    @property
    def blocks(self):
        """Number of groups of gates that see different parts of the input, None if all see everything."""
        return None

    def problems(self, task):
        """What the bounds of single parameters can't say, given the kind of task, as `Problem`s with keys such as "gates.M"."""
        return ()

    def settled(self, task):
        """The gates with all that determines their numbers for a task: where they come from a file, its checksum, and M."""
        return self

    def terms(self, sizes):
        """Terms of the cost of fitting once, for inputs of these `ggdln.tasks.Sizes`."""
        return Terms()

    def fit(self, x, *, subtask, seed, draw):
        """Arrays by name, as in `dims`, and how the fit went as a dict of numbers; for training inputs x (P, N0)."""
        raise NotImplementedError

    def values(self, x, subtask, *, weights):
        """Gate values (P, M) of inputs x (P, N0), from the fitted arrays."""
        raise NotImplementedError


@dataclass(frozen=True, repr=False)
class FittedGates(Shown):
    """M fixed gates: a kind, its fitted arrays by name, and how the fit went."""

    kind: Gates
    arrays: dict
    report: dict = field(default_factory=dict)

    def __len__(self) -> int:
        return self.kind.M

    def facts(self) -> dict[str, Any]:
        return self.kind.spec() | self.report

    def __call__(self, x: OtherInputs, subtask: OtherSubtasks | None = None, row: OtherSubtasks | None = None) -> GateValues:
        """Gate values (n, M) of inputs x (n, N0).

        `subtask` (n,) is needed where the gates depend on the sub-task, `row` (n,) where they are looked up.
        """
        x = checks.array("x", x, 2)
        features = next((self.arrays[name].shape[1] for name, dims in self.kind.dims.items() if dims[1:] == ("feature",)), None)
        if features not in (None, x.shape[1]):
            raise InputError(f"x: got shape {x.shape}, these gates take (P, {features or 'N0'})")
        more = {"row": row} if self.kind.by_row else {}
        return self.kind.values(x, subtask, **more, **self.arrays)


def fit_gates(spec: Mapping[str, Any], x: Inputs, *, seed: int, draw: int = 0, subtask: Subtasks | None = None) -> FittedGates:
    """Gates of `spec`, a mapping with "kind", "M" and the parameters of that kind, for unlabelled training inputs x.

    Draw number `draw`; random gates of the same draw are nested in M. Only kinds that learn look at the values of x; the
    others use N0 alone, and those that depend on it the number of sub-tasks in `subtask`.
    """
    gates = REGISTRIES["gates"].make(spec)
    if gates.M is None:
        raise InputError("gates.M is missing; accepted: a whole number; only the workflow finds it out by itself")
    seed, draw = seeds.checked(seed, draw)
    arrays, report = gates.fit(checks.array("x", x, 2), subtask=subtask, seed=seed, draw=draw)
    return FittedGates(gates, arrays, report)


def drive(x, weights, b):
    """V.x / sqrt(N0) - b: (P, M)."""
    return x @ weights.T / np.sqrt(x.shape[1]) - b
