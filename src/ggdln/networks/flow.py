"""Gradient flow followed in function space.

Gradient flow dw/dt = -J(w)^T (f(w) - y) is stiff: the eigenvalues of the tangent kernel Theta = J J^T span many
decades, and an explicit method must resolve the fastest while it waits for the slowest. Here the linear part L = -J_0^T
J_0, with J_0 taken at the start of the step, is integrated exactly through the eigenvectors Q and eigenvalues D of
Theta_0, and what the tangent map changes on the way is treated by the third-order exponential Runge-Kutta method of Cox
and Matthews (2002), with its second-order companion for the error. A function of L acts on a weight vector v as

    psi(h L) v = psi(0) v - h J_0^T Q [ (psi(z) - psi(0)) / z ] Q^T J_0 v,    z = -h D,

so a step needs one eigendecomposition (P C, P C) and a few applications of J and J^T, whatever the number of weights.
"""

import math
from dataclasses import dataclass

import torch

from ggdln.networks.device import hosted
from ggdln.networks.state import TrainingState

GROW, SHRINK, SAFETY = 8.0, 0.1, 0.9
HOPELESS = 1.0
# in units of the fastest time scale, 1 / (largest eigenvalue)
FIRST, LONGEST = 30.0, 1e12


@dataclass(frozen=True, eq=False)
class FlowState(TrainingState):
    """Also the length (R,) of the next step, NaN before the first."""

    length: torch.Tensor


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Eigenvalues (R, P C) and eigenvectors (R, P C, P C) of Theta at the start of a step; the residual in them (R, P C)."""

    values: torch.Tensor
    vectors: torch.Tensor
    residual: torch.Tensor


@dataclass(frozen=True)
class Flow:
    """Gradient flow of R runs at once, each with its own step length.

    accuracy: local error allowed per step, as a share of the norm of the residual or of the labels, whichever is less.
    """

    accuracy: float
    State = FlowState

    def start(self, objective, position):
        """The state of runs that begin at a position."""
        return FlowState.begin(position.weights, length=torch.full_like(position.mse, math.nan))

    def advance(self, objective, state, position):
        """One accepted step of every run."""
        values, vectors = hosted(eigh, position.local.kernel())
        spectrum = Spectrum(values.clamp_min(0), vectors, _times(vectors.mT, position.residual))
        finish = _time_to(spectrum, 0.998 * objective.target)
        length = self._length(state.length, spectrum, position)
        weights, pending = state.weights, torch.ones_like(state.stuck)
        for _ in range(60):
            h = torch.minimum(length, finish)
            trial, error = self._trial(objective, position, spectrum, h)
            factor = (SAFETY * (self.accuracy / error.clamp_min(1e-30)) ** (1 / 3)).clamp(SHRINK, GROW)
            factor = torch.where(error.isfinite(), factor, torch.full_like(factor, SHRINK))
            accepted = pending & (error <= self.accuracy)
            weights = torch.where(accepted[:, None], trial, weights) if trial is not None else weights
            # a step cut short because the end was near says nothing against the longer one
            longer = torch.maximum(h * factor, torch.where(h < length, length, h * SHRINK))
            length = torch.where(accepted, longer, torch.where(pending, h * factor, length))
            pending &= ~accepted
            if not pending.any():
                break
        return FlowState(weights, state.steps + 1, state.stuck | pending, length)

    def _length(self, length, spectrum, position):
        """The step length (R,) to be tried first."""
        largest = spectrum.values[:, -1]
        if length.isnan().any():
            first = _time_to_move(spectrum, 0.3 * position.residual.norm(dim=-1))
            length = torch.where(length.isnan(), torch.minimum(first, FIRST / largest), length)
        # a run that rests above its target would lengthen its steps for ever
        return torch.minimum(length, LONGEST / largest)

    def _trial(self, objective, position, spectrum, h):
        """Weights after a step of length h (R,) and the local error, as a share; None if hopeless."""
        values, vectors, rotated = spectrum.values, spectrum.vectors, spectrum.residual
        h = h[:, None]
        z = -h * values
        phi1, phi2, phi3, phi4 = phi(z)
        decay = torch.exp(z / 2) * rotated
        norm = torch.minimum(position.residual.norm(dim=-1), objective.y.norm())

        def pull(coefficients):
            return position.local.vjp(_times(vectors, coefficients))

        def stage(point):
            there = objective.at(point)
            gradient = there.local.vjp(there.residual)
            return gradient, _times(vectors.mT, position.local.jvp(gradient))

        half = position.weights - pull(h / 2 * phi(z / 2)[0] * rotated)
        gradient_a, seen = stage(half)
        drift_a = values * decay - seen
        correction = (2 * h * phi2 * drift_a).norm(dim=-1) / norm
        if not (correction <= HOPELESS).any():
            # the correction exceeds the residual itself: spare the second half of the work
            return None, torch.where(correction.isfinite(), correction.clamp_min(self.accuracy * 1.1), math.inf)
        linear = -h * phi1 * rotated - 2 * h**2 * phi2 * drift_a
        full = position.weights + pull(linear + 2 * h * decay) - 2 * h * gradient_a
        expected = rotated + values * linear + 2 * h * drift_a
        gradient_b, seen = stage(full)
        drift_b = values * expected - seen
        end = -h * phi1 * rotated - h**2 * ((4 * phi3 - 8 * phi4) * drift_a + (4 * phi4 - phi3) * drift_b)
        end = position.weights + pull(end + h * (2 / 3 * decay + expected / 6))
        end -= h * (2 / 3 * gradient_a + gradient_b / 6)
        error = h * ((2 * phi2 - 8 * phi3) * drift_a + (4 * phi3 - phi2) * drift_b)
        return end, error.norm(dim=-1) / norm


def eigh(matrix):
    """Eigenvalues and eigenvectors; in float64 where the given precision fails to converge."""
    try:
        return torch.linalg.eigh(matrix)
    except torch.linalg.LinAlgError:
        values, vectors = torch.linalg.eigh(matrix.double())
        return values.to(matrix.dtype), vectors.to(matrix.dtype)


def phi(z):
    """phi_1 .. phi_4 at z <= 0, where phi_k(z) = sum_n z^n / (n + k)!."""
    small = z > -1
    safe = torch.where(small, -1.0, z)
    results = [torch.expm1(safe) / safe]
    for k in (2, 3, 4):
        results.append((results[-1] - 1 / math.factorial(k - 1)) / safe)
    series = torch.zeros_like(z)
    for n in range(16, -1, -1):
        series = series * z + 1 / math.factorial(n + 4)
    for k in (4, 3, 2, 1):
        results[k - 1] = torch.where(small, series, results[k - 1])
        series = series * z + 1 / math.factorial(k - 1)
    return results


def _times(matrix, vector):
    return (matrix @ vector[..., None])[..., 0]


def _time_to(spectrum, mse):
    """When the residual of a constant kernel reaches mean square `mse` (): (R,), infinity if never."""

    def decayed(t):
        return -(spectrum.residual * torch.exp(-t[:, None] * spectrum.values)).square().mean(-1)

    return _bisect(decayed, -mse, spectrum.values)


def _time_to_move(spectrum, distance):
    """When the weights of a network with constant kernel have moved by `distance` (R,): (R,)."""

    def moved(t):
        change = t[:, None] * phi(-t[:, None] * spectrum.values)[0] * spectrum.residual
        return (spectrum.values * change.square()).sum(-1).sqrt()

    return _bisect(moved, distance, spectrum.values)


def _bisect(rising, level, values):
    """Where a rising function of time reaches `level`, to 0.1 %, searched over all time scales of the kernel."""
    low = 1e-6 / values[:, -1].clamp_min(1e-300)
    decades = torch.full_like(low, 24.0)
    lower, upper = torch.zeros_like(low), decades
    for _ in range(16):
        middle = (lower + upper) / 2
        above = rising(low * 10**middle) >= level
        lower, upper = torch.where(above, lower, middle), torch.where(above, middle, upper)
    return torch.where(upper == decades, math.inf, low * 10**upper)
