"""Observables of the order parameter U = <a a^T>/N as it is measured on readout weights."""

import xarray as xr

from ggdln.theory.kernels import input_kernel
from ggdln.observables import block_ratio, blocks_of

NEEDS_U = ("order_parameter", "kernel_blocks")


def readout_observables(curve, U, task, gates):
    """Those of the observables of a curve that follow from U (M, M)."""
    found = {}
    if "order_parameter" in curve.observables:
        found["order_parameter"] = xr.DataArray(U, dims=("gate", "gate2"))
        if "subsets" in curve.gates:
            found["block_ratio"] = block_ratio(U, curve.gates["subsets"])
    if "kernel_blocks" in curve.observables:
        g = gates(task.x, task.task)
        kernel = g @ U @ g.T / len(U) * input_kernel(task.x, sigma=curve.network["sigma"])
        found |= blocks_of(kernel, task)
    return found
