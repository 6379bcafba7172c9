"""How the kernel sees inputs of one class: the distribution of its normalized elements between images of the same digit."""

from typing import ClassVar

import numpy as np
import xarray as xr

from ggdln.core.kinds import Variable
from ggdln.observables import Observable

LARGEST_FLAT_ELEMENT = 0.05
"""A normalized kernel element up to this counts as flattened."""
BIN_EDGES = np.linspace(-1, 1, 101)


class KernelShape(Observable):
    """Density and flat share of the normalized kernel between different training inputs that show the same digit."""

    needs_notes: ClassVar[tuple] = ("digit",)
    variables: ClassVar[dict[str, Variable]] = {
        "kernel_histogram": Variable(
            "density of normalized kernel elements of equal digits",
            "",
            "density of K_L(x, y)",
            "density of kernel elements",
            single=False,
        ),
        "flat_fraction": Variable(
            f"share of normalized kernel elements of equal digits up to {LARGEST_FLAT_ELEMENT}",
            label=rf"share of elements $\leq {LARGEST_FLAT_ELEMENT}$",
        ),
        "kernel_element": Variable(
            "normalized kernel element",
            "K_L(x, y)",
            "K~(x, y) / sqrt(K~(x, x) K~(y, y))",
            r"normalized kernel $\mathcal{K}_L(\mathbf{x}, \mathbf{y})$",
            single=False,
        ),
    }

    def of(self, solution, sample):
        kernel = solution.kernel(sample.task.x, sample.g)
        scale = np.sqrt(kernel.diagonal())
        live = np.flatnonzero(scale > 0)
        normalized = kernel[np.ix_(live, live)] / np.outer(scale[live], scale[live])
        digit = sample.task.notes["digit"][1][live]
        elements = normalized[np.triu(digit[:, None] == digit, 1)]
        # Rounding may put an element a hair outside [-1, 1].
        density, _ = np.histogram(np.clip(elements, -1, 1), BIN_EDGES, density=True)
        centres = (BIN_EDGES[:-1] + BIN_EDGES[1:]) / 2
        return {
            "kernel_histogram": xr.DataArray(density, coords={"kernel_element": centres}, dims="kernel_element"),
            "flat_fraction": np.mean(elements <= LARGEST_FLAT_ELEMENT),
        }
