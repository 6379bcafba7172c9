"""The kernel of several sub-tasks as a picture, and how much larger it is within them than between them."""

from typing import ClassVar

import numpy as np
import xarray as xr

from ggdln.core.kinds import Variable
from ggdln.observables import Observable

MOST_SQUARES = 120
"""The picture of a kernel has at most this many squares of samples a side."""


class KernelBlocks(Observable):
    """The kernel with samples sorted by sub-task, then by form and digit, averaged over squares of samples."""

    needs_notes: ClassVar[tuple] = ("digit", "permuted")
    needs_subtasks: ClassVar[bool] = True
    variables: ClassVar[dict[str, Variable]] = {
        "kernel_picture": Variable(
            "renormalized kernel, averaged over squares of samples",
            "K~",
            label=r"kernel $\tilde{K}$",
            axes=("task, input",) * 2,
            single=False,
        ),
        "kernel_ratio": Variable(
            "ratio of same-task to cross-task kernel amplitudes",
            "",
            "mean |K~_pp| / mean |K~_pq|",
            r"same-task / cross-task $|\tilde{K}|$",
        ),
    }

    def of(self, solution, sample):
        task = sample.task
        kernel = solution.kernel(task.x, sample.g)
        order = np.lexsort((task.notes["digit"][1], task.notes["permuted"][1], task.subtask))
        squares = np.array_split(order, min(MOST_SQUARES, len(order)))
        rows = np.stack([kernel[square].mean(axis=0) for square in squares])
        picture = np.stack([rows[:, square].mean(axis=1) for square in squares], axis=1)
        same = task.subtask[:, None] == task.subtask
        amplitude = np.abs(kernel)
        return {
            "kernel_picture": xr.DataArray(picture, dims=("row", "column")),
            "kernel_ratio": amplitude[same].mean() / amplitude[~same].mean(),
        }
