"""What networks learn from and are tested on, and how well they can."""

from typing import NamedTuple

import numpy as np

from ggdln.core import checks
from ggdln.core.errors import InputError
from ggdln.theory.kernels import gp_kernel


class Data(NamedTuple):
    """Training inputs x (P, N0), gates (P, M) and labels y (P,); test inputs x_test (P_t, N0) and gates_test (P_t, M)."""

    x: np.ndarray
    gates: np.ndarray
    y: np.ndarray
    x_test: np.ndarray
    gates_test: np.ndarray

    @classmethod
    def checked(cls, x, gates, y, x_test, gates_test):
        """From whatever holds such numbers."""
        x, gates, y = checks.training_set(x, gates, y)
        x_test, gates_test = checks.inputs(x_test, gates_test, prefix="test ")
        for name, test, train in (("x_test", x_test, x), ("gates_test", gates_test, gates)):
            if test.shape[1] != train.shape[1]:
                raise InputError(f"{name}: {test.shape[1]} columns, but training has {train.shape[1]}")
        return cls(x, gates, y, x_test, gates_test)

    @classmethod
    def without_gates(cls, x, y, x_test):
        """The same with a single gate that is always open."""
        x, x_test = checks.array("x", x, 2), checks.array("x_test", x_test, 2)
        return cls.checked(x, np.ones((len(x), 1)), y, x_test, np.ones((len(x_test), 1)))

    @property
    def shape(self):
        """P, N0 and M."""
        return *self.x.shape, self.gates.shape[1]


def training_floor(x, gates, y, depth):
    """The least mean squared training error of a gated network: the part of y outside its feature space.

    The features are the products of `depth` gates with the inputs, whose Gram matrix is the GP kernel up to a factor.
    A network narrower than min(M, N0) may not get that far.
    """
    # without unit diagonals, an input with small gates would look like one without any
    kernel = gp_kernel(x, gates, depth=depth)
    scale = np.sqrt(np.diagonal(kernel))
    live = scale > 0
    kernel = kernel[np.ix_(live, live)] / np.outer(scale[live], scale[live])
    outside = np.sum(y[~live] ** 2)
    if live.any():
        values, vectors = np.linalg.eigh(kernel)
        null = values <= values[-1] * len(values) * np.finfo(float).eps
        if null.any():
            # orthogonality is to the columns of the scaled kernel, so undo the scale: null space of K is scale^-1 v
            basis, _ = np.linalg.qr(vectors[:, null] / scale[live][:, None])
            outside += np.sum((basis.T @ y[live]) ** 2)
    return float(outside / len(y))
