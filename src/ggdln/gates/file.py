"""Gates that were computed beforehand, a row for each sample of the data."""

from functools import lru_cache
from typing import ClassVar

import numpy as np
from pydantic import Field

from ggdln.core import arrays
from ggdln.core.errors import FileError, InputError
from ggdln.core.kinds import Variable
from ggdln.core.problems import Problem
from ggdln.gates import Gates


class File(Gates):
    """Gates in a file: .npz or .nc with an array `gates` (n, M), or .csv with a column for each gate.

    Rows are those of the data of the task, first its x, then its x_test if it has one. The file counts by its content.
    """

    from_file: ClassVar[bool] = True
    by_row: ClassVar[bool] = True
    needs_notes: ClassVar[tuple] = ("row",)
    dims: ClassVar[dict[str, tuple]] = {}
    variables: ClassVar[dict[str, Variable]] = {}

    M: int | None = Field(None, ge=1, le=100_000, description="Take the first M gates; by default all of them")
    path: str = Field(
        min_length=1, description="File with the gates, from the folder where the workflow runs: .npz, .csv or .nc"
    )
    sha256: str | None = Field(
        None, description="Checksum of the file; filled in by the workflow, and compared where it is given"
    )

    def problems(self, task):
        try:
            table, sha256 = self._load()
        except FileError as error:
            return [Problem("gates.path", self.path, str(error))]
        if self.sha256 not in (None, sha256):
            return [Problem("gates.sha256", self.sha256, f"{sha256}, that of {self.path} as it is now")]
        n, columns = table.shape
        found = []
        if (self.M or 1) > columns:
            found.append(Problem("gates.M", self.M, f"at most {columns}, the gates in {self.path}"))
        if "row" in task.notes and n != task.rows():
            found.append(Problem("gates.path", self.path, f"a row for each of the {task.rows()} samples; it has {n}"))
        return found

    def _load(self):
        return _table(self.path, arrays.version(self.path))

    def settled(self, task):
        table, sha256 = self._load()
        return self.model_copy(update={"M": self.M or table.shape[1], "sha256": sha256})

    def fit(self, x, *, subtask, seed, draw):
        return {}, {}

    def values(self, x, subtask, *, row):
        table, sha256 = self._load()
        if self.sha256 not in (None, sha256):
            raise InputError(f"{self.path} has changed since the run began; run the workflow again")
        if row is None:
            raise InputError("row: these gates need the row of each input in the data of the task")
        return table[row, : self.M].astype(np.float64)


@lru_cache(maxsize=4)
def _table(path, version):
    """The gates (n, M) in one state of a file, and its checksum."""
    found = arrays.read(path)
    if path.endswith(".csv"):
        columns = [
            arrays.numbers(f"column {name}", column, 1, row=arrays.below_header) for name, column in found.values.items()
        ]
        return np.stack(columns, axis=1), found.sha256
    return arrays.numbers("gates", found["gates"], 2), found.sha256
