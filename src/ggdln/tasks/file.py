"""Samples in a file of the user's."""

from functools import lru_cache
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import Field

from ggdln.core import arrays
from ggdln.core.errors import FileError
from ggdln.core.problems import Problem, choices
from ggdln.tasks._samples import FromSamples, Samples, targets


class File(FromSamples):
    """Samples in a file: .npz or .nc with arrays x (n, N0) and y (n,), or (n, C) for C outputs, or .csv with a column for each.

    Arrays x_test and y_test beside them are a test set of their own. The file counts by its content: a changed label reruns
    what depends on it, another date nothing.
    """

    path: str = Field(
        min_length=1, description="File with the samples, from the folder where the workflow runs: .npz, .csv or .nc"
    )
    inputs: list[str] | None = Field(
        None, min_length=1, description="Columns of a .csv file that are inputs; by default all but the labels"
    )
    target: str | Annotated[list[str], Field(min_length=1)] | None = Field(
        None, description="Column of a .csv file that holds the labels, or several for as many outputs; y by default"
    )

    def problems(self, counts=None):
        named = [key for key in ("inputs", "target") if getattr(self, key) is not None]
        if Path(self.path).suffix in (".npz", ".nc") and named:
            told = "nothing, since columns are those of .csv files; other files have arrays x and y"
            return [Problem(f"task.{key}", getattr(self, key), told) for key in named]
        return self._column_problems() or super().problems(counts)

    def _column_problems(self):
        """Columns that a .csv file hasn't got."""
        try:
            known = list(arrays.read(self.path).values) if Path(self.path).suffix == ".csv" else None
        except FileError:
            return []  # said when it is loaded
        if known is None:
            return []
        asked = [("target", name) for name in self._targets()] + [("inputs", name) for name in self.inputs or ()]
        return [
            Problem(
                f"task.{key}",
                name if getattr(self, key) else None,
                f"a column of {self.path}: {choices(name, known)}",
                "" if getattr(self, key) else "missing",
            )
            for key, name in asked
            if name not in known
        ]

    def _targets(self):
        """Columns that hold the labels."""
        return ("y",) if self.target is None else (self.target,) if isinstance(self.target, str) else tuple(self.target)

    def load(self):
        return _samples(self.path, arrays.version(self.path), tuple(self.inputs or ()), self._targets())


@lru_cache(maxsize=4)
def _samples(path, version, inputs, outputs):
    """The samples of one state of a file."""
    found = arrays.read(path)
    if Path(path).suffix == ".csv":
        inputs = inputs or tuple(name for name in found.values if name not in outputs)
        if set(outputs) & set(inputs) or not inputs:
            raise FileError(f"input columns beside {', '.join(outputs)}, which {'hold' if outputs[1:] else 'holds'} the labels")
        parts = {"x": _columns(found, inputs)}
        if len(outputs) == 1:
            parts["y"] = targets(f"column {outputs[0]}", found[outputs[0]], row=arrays.below_header)
        else:
            parts |= {"y": _columns(found, outputs), "outputs": outputs}
    else:
        parts = {"x": found["x"], "y": found["y"]}
        parts |= {name: found[name] for name in ("x_test", "y_test") if name in found.values}
    return Samples(**parts, source=path, sha256=found.sha256)


def _columns(found, names):
    """Columns of numbers beside each other."""
    return np.stack([arrays.numbers(f"column {name}", found[name], 1, row=arrays.below_header) for name in names], axis=1)
