"""The infinite-width limit of a gated network: Gaussian-process regression with the kernel K_GP of `ggdln.theory.kernels`.

Works at any depth, below and above capacity. Inputs with no active gate have f(x) = 0 whatever the weights: as training
inputs they are left out and counted, as test inputs they are predicted 0 with variance 0.
"""

from dataclasses import dataclass

import numpy as np

from ggdln.core import checks
from ggdln.core.errors import RankError
from ggdln.theory.kernels import gp_kernel, gp_variance
from ggdln.theory.regression import RANK_TOLERANCE, Regression, regress


@dataclass(frozen=True)
class GPSolution:
    """The posterior of the infinitely wide network.

    fitted (P,): mean at the training inputs. train_error: mean of (fitted - y)^2. rank: number of independent effective
    inputs. dead: number of training inputs without an active gate.
    """

    fitted: np.ndarray
    train_error: float
    rank: int
    dead: int
    temperature: float
    _x: np.ndarray
    _gates: np.ndarray
    _network: dict
    _regression: Regression

    def predict(self, x, gates):
        """Mean and variance of the output at inputs x (n, N0) with gates (n, M): (n,), (n,)."""
        x, gates = checks.inputs(x, gates, prefix="test ")
        k = gp_kernel(x, gates, self._x, self._gates, **self._network)
        return self._regression.predict(k, gp_variance(x, gates, **self._network))

    def kernel(self, x, gates, x2=None, gates2=None):
        """K_GP between (x, gates) and (x2, gates2), default themselves: (n, n2)."""
        return gp_kernel(x, gates, x2, gates2, **self._network)

    def kernel_diagonal(self, x, gates):
        """K_GP of each input with itself: (n,)."""
        return gp_variance(x, gates, **self._network)


def gp_limit(x, gates, y, *, depth=1, sigma=1.0, temperature=0.0, rank_tolerance=RANK_TOLERANCE):
    """Solve the infinite-width limit for training inputs x (P, N0), gates (P, M) and labels y (P,)."""
    x, gates, y = checks.training_set(x, gates, y)
    network = {"depth": checks.integer("depth", depth, 0), "sigma": checks.number("sigma", sigma, 0, exclusive=True)}
    temperature = checks.number("temperature", temperature, 0)
    rank_tolerance = checks.number("rank_tolerance", rank_tolerance, 0, 1)
    alive = gp_variance(x, gates, **network) > 0
    if not alive.any():
        raise RankError(f"all {len(x)} training inputs are dead: zero, or without an active gate")
    kernel = gp_kernel(x[alive], gates[alive], **network)
    regression = regress(kernel, y[alive], temperature=temperature, rank_tolerance=rank_tolerance)
    fitted = np.zeros_like(y)
    fitted[alive] = regression.fitted
    return GPSolution(
        fitted=fitted,
        train_error=float(np.mean((fitted - y) ** 2)),
        rank=regression.rank,
        dead=int(np.count_nonzero(~alive)),
        temperature=temperature,
        _x=x[alive],
        _gates=gates[alive],
        _network=network,
        _regression=regression,
    )
