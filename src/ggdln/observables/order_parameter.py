"""The order parameter U_1: how strongly the readouts of every two gates are correlated."""

from typing import ClassVar

import numpy as np
import xarray as xr

from ggdln.core.kinds import Variable
from ggdln.observables import Observable


class OrderParameter(Observable):
    """U_1 in the basis of the gates, and the size of its first block where gates see different parts of the input."""

    needs: ClassVar[tuple] = ("order_parameters",)
    variables: ClassVar[dict[str, Variable]] = {
        "order_parameter": Variable(
            "order parameter of the first layer",
            "U_1",
            "U_1^mn = <sum_i a_mi a_ni> / N",
            axes=("gate $m$", "gate $n$"),
            single=False,
        ),
        "block_ratio": Variable(
            "amplitude of the first diagonal block of U_1 relative to the others",
            "",
            "mean |U_1| on the first block / mean |U_1| on the other diagonal blocks",
            "preferred / other blocks of $|U_1|$",
        ),
    }

    def of(self, solution, sample):
        U, blocks = solution.order_parameters[0], sample.gates.kind.blocks
        found = {"order_parameter": xr.DataArray(U, dims=("gate", "gate2"))}
        return found | ({"block_ratio": block_ratio(U, blocks)} if blocks else {})


def block_ratio(U, blocks):
    """Mean |U| on the first diagonal block relative to the mean over the other diagonal blocks, for U (M, M)."""
    size = len(U) // blocks
    means = np.einsum("iaib->i", np.abs(U).reshape(blocks, size, blocks, size)) / size**2
    return means[0] / means[1:].mean()
