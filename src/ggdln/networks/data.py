"""What networks learn from and are tested on, and how well they can."""

from typing import NamedTuple

import numpy as np

from ggdln.core import checks
from ggdln.core.errors import InputError
from ggdln.theory.kernels import gp_kernel


class Layout(NamedTuple):
    """Names and sizes of the dimensions of a prediction at the test inputs, and of the readout statistics U."""

    prediction: dict
    readout: dict


class Data(NamedTuple):
    """Training inputs x (P, N0), gates (P, M), labels y (P,) or (P, C); test inputs x_test (P_t, N0), gates_test (P_t, M)."""

    x: np.ndarray
    gates: np.ndarray
    y: np.ndarray
    x_test: np.ndarray
    gates_test: np.ndarray

    @classmethod
    def checked(cls, x, gates, y, x_test, gates_test):
        """From whatever holds such numbers."""
        x, gates = checks.inputs(x, gates)
        y = checks.labels("y", y, len(x))
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

    @property
    def outputs(self):
        """C."""
        return 1 if self.y.ndim == 1 else self.y.shape[1]

    @property
    def layout(self):
        """How results are laid out."""
        tests, M = len(self.x_test), self.gates.shape[1]
        if self.y.ndim == 1:
            return Layout(dict(test=tests), dict(m=M, n=M))
        C = self.outputs
        return Layout(dict(test=tests, output=C), dict(m=M, output=C, n=M, output2=C))


def training_floor(x, gates, y, depth):
    """The least mean squared training error of a gated network: the part of y, (P,) or (P, C), outside its feature space.

    The features are the products of `depth` gates with the inputs, whose Gram matrix is the GP kernel up to a factor.
    A network narrower than min(M C, N0) may not get that far.
    """
    outputs = y.reshape(len(y), -1).T
    # without unit diagonals, an input with small gates would look like one without any
    kernel = gp_kernel(x, gates, depth=depth)
    scale = np.sqrt(np.diagonal(kernel))
    live = scale > 0
    kernel = kernel[np.ix_(live, live)] / np.outer(scale[live], scale[live])
    outside = sum(np.sum(output[~live] ** 2) for output in outputs)
    if live.any():
        values, vectors = np.linalg.eigh(kernel)
        null = values <= values[-1] * len(values) * np.finfo(float).eps
        if null.any():
            # orthogonality is to the columns of the scaled kernel, so undo the scale: null space of K is scale^-1 v
            basis, _ = np.linalg.qr(vectors[:, null] / scale[live][:, None])
            outside += sum(np.sum((basis.T @ output[live]) ** 2) for output in outputs)
    return float(outside / y.size)
