"""How good a predictor is, from its mean and variance at test inputs."""

import numpy as np
from scipy.special import erfc


def predictor_statistics(mean, variance, y):
    """Bias, variance, generalization error and error rate, averaged over test inputs.

    mean, variance, y: (P_t,). bias = <(<f> - y)^2>, variance = <var f>, their sum is the generalization error.
    The error rate is the chance that a Gaussian f has the wrong sign, 1/2 erfc(y <f> / sqrt(2 var f)), for labels of
    either sign; where var f = 0 it is 0, 1/2 or 1 by the sign of y <f>.
    """
    bias = np.mean((mean - y) ** 2)
    spread = np.mean(variance)
    return {
        "bias": bias,
        "variance": spread,
        "generalization_error": bias + spread,
        "error_rate": np.mean(sign_error(mean, variance, y)),
    }


def sign_error(mean, variance, y):
    """Chance that a Gaussian with this mean and variance has not the sign of y: (P_t,)."""
    margin = np.sign(y) * mean
    scale = np.sqrt(2 * variance)
    certain = np.where(margin == 0, 0.0, np.copysign(np.inf, margin))
    return erfc(np.divide(margin, scale, out=certain, where=scale > 0)) / 2
