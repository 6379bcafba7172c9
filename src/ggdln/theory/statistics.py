"""How good a predictor is, from its mean and variance at test inputs."""

from typing import Any

import numpy as np
from scipy.special import erfc, ndtr

from ggdln.core.errors import InputError
from ggdln.core.types import OtherLabels

NODES = 40
"""Points of the Gauss-Hermite rule for the chance that one of several outputs is the largest."""


def predictor_statistics(mean: OtherLabels, variance: OtherLabels, y: OtherLabels) -> dict[str, Any]:
    """Bias, variance, generalization error and error rate, averaged over test inputs.

    mean, variance, y: (P_t,). bias = <(<f> - y)^2>, variance = <var f>, their sum is the generalization error.
    The error rate is the chance that a Gaussian f has the wrong sign, 1/2 erfc(y <f> / sqrt(2 var f)), for labels of
    either sign; where var f = 0 it is 0, 1/2 or 1 by the sign of y <f>. Labels 0 and 1 are refused, since -1 and +1 are meant.
    Arrays may have a further dimension of C outputs, over which all is averaged too. If labels are classes, +1 in one output
    and -1 in all others, the error rate is the chance that another output than that of the class is the largest.
    """
    check_signs("y", y)
    bias = np.mean((mean - y) ** 2)
    spread = np.mean(variance)
    return {
        "bias": bias,
        "variance": spread,
        "generalization_error": bias + spread,
        "error_rate": np.mean(error_chance(mean, variance, y)),
    }


def check_signs(name, y):
    """Refuse labels whose signs don't tell two classes apart though they are meant to."""
    if set(np.unique(y)) == {0.0, 1.0}:
        raise InputError(
            f"{name}: labels are 0 and 1, but an error rate is about their signs; accepted: -1 and +1, such as 2 * {name} - 1"
        )


def error_chance(mean, variance, y):
    """Chance of another class for labels that are classes, (P_t,), and of the wrong sign for all others, as y."""
    return class_error(mean, variance, y) if are_classes(y) else sign_error(mean, variance, y)


def are_classes(y):
    """Whether labels (P, C) are +1 in one output and -1 in all others."""
    y = np.asarray(y)
    return y.ndim == 2 and y.shape[1] > 1 and bool(((y == 1).sum(axis=1) == 1).all() and (np.abs(y) == 1).all())


def class_error(mean, variance, y):
    """Chance that the largest of Gaussian outputs is not the one that is +1 in y, all (P_t, C): (P_t,)."""
    return 1 - class_chances(mean, variance)[y == 1]


def class_chances(mean, variance):
    """Chance that each of C independent Gaussian outputs is the largest, for means and variances (n, C): (n, C)."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(NODES if np.any(variance) else 1)
    scale, chances = np.sqrt(variance), np.empty_like(mean)
    for c in range(mean.shape[1]):
        ahead = (mean[:, c, None] + scale[:, c, None] * nodes)[:, None, :] - mean[:, :, None]  # (n, C, node)
        certain = np.where(ahead == 0, 0.0, np.copysign(np.inf, ahead))
        below = ndtr(np.divide(ahead, scale[:, :, None], out=certain, where=scale[:, :, None] > 0))
        below[:, c] = 1.0
        chances[:, c] = below.prod(axis=1) @ weights
    return chances / chances.sum(axis=1, keepdims=True)


def sign_error(mean, variance, y):
    """Chance that a Gaussian with this mean and variance has not the sign of y: (P_t,)."""
    margin = np.sign(y) * mean
    scale = np.sqrt(2 * variance)
    certain = np.where(margin == 0, 0.0, np.copysign(np.inf, margin))
    return erfc(np.divide(margin, scale, out=certain, where=scale > 0)) / 2
