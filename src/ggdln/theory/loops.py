"""The 1/N correction to the theory: one loop around the mode of the exact posterior.

The theory evaluates the predictor at one point, the saddle point. The posterior of the order parameters has a width of order
1/sqrt(N) around it and is skewed, both of which change averages by terms of order 1/N. In the coordinates u of `posterior`,
with u* the minimum of E, A its Hessian there and xi of mean 0 and covariance A^-1,

    <O> = O(u*) + mean[ O(u* + xi) - O(u*) ] + O(u* + d) - O(u*),    d = -A^-1 mean[ grad E(u* + xi) ],

up to 1/N^2, with the mean over pairs +xi, -xi. The variance of the predictor also has that of its mean over xi. The same with
xi scaled down tells how large the next order is.
"""

import math
import warnings

import numpy as np
import xarray as xr
from scipy.linalg import cho_factor, cho_solve, eigh

from ggdln.core.blas import threads_for
from ggdln.core.errors import InputError
from ggdln.core.types import OrderParameter, OtherGatings, OtherInputs
from ggdln.theory.evidence import log_evidence
from ggdln.theory.posterior import Posterior, hessian
from ggdln.theory.predictor import Predictor
from ggdln.theory.probe import NewInputs, Probe

MOST_COORDINATES = 2500
"""The Hessian has the square of this many entries and takes as many gradients."""

LEAST_PAIRS, MOST_PAIRS = 40, 80
SMALLER = 0.7
"""The factor of xi in the second, smaller cloud of points."""


def one_loop(solution, loops):
    """The `LoopSolution` for a `Solution`."""
    if loops != 1:
        raise InputError(f"loops: expected 0 or 1, got {loops}")
    if solution.shape.is_infinite:
        raise InputError("loops: an infinitely wide network has no corrections; expected 0")
    widest = max(solution.training.powers.sizes)
    if not all(width == int(width) and width > widest for width in solution.shape.widths):
        raise InputError(
            f"loops: the expansion needs whole widths above the number of features of a layer, up to {widest} here, got "
            f"width = {solution.width}; use solve_exact"
        )
    posterior = Posterior(solution, solution.layers)
    if posterior.size > MOST_COORDINATES:
        raise InputError(
            f"loops: the order parameters have {posterior.size} coordinates, more than {MOST_COORDINATES}; use solve_exact"
        )
    with threads_for(solution.likelihood.form.side):
        return LoopSolution(solution, posterior)


class LoopSolution(Predictor):
    """The theory with its 1/N correction.

    saddle          the `Solution` that is corrected
    evaluations     factorizations of the kernel, those of the saddle point included
    stiffness       smallest eigenvalue of the Hessian in units of the prior's: near 0 the expansion can't be trusted
    """

    def __init__(self, saddle, posterior):
        self.saddle, self.training, self.shape, self.temperature = saddle, saddle.training, saddle.shape, saddle.temperature
        self.width, self.sigma, self.depth, self.dead = saddle.width, saddle.sigma, saddle.depth, saddle.dead
        self.likelihood, self.posterior = saddle.likelihood, posterior
        self.mode = posterior.mode(tolerance=1e-6)
        scale = 1 / np.sqrt(posterior.prior_curvature(self.mode))
        curvature = hessian(posterior.energy, self.mode, scale)
        values, vectors = eigh(curvature)
        self.stiffness = float(values[0])
        if self.stiffness <= 0:
            raise InputError("loops: the mode of the posterior is not a minimum to working precision; use solve_exact")
        self._finish(curvature, scale)
        self.energy = posterior.energy(self.mode)[0]
        # log of the integral of e^-E, to one loop
        self._log_volume = -self.energy + posterior.size / 2 * math.log(2 * math.pi)
        self._log_volume += float(np.log(scale).sum() - np.log(values).sum() / 2)
        self._draw_clouds(values, vectors, curvature, scale)
        self.evaluations = saddle.evaluations + posterior.evaluations

    def _finish(self, curvature, scale):
        """Bring the mode to the minimum, with the Hessian held fixed."""
        factor = cho_factor(curvature)
        for _ in range(20):
            gradient = scale * self.posterior.energy(self.mode)[1]
            if gradient @ cho_solve(factor, gradient) < 1e-12:
                break
            self.mode = self.mode - scale * cho_solve(factor, gradient)

    def _draw_clouds(self, values, vectors, curvature, scale):
        """Points u* + xi of both clouds, in pairs, and the shifts d."""
        # The symmetric root: any other depends on the signs of eigenvectors, which LAPACK libraries choose differently.
        root, factor = vectors / np.sqrt(values) @ vectors.T, cho_factor(curvature)
        self.clouds, self.shifts = [], []
        noise = _directions(len(values)) @ root.T * scale
        for size in (1.0, SMALLER):
            points = [self.mode + sign * size * xi for xi in noise for sign in (1, -1)]
            gradients = [self.posterior.energy(point)[1] for point in points]
            if any(gradient is None for gradient in gradients):
                raise InputError("loops: the posterior is too wide for an expansion around its mode; use solve_exact")
            mean = np.mean(gradients, axis=0)
            self.clouds.append(points)
            self.shifts.append(self.mode - scale * cho_solve(factor, scale * mean) / size**2)

    def _at(self, u, inputs, covariance=False):
        chain = self.posterior.chain(u)
        probe = Probe(inputs, chain)
        scale = self.shape.scale * probe.scale
        mean, spread = self.likelihood.at(chain.b[-1]).predict(probe, covariance)
        return scale * mean, spread * (np.outer(scale, scale) if covariance else scale**2)

    def moments(self, x, gates, covariance):
        mean, spread, _ = self._corrected(x, gates, 0, covariance)
        return mean, spread

    def _corrected(self, x, gates, which, covariance=False):
        """Mean and variance or covariance to one loop from one of the clouds, and those of every pair of its points."""
        size, inputs = (1.0, SMALLER)[which], NewInputs(self.training, x, gates)
        centre = self._at(self.mode, inputs, covariance)
        shifted = self._at(self.shifts[which], inputs, covariance)
        points = [self._at(u, inputs, covariance) for u in self.clouds[which]]
        means, spreads = (np.array([point[k] for point in points]) for k in (0, 1))
        moved = means - centre[0]
        square = np.einsum("ka,kb->kab", moved, moved) if covariance else moved**2
        pairs = [
            values.reshape(-1, 2, *values.shape[1:]).mean(axis=1) / size**2 for values in (moved, spreads - centre[1] + square)
        ]
        found = [base + pair.mean(axis=0) + shift - base for base, pair, shift in zip(centre, pairs, shifted, strict=True)]
        return *found, pairs

    def prediction(self, x: OtherInputs, gates: OtherGatings) -> xr.Dataset:
        """The predictor with an estimate of its errors: a Dataset over the inputs, and outputs if there are several.

        mean, variance; mean_error, variance_error: from the finite number of points and from the next order of the expansion.
        The attribute `trusted` is 0 where that order is larger than half of the correction.
        """
        x, gates = self._checked(x, gates, "")
        live = self.live(x, gates)
        mean, variance, pairs, following, trusted = self._orders(x[live], gates[live])
        # Directions that are orthogonal leave no noise once there are as many as coordinates.
        left = max(0.0, 1 - len(pairs[0]) / len(self.mode))
        noise = [pair.std(axis=0, ddof=1) * math.sqrt(left / len(pair)) for pair in pairs]
        found = {"mean": mean, "variance": np.maximum(variance, 0.0)}
        found |= {
            f"{name}_error": np.hypot(*both) for name, both in zip(found, zip(following, noise, strict=True), strict=True)
        }
        if not trusted:
            warnings.warn(
                "loops: the next order of the expansion is not small here; use solve_exact", RuntimeWarning, stacklevel=2
            )
        return self.dataset(found, live, {"trusted": int(trusted), "stiffness": self.stiffness})

    def trusted(self, x: OtherInputs, gates: OtherGatings) -> bool:
        """Whether the next order of the variance at these inputs is at most half of the correction, as in `prediction`."""
        x, gates = self._checked(x, gates, "")
        live = self.live(x, gates)
        return not live.any() or self._orders(x[live], gates[live])[-1]

    def _orders(self, x, gates):
        """Mean and variance, those of each pair of points, the sizes of their next orders, and whether these are small."""
        mean, variance, pairs = self._corrected(x, gates, 0)
        other_mean, other_variance, _ = self._corrected(x, gates, 1)
        # The difference of the clouds is 1 - SMALLER^2 of the terms of the next order that they contain.
        following = [abs(a - b) / (1 - SMALLER**2) for a, b in ((mean, other_mean), (variance, other_variance))]
        correction = abs(variance - self.saddle.moments(x, gates, False)[1]).mean()
        trusted = bool(following[1].mean() <= 0.5 * correction + 1e-3 * abs(variance).mean())
        return mean, variance, pairs, following, trusted

    @property
    def log_evidence(self) -> float:
        """log p(y) to one loop: the mode, and the width of the posterior around it relative to that of the prior."""
        energy = self.posterior.log_prior_volume() - self._log_volume + self.likelihood.shift
        return log_evidence(self.training, self.temperature, energy)

    @property
    def order_parameters(self) -> list[OrderParameter]:
        """Those of the saddle point."""
        return self.saddle.order_parameters

    def between(self, first, second):
        return self.saddle.between(first, second)

    def diagonal(self, x, gates):
        return self.saddle.diagonal(x, gates)


def _directions(size):
    """Vectors (k, D) of length sqrt(D) in random directions, orthogonal in groups of D: their mean square is the identity."""
    rng, groups, count = np.random.default_rng(0), [], min(max(size, LEAST_PAIRS), MOST_PAIRS)
    while sum(map(len, groups)) < count:
        groups.append(np.linalg.qr(rng.standard_normal((size, min(size, count))))[0].T)
    return math.sqrt(size) * np.concatenate(groups)
