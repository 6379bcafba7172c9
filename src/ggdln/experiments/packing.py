"""Tasks and fitted gates as datasets over draws, and back."""

import numpy as np
import xarray as xr

from ggdln.core.kinds import REGISTRIES
from ggdln.gates import FittedGates
from ggdln.tasks import TaskData

DIMS = {
    "x": ("train", "feature"),
    "y": ("train",),
    "subtask": ("train",),
    "x_test": ("test", "feature"),
    "y_test": ("test",),
    "subtask_test": ("test",),
}
OUTPUT = ("output",)
"""A further dimension of the labels, where there are several for an input."""


def pack_tasks(tasks):
    """A mapping of draw to `TaskData` as one dataset over (draw, ...)."""
    datasets = []
    for draw, task in tasks.items():
        outputs = {name: OUTPUT for name in ("y", "y_test") if getattr(task, name).ndim == 2}
        variables = {name: (dims + outputs.get(name, ()), getattr(task, name)) for name, dims in DIMS.items()} | task.notes
        datasets.append(xr.Dataset(variables).expand_dims(draw=[draw]))
    return xr.concat(datasets, "draw")


def unpack_task(dataset, draw):
    """The `TaskData` of one draw."""
    one = dataset.sel(draw=draw, drop=True)
    notes = {name: (var.dims, var.values) for name, var in one.data_vars.items() if name not in DIMS}
    return TaskData(**{name: one[name].values for name in DIMS}, notes=notes)


def pack_gates(gates):
    """A mapping of (draw, point) to `FittedGates` as one dataset over (draw, point, ...), padded to the largest M."""
    rows = {}
    for (draw, point), fitted in gates.items():
        variables = {name: (fitted.kind.dims[name], array) for name, array in fitted.arrays.items()}
        variables |= {f"fit_{key}": value for key, value in fitted.report.items()}
        one = xr.Dataset(variables).assign_coords(gate=np.arange(len(fitted)))
        rows.setdefault(draw, []).append(one.expand_dims(draw=[draw], point=[point]))
    return xr.concat([xr.concat(row, "point", join="outer") for row in rows.values()], "draw", join="outer")


def unpack_gates(dataset, draw, point, spec):
    """The `FittedGates` of one draw and point, whose parameters are `spec`."""
    kind = REGISTRIES["gates"].make(spec)
    one = dataset.sel(draw=draw, point=point, drop=True).isel(gate=slice(kind.M))
    report = {name.removeprefix("fit_"): var.item() for name, var in one.data_vars.items() if name.startswith("fit_")}
    return FittedGates(kind, {name: one[name].values for name in kind.dims if name in one}, report)
