"""The infinite-width limit of a gated network: Gaussian-process regression with the kernel K_GP of `ggdln.theory.kernels`.

Works at any depth, below and above capacity. Inputs with no active gate have f(x) = 0 whatever the weights: as training
inputs they are left out and counted, as test inputs they are predicted 0 with variance 0. Outputs are independent of each
other. At T > 0 the regression is one in the features s_L(g) (x) x where those are fewer than the samples.
"""

import math
from functools import partial

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular

from ggdln.core import checks
from ggdln.core.blas import threads_for
from ggdln.core.errors import RankError
from ggdln.core.types import Fitted, Gatings, Inputs, Labels, PerLayer
from ggdln.theory.evidence import dead_log_density
from ggdln.theory.kernels import gp_kernel, gp_variance
from ggdln.theory.predictor import Predictor
from ggdln.theory.regression import RANK_TOLERANCE, regress
from ggdln.theory.symmetric import Coordinates
from ggdln.theory.training import Training, along


def gp_limit(
    x: Inputs,
    gates: Gatings | None = None,
    y: Labels | None = None,
    *,
    depth: int = 1,
    sigma: PerLayer = 1.0,
    temperature: float = 0.0,
    rank_tolerance: float = RANK_TOLERANCE,
) -> "GPSolution":
    """The infinite-width limit for training inputs x (P, N0), gates (P, M) and labels y (P,) or (P, C): a `GPSolution`.

    x may also be an iterable of blocks (x, gates, y), with neither gates nor y, for T > 0. sigma: one number, or one for each
    of the L + 1 layers of weights. rank_tolerance: a direction counts as independent at T = 0 if its squared length exceeds
    this share of the largest.
    """
    depth = checks.integer("depth", depth, 0)
    positive = partial(checks.number, low=0, exclusive=True)
    given = checks.one_or_each("sigma", sigma, positive, "a number in (0, inf)", depth + 1, "layers of weights")
    scale = math.prod(given) if isinstance(given, tuple) else given ** (depth + 1)
    temperature = checks.number("temperature", temperature, 0)
    rank_tolerance = checks.number("rank_tolerance", rank_tolerance, 0, 1)
    if gates is None and y is None:
        model = FeatureModel(Training.of(x, None, None, depth=checks.integer("depth", depth, 1)), scale, temperature)
        return GPSolution(model, temperature, given)
    x, gates = checks.inputs(x, gates)
    y = checks.labels("y", y, len(x))
    if temperature > 0 and depth > 0 and Coordinates.count("monomial", gates.shape[1], depth) * x.shape[1] < len(x):
        training = Training.of(x, gates, y, depth=depth, basis="monomial", form="features")
        solution = GPSolution(FeatureModel(training, scale, temperature), temperature, given)
        solution.fitted, _ = solution.predict(x, gates)
        return solution
    with threads_for(len(x)):
        kernel = KernelModel(x, gates, y, depth, scale, temperature, rank_tolerance)
    return GPSolution(kernel, temperature, given)


class GPSolution(Predictor):
    """The posterior of the infinitely wide network.

    fitted          mean at the training inputs, as y; None for samples in blocks
    train_error     mean of (fitted - y)^2
    rank            number of independent effective inputs
    dead            number of training inputs without an active gate
    log_evidence    log p(y), see `ggdln.theory.evidence`
    """

    width = math.inf
    fitted: Fitted | None

    def __init__(self, model, temperature, sigma):
        self.training, self._model, self.temperature, self.sigma = model, model, temperature, sigma
        self.depth, self.rank, self.dead = model.depth, model.rank, model.dead
        self.fitted, self.train_error = model.fitted, model.train_error
        self.log_evidence = model.log_density + dead_log_density(model, temperature)

    def live(self, x, gates):
        return super().live(x, gates) if self.depth else (x != 0).any(axis=1)

    def moments(self, x, gates, covariance):
        mean, spread = self._model.predict(x, gates, covariance)
        sides = self.training.sides
        # All outputs have the same variance and no covariance with each other.
        return mean.ravel(), np.kron(spread, np.eye(sides)) if covariance else np.repeat(spread, sides)

    def between(self, first, second):
        kernel = self._model.scale**2 * gp_kernel(*first, *second, depth=self.depth)
        return np.kron(kernel, np.eye(self.training.sides))

    def diagonal(self, x, gates):
        return np.repeat(self._model.scale**2 * gp_variance(x, gates, depth=self.depth), self.training.sides)


class KernelModel:
    """Regression with the kernel of the P training samples."""

    powers = None

    def __init__(self, x, gates, y, depth, scale, temperature, rank_tolerance):
        self.depth, self.scale, self.shape = depth, scale, (x.shape[1], gates.shape[1])
        self.outputs = None if y.ndim == 1 else y.shape[1]
        self.sides = self.outputs or 1
        live = gp_variance(x, gates, depth=depth) > 0
        if not live.any():
            raise RankError(f"all {len(x)} training inputs are dead: zero, or without an active gate")
        labels = y.reshape(-1, self.sides)
        self.x, self.gates, self.y, self.dead = x[live], gates[live], y[live], int(np.count_nonzero(~live))
        self.rank_tolerance = rank_tolerance
        self.dead_square, self.count = float(np.sum(labels[~live] ** 2)), int(live.sum()) * self.sides
        kernel = scale**2 * gp_kernel(self.x, self.gates, depth=depth)
        self.regression = regress(kernel, labels[live], temperature=temperature, rank_tolerance=rank_tolerance)
        self.rank, self.log_density = self.regression.rank, self.regression.log_density
        fitted = np.zeros_like(labels)
        fitted[live] = self.regression.fitted
        self.fitted, self.train_error = fitted.reshape(y.shape), float(np.mean((fitted - labels) ** 2))

    def predict(self, x, gates, covariance):
        k = self.scale**2 * gp_kernel(x, gates, self.x, self.gates, depth=self.depth)
        own = (gp_kernel if covariance else gp_variance)(x, gates, depth=self.depth)
        return self.regression.predict(k, self.scale**2 * own, covariance=covariance)


class FeatureModel:
    """Regression in the D features, with sums over the training samples; explicit coordinates, in which the prior is 1."""

    def __init__(self, training, scale, temperature):
        self.form = form = training.form(temperature)
        self.depth, self.scale, self.shape, self.temperature = training.depth, scale, training.shape, temperature
        self.outputs, self.sides, self.powers = training.outputs, training.sides, training.powers
        self.dead, self.dead_square, self.count, self.fitted = training.dead, training.dead_square, training.count, None
        side, inputs = len(form.gram), training.count // training.sides
        self.rank = min(side, inputs)
        system = scale**2 * form.gram
        system[np.diag_indices_from(system)] += temperature
        self.factor = cho_factor(system, lower=True, overwrite_a=True, check_finite=False)
        labels = scale * form.overlap.reshape(side, -1)
        self.weights = cho_solve(self.factor, labels, check_finite=False)
        log_det = 2 * float(np.log(np.diagonal(self.factor[0])).sum()) + (inputs - side) * math.log(temperature)
        quadratic = (form.square - float(np.sum(labels * self.weights))) / temperature
        self.log_density = -quadratic / 2 - self.sides / 2 * log_det - self.count / 2 * math.log(2 * math.pi)
        squares = form.square - 2 * float(np.sum(labels * self.weights))
        squares += scale**2 * float(np.sum(self.weights * (form.gram @ self.weights)))
        total = self.count + self.dead * self.sides
        self.train_error = (max(squares, 0.0) + self.dead_square) / total

    def predict(self, x, gates, covariance):
        norms = np.linalg.norm(gates, axis=1)
        rows = self.powers.coordinates[-1].features(gates, norms)
        features = self.scale * (rows[:, :, None] * along(x, gates, self.depth)[:, None, :]).reshape(len(x), -1)
        left = solve_triangular(self.factor[0], features.T, lower=True, check_finite=False)
        mean = features @ self.weights
        if covariance:
            return mean, self.temperature * left.T @ left
        return mean, self.temperature * np.einsum("pt,pt->t", left, left)
