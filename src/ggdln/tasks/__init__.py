"""Inputs and labels.

A task is a training set and a test set. Kinds of tasks are functions of the modules `teachers`, `mnist` and `angles`, which
take the task's parameters, the root seed and the index of the draw, and return a `Task`; `ggdln.tasks.make` chooses by name.
"""

from dataclasses import dataclass, field

import numpy as np
import xarray as xr

DIMS = {
    "x": ("train", "feature"),
    "y": ("train",),
    "task": ("train",),
    "x_test": ("test", "feature"),
    "y_test": ("test",),
    "task_test": ("test",),
}


@dataclass(frozen=True)
class Task:
    """One draw of a task.

    x (P, N0), y (P,), task (P,): training inputs, labels, and which of several sub-tasks a sample belongs to.
    x_test (P_t, N0), y_test, task_test: the same for the test set. notes: further arrays by name, such as digit labels,
    each with the dimensions it runs over.
    """

    x: np.ndarray
    y: np.ndarray
    x_test: np.ndarray
    y_test: np.ndarray
    task: np.ndarray = None
    task_test: np.ndarray = None
    notes: dict = field(default_factory=dict)

    def __post_init__(self):
        for name, samples in (("task", self.x), ("task_test", self.x_test)):
            if getattr(self, name) is None:
                object.__setattr__(self, name, np.zeros(len(samples), dtype=np.int64))


def pack_tasks(tasks):
    """A mapping of draw to `Task` as one dataset over (draw, ...)."""
    datasets = []
    for draw, task in tasks.items():
        variables = {name: (dims, getattr(task, name)) for name, dims in DIMS.items()} | task.notes
        datasets.append(xr.Dataset(variables).expand_dims(draw=[draw]))
    return xr.concat(datasets, "draw")


def unpack_task(dataset, draw):
    """The `Task` of one draw."""
    one = dataset.sel(draw=draw, drop=True)
    notes = {name: (var.dims, var.values) for name, var in one.data_vars.items() if name not in DIMS}
    return Task(**{name: one[name].values for name in DIMS}, notes=notes)
