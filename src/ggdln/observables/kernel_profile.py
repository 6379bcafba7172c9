"""The shape of the kernel as a function of the angle between two inputs."""

from typing import ClassVar

import numpy as np
import xarray as xr

from ggdln.core.kinds import Variable
from ggdln.observables import Observable


class KernelProfile(Observable):
    """Normalized kernel between the one training input and each test input, 0 where an input or its gates vanish."""

    needs_notes: ClassVar[tuple] = ("theta",)
    variables: ClassVar[dict[str, Variable]] = {
        "kernel_profile": Variable(
            "normalized GP kernel",
            "K_L(theta)",
            "cos(g(x(0)), g(x(theta)))^L cos(x(0), x(theta))",
            r"normalized kernel $\mathcal{K}_L(\theta)$",
            single=False,
        ),
    }

    def of(self, solution, sample):
        here, there = (sample.task.x, sample.g), (sample.task.x_test, sample.g_test)
        kernel = solution.kernel(*here, *there)[0]
        scale = np.sqrt(solution.kernel_diagonal(*here)[0] * solution.kernel_diagonal(*there))
        profile = np.divide(kernel, scale, out=np.zeros_like(kernel), where=scale > 0)
        return {"kernel_profile": xr.DataArray(profile, coords={"theta": sample.task.notes["theta"][1]}, dims="theta")}
