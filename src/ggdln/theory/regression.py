"""Gaussian-process regression with any kernel matrix, regular or not.

At temperature T > 0 the data are fitted with K + T I. At T = 0 the limit is taken exactly: a pivoted Cholesky factorization
finds the rank r, K = L L^T with L (P, r), by an explicit tolerance. With full rank the data are interpolated; otherwise the
rows of L are r effective inputs, the mean is the least-squares fit in them, and their posterior variance is zero.
"""

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
    """The fit of `y` (P,) with kernel matrix K (P, P). `fitted` (P,) is the mean at the training inputs."""

    rank: int
    fitted: np.ndarray
    _factor: np.ndarray
    _pivots: np.ndarray
    _weights: np.ndarray

    def predict(self, k, k_diagonal):
        """Mean and variance (n,) at new inputs, from k (n, P), their kernel with the training inputs, and K(x, x) (n,)."""
        features = solve_triangular(self._factor, k[:, self._pivots].T, lower=True, check_finite=False)
        mean = self._weights @ features
        # Rounding may leave a tiny negative number where the training set pins the prediction.
        variance = np.maximum(k_diagonal - np.einsum("rn,rn->n", features, features), 0.0)
        return mean, variance


def regress(K, y, *, temperature=0.0, rank_tolerance=RANK_TOLERANCE):
    """Fit y (P,) with the kernel matrix K (P, P). K is not changed."""
    if temperature > 0:
        noisy = K + temperature * np.eye(len(K))
        factor = np.tril(cho_factor(noisy, lower=True, overwrite_a=True, check_finite=False)[0])
        fitted = y - temperature * cho_solve((factor, True), y, check_finite=False)
        weights = solve_triangular(factor, y, lower=True, check_finite=False)
        return Regression(len(K), fitted, factor, np.arange(len(K)), weights)
    largest = K.diagonal().max(initial=0.0)
    if not largest > 0:
        raise RankError("the kernel is zero on all training inputs: none of them has an active gate")
    lower, pivots, rank, _ = dpstrf(K, tol=rank_tolerance * largest, lower=1)
    pivots, factor = pivots - 1, np.tril(lower)[:, :rank]
    square = factor[:rank]
    if rank == len(K):
        weights = solve_triangular(square, y[pivots], lower=True, check_finite=False)
    else:
        weights = lstsq(factor, y[pivots], lapack_driver="gelsy", check_finite=False)[0]
    fitted = np.empty_like(y)
    fitted[pivots] = factor @ weights
    return Regression(rank, fitted, square, pivots[:rank], weights)
