"""What all solutions offer: the predictor and the kernel at new inputs, whatever the number of outputs."""

import os
from typing import Any

import numpy as np
import xarray as xr

from ggdln.core import checks, seeds
from ggdln.core.blas import threads_for
from ggdln.core.display import Shown
from ggdln.core.errors import InputError
from ggdln.core.types import Covariance, Functions, Kernel, OtherGatings, OtherInputs, SecondGatings, SecondInputs, Values
from ggdln.core.variables import LABELS, NUMBER, SQUARES, Variable, described
from ggdln.theory.display import facts, plot_eigenvalues

MOST_ENTRIES = 2**25
"""Predictions are made in blocks whose kernel with the training set has at most this many entries."""


PREDICTION = {
    "mean": Variable("mean of the output over the posterior", "<f(x)>", units=LABELS),
    "variance": Variable("variance of the output over the posterior", "<df(x)^2>", units=SQUARES),
    "mean_error": Variable("estimated error of the mean", units=LABELS),
    "variance_error": Variable("estimated error of the variance", units=SQUARES),
    "rhat": Variable("R-hat of the mean given a draw", units=NUMBER),
    "ess": Variable("effective sample size of the mean given a draw", units=NUMBER),
}
"""What `prediction` of one solution or another holds."""


class Predictor(Shown):
    """A solution for a `Training`, from which subclasses take `moments` and `between`."""

    training: Any
    log_evidence: Any

    def predict(self, x: OtherInputs, gates: OtherGatings, *, covariance: bool = False) -> tuple[Values, Values | Covariance]:
        """Mean and variance of the output at x (n, N0) with gates (n, M), both 0 at dead inputs.

        Two arrays (n,), or (n, C) for labels (P, C). With `covariance` the second is the covariance (n, n), or (n, C, n, C).
        The variance is that of the network's output f over the posterior; the noise of labels, of variance T, is not in it.
        """
        x, gates = self._checked(x, gates, "")
        sides, live = self.training.sides, self.live(x, gates)
        mean, spread = np.zeros((len(x), sides)), np.zeros((len(x), sides) * (2 if covariance else 1))
        rows, outputs = np.flatnonzero(live), np.arange(sides)
        step = len(x) if covariance else max(1, MOST_ENTRIES // max(self.training.count, 1) // sides)
        for first in range(0, len(rows), step):
            part = rows[first : first + step]
            # Rounding may leave the variance of a trained input slightly below its exact value 0.
            with threads_for(self.training.count):
                found, square = self.moments(x[part], gates[part], covariance)
            mean[part] = found.reshape(-1, sides)
            if covariance:
                spread[np.ix_(part, outputs, part, outputs)] = square.reshape(len(part), sides, len(part), sides)
            else:
                spread[part] = np.maximum(square, 0.0).reshape(-1, sides)
        if self.training.outputs is None:
            mean, spread = mean[:, 0], spread[:, 0, :, 0] if covariance else spread[:, 0]
        return mean, spread

    def prediction(self, x: OtherInputs, gates: OtherGatings) -> xr.Dataset:
        """The mean and the variance of `predict` as a Dataset over the inputs, and outputs if there are several."""
        mean, variance = self.predict(x, gates)
        return self.dataset({"mean": mean, "variance": variance}, np.full(len(mean), True), {})

    def sample(self, x: OtherInputs, gates: OtherGatings, count: int = 1, *, seed: int = 0) -> Functions:
        """Functions from the posterior at x (n, N0) with gates (n, M), 0 at dead inputs: (count, n), or (count, n, C)."""
        x, gates = self._checked(x, gates, "")
        count, rng = checks.integer("count", count, 1), seeds.rng(seed, "sample")
        sides, live, done = self.training.sides, self.live(x, gates), 0
        result = np.zeros((count, len(x), sides))
        for mean, covariance, number in self.components(x[live], gates[live], count, rng) if live.any() else ():
            drawn = rng.multivariate_normal(mean, covariance, size=number, method="eigh", check_valid="ignore")
            result[done : done + number, live] = drawn.reshape(number, -1, sides)
            done += number
        return result[..., 0] if self.training.outputs is None else result

    def kernel(
        self, x: OtherInputs, gates: OtherGatings, x2: SecondInputs | None = None, gates2: SecondGatings | None = None
    ) -> Kernel:
        """K~ between (x, gates) and (x2, gates2), default themselves, without the temperature: (n, n2), or (n, C, n2, C)."""
        x, gates = self._checked(x, gates, "")
        x2, gates2 = (x, gates) if x2 is None else self._checked(x2, gates2, "second ")
        sides, rows, columns = self.training.sides, self.live(x, gates), self.live(x2, gates2)
        result = np.zeros((len(x), sides, len(x2), sides))
        if rows.any() and columns.any():
            block = self.between((x[rows], gates[rows]), (x2[columns], gates2[columns]))
            block = block.reshape(rows.sum(), sides, columns.sum(), sides)
            result[np.ix_(rows, range(sides), columns, range(sides))] = block
        return result[:, 0, :, 0] if self.training.outputs is None else result

    def kernel_diagonal(self, x: OtherInputs, gates: OtherGatings) -> Values:
        """K~(x, x) for each input: (n,), or (n, C)."""
        x, gates = self._checked(x, gates, "")
        result = np.zeros((len(x), self.training.sides))
        live = self.live(x, gates)
        if live.any():
            result[live] = self.diagonal(x[live], gates[live]).reshape(-1, self.training.sides)
        return result[:, 0] if self.training.outputs is None else result

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a NetCDF file, from which `ggdln.load` makes it again."""
        from ggdln.theory.saving import save

        save(self, path)

    def plot(self, ax: Any = None) -> Any:
        """The eigenvalues of the order parameters at the saddle point, into `ax` or a new plot of matplotlib: the axes."""
        saddle = getattr(self, "saddle", self)
        if not hasattr(saddle, "eigenvalues"):
            raise InputError(
                "plot: the limit of infinite width has no order parameters beyond the prior; accepted: other solutions"
            )
        return plot_eigenvalues(saddle, ax)

    def facts(self) -> dict[str, Any]:
        """What it is, by the symbols of the paper."""
        return facts(self)

    def dataset(self, found, live, attributes, dead=None):
        """Values by name at live inputs, (n C,) each, as a Dataset over all inputs; dead: those at dead inputs if not 0."""
        sides, several = self.training.sides, self.training.outputs is not None
        dims, result = ("input", "output") if several else ("input",), {}
        for name, values in found.items():
            full = np.full((len(live), sides), (dead or {}).get(name, 0.0))
            full[live] = values.reshape(-1, sides)
            result[name] = (dims, full if several else full[:, 0])
        return described(xr.Dataset(result, attrs=attributes), PREDICTION)

    def live(self, x, gates):
        """Which inputs have an active gate and are not zero: elsewhere f = 0 for all weights."""
        return (gates != 0).any(axis=1) & (x != 0).any(axis=1)

    def moments(self, x, gates, covariance):
        """Mean and variance or covariance at live inputs, inputs and outputs in one flat dimension."""
        raise NotImplementedError

    def components(self, x, gates, count, rng):
        """The Gaussians that functions at live inputs are drawn from: (mean, covariance, how many of the `count`) of each."""
        yield *self.moments(x, gates, True), count

    def between(self, first, second):
        """K~ between two pairs of live inputs and gates, inputs and outputs in one flat dimension."""
        raise NotImplementedError

    def diagonal(self, x, gates):
        """K~(x, x) at live inputs, inputs and outputs in one flat dimension."""
        raise NotImplementedError

    def _checked(self, x, gates, prefix):
        x, gates = checks.inputs(x, gates, prefix)
        for name, value, size in (("x", x, self.training.shape[0]), ("gates", gates, self.training.shape[1])):
            if value.shape[1] != size:
                raise InputError(f"{prefix}{name}: {value.shape[1]} columns, the training set has {size}")
        powers = self.training.powers
        if powers is not None and powers.kind == "subset" and powers.coordinates and not np.isin(gates, (0.0, 1.0)).all():
            raise InputError(f"{prefix}gates: expected 0 or 1 as in training; solve with basis='monomial' for others")
        return x, gates
