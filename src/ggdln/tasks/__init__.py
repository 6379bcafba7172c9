"""Inputs and labels. Each module without an underscore is a kind of task, a subclass of `Task`; `make_task` chooses by name.

A kind makes one independent draw at a time: a training and a test set, `TaskData`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from ggdln.core import seeds
from ggdln.core.display import Shown
from ggdln.core.errors import InputError
from ggdln.core.kinds import REGISTRIES, Costs, Kind, Terms, Variable
from ggdln.core.types import InputArray, LabelArray, OtherInputArray, OtherLabelArray, OtherSubtaskArray, SubtaskArray

InputDimension = Annotated[int, Field(ge=1, le=1_000_000, description="Dimension N_0 of the inputs")]
TrainingInputs = Annotated[int, Field(ge=1, le=1_000_000, description="Number P of training samples (of each sub-task)")]
TestInputs = Annotated[int, Field(ge=1, le=1_000_000, description="Number P_t of test samples (of each sub-task)")]


@dataclass(frozen=True, repr=False)
class TaskData(Shown):
    """One draw of a task.

    x (P, N0), y (P,) or, for C outputs, (P, C), subtask (P,): training inputs, labels, and which of several sub-tasks a sample
    belongs to.
    x_test (P_t, N0), y_test, subtask_test: the same for the test set. notes: further arrays by name, such as digit labels,
    each as (dimensions, values).
    """

    x: InputArray
    y: LabelArray
    x_test: OtherInputArray
    y_test: OtherLabelArray
    subtask: SubtaskArray = None
    subtask_test: OtherSubtaskArray = None
    notes: dict = field(default_factory=dict)

    def __post_init__(self):
        for name, samples in (("subtask", self.x), ("subtask_test", self.x_test)):
            if getattr(self, name) is None:
                object.__setattr__(self, name, np.zeros(len(samples), dtype=np.int64))

    def facts(self) -> dict[str, Any]:
        found = {"P": len(self.x), "P_t": len(self.x_test), "N0": self.x.shape[1]}
        found |= {"C": self.y.shape[1]} if self.y.ndim == 2 else {}
        subtasks = int(self.subtask.max(initial=0)) + 1
        return (
            found | ({"subtasks": subtasks} if subtasks > 1 else {}) | ({"notes": ", ".join(self.notes)} if self.notes else {})
        )


@dataclass(frozen=True)
class Sizes:
    """P training and P_t test inputs of dimension N_0 in one draw, all sub-tasks together, with C labels each."""

    P: int
    P_t: int
    N0: int
    C: int = 1

    @property
    def pairs(self):
        """P C, the side of a kernel between inputs and outputs."""
        return self.P * self.C

    @property
    def megabytes(self):
        return 8 * (self.P + self.P_t) * self.N0 / 1e6


class Task(Kind):
    """A kind of task: fields are its parameters."""

    sort: ClassVar[str] = "task"
    labelled: ClassVar[bool] = True
    """Whether there is something to learn."""
    from_digits: ClassVar[bool] = False
    """Whether it is made from MNIST digits, which `make` then gets."""
    has_subtasks: ClassVar[bool] = False
    notes: ClassVar[tuple] = ()
    """Names of the notes that observables may rely on."""
    costs: ClassVar[Costs] = Costs({"start": 1.04, "inputs": 0.01}, {"start": 95.2, "inputs": 1.62})

    shuffled: bool = Field(False, description="Training labels in random order, as a control")

    def problems(self, counts=None):
        """What the bounds of single parameters can't say, as `Problem`s with keys such as "task.P".

        counts: number of digits of each class, for kinds made from digits; by default those of the source that they name.
        """
        return ()

    def sizes(self):
        """`Sizes` of one draw."""
        return Sizes(self.P, self.P_t, self.N0)

    def terms(self, draws):
        """Terms of the cost of making so many draws."""
        amounts = {"start": 1, "inputs": draws * self.sizes().megabytes}
        return Terms(amounts, amounts)

    def rows(self):
        """Number of samples in the source, for kinds whose notes say in `row` which of them are taken."""
        raise NotImplementedError

    def settled(self):
        """The task with all that determines its numbers: where it reads a file, its checksum too."""
        return self

    def origin(self):
        """Where its samples come from, in a line; those of digits say so themselves."""
        return "generated"

    def make(self, seed, draw, digits=None):
        """`TaskData` of draw number `draw` under the root seed. digits: a `Digits`, for kinds made from them."""
        raise NotImplementedError


def make_task(spec: Mapping[str, Any], *, seed: int, draw: int = 0, digits: Any = None) -> TaskData:
    """Draw number `draw` of the task `spec`, a mapping with "kind" and the parameters of that kind: `TaskData`.

    `digits` is a `ggdln.tasks._digits.Digits`, for the kinds made from MNIST (default: the source that the task names).
    With "shuffled" true the training labels are in random order, so that there is nothing to learn.
    """
    task, (seed, draw) = REGISTRIES["task"].make(spec), seeds.checked(seed, draw)
    if task.from_digits and digits is None:
        from ggdln.tasks._digits import load_digits

        digits = load_digits(task.digits)
    found = list(task.problems(digits.counts if task.from_digits else None))
    if found:
        raise InputError("; ".join(map(str, found)))
    data = task.make(seed, draw, digits) if task.from_digits else task.make(seed, draw)
    outputs, told = np.size(data.y[0]), task.sizes().C
    if outputs != told:
        raise InputError(
            f"task.kind = {task.kind_name()!r} makes {outputs} labels for an input; accepted: {told}, C of its sizes"
        )
    return replace(data, y=seeds.rng(seed, "shuffled", "labels", draw).permutation(data.y)) if task.shuffled else data


VARIABLES = {
    "x": Variable("training inputs", "x"),
    "y": Variable("training labels", "Y"),
    "subtask": Variable("sub-task of each training sample", "p"),
    "x_test": Variable("test inputs", "x_t"),
    "y_test": Variable("test labels", "y(x_t)"),
    "subtask_test": Variable("sub-task of each test sample", "p"),
}
"""What every task has."""
