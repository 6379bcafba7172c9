"""Gaussian-process regression with any kernel matrix, regular or not.

At temperature T > 0 the data are fitted with K + T I. At T = 0 the limit is taken exactly: a pivoted Cholesky factorization
finds the rank r, K = L L^T with L (P, r), by an explicit tolerance. With full rank the data are interpolated; otherwise the
rows of L are r effective inputs, the mean is the least-squares fit in them, and their posterior variance is zero.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve, lstsq, solve_triangular
from scipy.linalg.lapack import dpstrf

from ggdln.core.errors import RankError

RANK_TOLERANCE = 1e-11
"""A direction counts as independent if its squared length, with the earlier ones projected out, exceeds this fraction of
the largest one. Rounding in K is about P eps, 5e-13 at P = 2000."""


@dataclass(frozen=True)
class Regression:
    """The fit of `y` (P, C) with kernel matrix K (P, P). `fitted` (P, C) is the mean at the training inputs.

    log_density: log of the density of y, summed over the outputs; minus infinity where K is singular at T = 0.
    """

    rank: int
    fitted: np.ndarray
    log_density: float
    _factor: np.ndarray
    _pivots: np.ndarray
    _weights: np.ndarray

    def predict(self, k, own, *, covariance=False):
        """Mean (n, C) and variance (n,) at new inputs, from k (n, P), their kernel with the training inputs, and own, their
        kernel with themselves: its diagonal (n,), or (n, n) for the covariance (n, n)."""
        features = solve_triangular(self._factor, k[:, self._pivots].T, lower=True, check_finite=False)
        mean = features.T @ self._weights
        if covariance:
            return mean, own - features.T @ features
        # Rounding may leave a tiny negative number where the training set pins the prediction.
        return mean, np.maximum(own - np.einsum("rn,rn->n", features, features), 0.0)


def regress(K, y, *, temperature=0.0, rank_tolerance=RANK_TOLERANCE):
    """Fit y (P, C) with the kernel matrix K (P, P). K is not changed."""
    if temperature > 0:
        noisy = K + temperature * np.eye(len(K))
        factor = np.tril(cho_factor(noisy, lower=True, overwrite_a=True, check_finite=False)[0])
        fitted = y - temperature * cho_solve((factor, True), y, check_finite=False)
        weights = solve_triangular(factor, y, lower=True, check_finite=False)
        return Regression(len(K), fitted, _log_density(factor, weights), factor, np.arange(len(K)), weights)
    largest = K.diagonal().max(initial=0.0)
    if not largest > 0:
        raise RankError("the kernel is zero on all training inputs: none of them has an active gate")
    lower, pivots, rank, _ = dpstrf(K, tol=rank_tolerance * largest, lower=1)
    pivots, factor = pivots - 1, np.tril(lower)[:, :rank]
    square = factor[:rank]
    if rank == len(K):
        weights = solve_triangular(square, y[pivots], lower=True, check_finite=False)
        density = _log_density(square, weights)
    else:
        weights = lstsq(factor, y[pivots], lapack_driver="gelsy", check_finite=False)[0]
        density = -math.inf
    fitted = np.empty_like(y)
    fitted[pivots] = factor @ weights
    return Regression(rank, fitted, density, square, pivots[:rank], weights)


def _log_density(factor, weights):
    """log N(y; 0, L L^T) summed over the columns of L^-1 y."""
    count, outputs = weights.shape
    log_det = float(np.log(np.diagonal(factor)).sum())
    return -float(np.sum(weights**2)) / 2 - outputs * (log_det + count / 2 * math.log(2 * math.pi))
