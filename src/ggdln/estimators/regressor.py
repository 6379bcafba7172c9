"""Regression with a globally gated deep linear network."""

from typing import Any, Literal, Self, overload

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import validate_data

from ggdln.core.errors import InputError
from ggdln.core.types import CovarianceOfEach, FunctionsLast, Gatings, Inputs, Labels, OtherGatings, OtherInputs, Values
from ggdln.estimators._seed import seed_of
from ggdln.estimators.network import GatedNetwork


class GGDLNRegressor(GatedNetwork, RegressorMixin, BaseEstimator):
    """Learns labels y (P,), or (P, C) for C outputs of one network, from inputs X (P, N0)."""

    def fit(self, X: Inputs, y: Labels, gates: Gatings | None = None) -> Self:
        """Learn. `gates` (P, M) may be given as a matrix; those of new inputs must then be given too."""
        X, y = validate_data(self, X, y, dtype=np.float64, multi_output=True, y_numeric=True, ensure_min_samples=2)
        y = np.asarray(y, dtype=np.float64)
        self._y_mean, self._y_scale = np.zeros(y.shape[1:]), np.ones(y.shape[1:])
        if self.standardize:
            deviation = y.std(axis=0)
            self._y_mean, self._y_scale = y.mean(axis=0), np.where(deviation > 0, deviation, 1.0)
        return self._learn(X, (y - self._y_mean) / self._y_scale, gates)

    @overload
    def predict(
        self,
        X: OtherInputs,
        return_std: Literal[False] = False,
        return_cov: Literal[False] = False,
        gates: OtherGatings | None = None,
    ) -> Values: ...
    @overload
    def predict(
        self, X: OtherInputs, return_std: bool = False, return_cov: bool = False, gates: OtherGatings | None = None
    ) -> Any: ...
    def predict(
        self, X: OtherInputs, return_std: bool = False, return_cov: bool = False, gates: OtherGatings | None = None
    ) -> Values | tuple[Values, Values | CovarianceOfEach]:
        """Mean of the output at X (n, N0): (n,), or (n, C); with its standard deviation, or covariance between inputs.

        Both are those of the network's output over the posterior, without the noise of labels. Standard deviations have the
        shape of the mean. Covariances are (n, n), or (n, n, C) of each output.
        """
        if return_std and return_cov:
            raise InputError("return_std, return_cov: got True for both, accepted: one of them")
        x, g = self._new(X, gates)
        mean, spread = self.solution_.predict(x, g, covariance=return_cov)
        mean = self._y_mean + self._y_scale * mean
        if return_std:
            return mean, self._y_scale * np.sqrt(spread)
        if return_cov:
            return mean, self._y_scale**2 * (spread if spread.ndim == 2 else np.einsum("icjc->ijc", spread))
        return mean

    def sample_y(
        self, X: OtherInputs, n_samples: int = 1, random_state: Any = 0, gates: OtherGatings | None = None
    ) -> FunctionsLast:
        """Functions from the posterior at X (n, N0): (n, n_samples), or (n, C, n_samples)."""
        x, g = self._new(X, gates)
        drawn = self.solution_.sample(x, g, n_samples, seed=seed_of(random_state))
        return np.moveaxis(self._y_mean + self._y_scale * drawn, 0, -1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
