"""Hamiltonian Monte Carlo for energies that are close to a quadratic form.

In coordinates s in which the form is |s|^2 / 2, E = |s|^2 / 2 + D(s) with a small rest D. The motion in the form alone is a
rotation of s and momentum p, which is done exactly; the rest gives kicks in between. A trajectory of about a quarter turn makes
successive draws nearly independent, and the smaller the rest, the fewer kicks it needs. The form is the prior's, corrected
along the few directions in which the data change it most, found by Lanczos iteration. Any form gives the right distribution.
"""

import itertools
import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

DIFFERENCE = 1e-4
"""Step of the differences of gradients, in units of the width of the posterior."""

LANCZOS_STEPS, CHANGED = 20, 0.2
"""Products with the Hessian, and the relative change of an eigenvalue from 1 that is worth a correction."""

MOST_KICKS, ACCEPTED = 40, (0.7, 0.95)
"""Of a trajectory; and the share of accepted ones at which their number is right."""

STEP, MOST_STEPS = 1.5, 30
"""Standard deviation of the rest between two energies on the way to the posterior, and most of them."""


@dataclass(frozen=True)
class Form:
    """A quadratic form about `centre` (D,): scale (D,) first, then factors along the orthonormal `directions` (k, D)."""

    centre: np.ndarray
    scale: np.ndarray
    directions: np.ndarray
    factors: np.ndarray

    def outward(self, s):
        """The coordinates u of whitened ones s."""
        return self.centre + self.scale * (s + ((self.factors - 1) * (self.directions @ s)) @ self.directions)

    def inward(self, u):
        """Whitened coordinates s of u."""
        s = (u - self.centre) / self.scale
        return s + ((1 / self.factors - 1) * (self.directions @ s)) @ self.directions

    def pulled(self, gradient):
        """The gradient by s from that by u."""
        g = self.scale * gradient
        return g + ((self.factors - 1) * (self.directions @ g)) @ self.directions

    @property
    def log_volume(self):
        """log |du/ds|."""
        return float(np.log(self.scale).sum() + np.log(self.factors).sum())


def fitted_form(energy, centre, curvature, rng):
    """The `Form` at a minimum `centre` of the energy, from the diagonal `curvature` of the prior and Lanczos iteration."""
    scale, here = 1 / np.sqrt(curvature), energy(centre)[1]

    def product(v):
        ahead = energy(centre + DIFFERENCE * scale * v)[1]
        return v if ahead is None else scale * (ahead - here) / DIFFERENCE

    size = len(centre)
    basis, diagonal, beside = [], [], []
    v = rng.standard_normal(size)
    v /= np.linalg.norm(v)
    for _ in range(min(LANCZOS_STEPS, size)):
        basis.append(v)
        w = product(v)
        diagonal.append(float(w @ v))
        # Twice, since rounding would bring back what was taken off.
        for _ in range(2):
            w -= np.array(basis).T @ (np.array(basis) @ w)
        norm = float(np.linalg.norm(w))
        if norm < 1e-8 * abs(diagonal[-1]):
            break
        beside.append(norm)
        v = w / norm
    beside = beside[: len(diagonal) - 1]
    values, vectors = np.linalg.eigh(np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1))
    last = np.abs(vectors[-1]) * (norm if len(diagonal) < size else 0.0)
    # Only what has converged: a Ritz value inside the spectrum says nothing of a single direction.
    kept = (np.abs(values - 1) > CHANGED) & (last < 0.3 * np.abs(values - 1)) & (values > 0.05)
    return Form(centre, scale, vectors.T[kept] @ np.array(basis), 1 / np.sqrt(values[kept]))


class Walker:
    """One chain: a position s with its energy and gradient, and the number of kicks that it has learnt to make."""

    def __init__(self, energy, form, rng, *, weight=1.0):
        self.energy, self.form, self.rng, self.weight = energy, form, rng, weight
        self.kicks, self.rates = 2, []

    def place(self, s):
        """Begin at s; whether its energy is finite."""
        self.s, (self.value, self.slope) = s, self.at(s)
        return math.isfinite(self.value)

    def at(self, s):
        """Energy, of which `weight` is the share beside the quadratic form, and the gradient of the rest D."""
        value, gradient = self.energy(self.form.outward(s))
        if gradient is None:
            return math.inf, None
        rest = self.weight * (value - float(s @ s) / 2)
        return float(s @ s) / 2 + rest, self.weight * (self.form.pulled(gradient) - s)

    def move(self):
        """One trajectory: the chance with which it was accepted."""
        momentum = self.rng.standard_normal(len(self.s))
        begin = self.value + float(momentum @ momentum) / 2
        angle = math.pi / 2 * self.rng.uniform(0.8, 1.2) / self.kicks
        cosine, sine = math.cos(angle), math.sin(angle)
        s, value, slope = self.s, self.value, self.slope
        for _ in range(self.kicks):
            momentum = momentum - angle / 2 * slope
            s, momentum = cosine * s + sine * momentum, cosine * momentum - sine * s
            value, slope = self.at(s)
            if slope is None:
                break
            momentum = momentum - angle / 2 * slope
        end = math.inf if slope is None else value + float(momentum @ momentum) / 2
        chance = math.exp(min(0.0, begin - end)) if math.isfinite(end) else 0.0
        if self.rng.random() < chance:
            self.s, self.value, self.slope = s, value, slope
        return chance

    def learn(self, chance):
        """Change the number of kicks by how the last trajectories went."""
        self.rates.append(chance)
        if len(self.rates) < 4:
            return
        rate, self.rates = float(np.mean(self.rates)), []
        if rate < ACCEPTED[0]:
            self.kicks = min(MOST_KICKS, math.ceil(1.5 * self.kicks))
        elif rate > ACCEPTED[1]:
            self.kicks = max(1, self.kicks - max(1, self.kicks // 5))


def log_volume(energy, form, draws, rng):
    """log of the integral of e^-E, and its standard error, from draws u (n, D) of the distribution and others on the way to it.

    Between the Gaussian of the quadratic form, whose volume is known, and the distribution stand energies with a part of the
    rest D; Bennett's acceptance ratio compares each with the next, from draws of both.
    """
    size, count = len(form.centre), max(len(draws), 100)
    gaussian = rng.standard_normal((count, size))
    rests = [_rests(energy, form, gaussian)]
    last = (
        _rests(energy, form, np.array([form.inward(u) for u in draws]))
        if len(draws)
        else _walked(energy, form, 1.0, count, rng)
    )
    steps = min(max(math.ceil(float(np.std(last)) / STEP), 1), MOST_STEPS)
    weights = np.linspace(0, 1, steps + 1)
    rests += [_walked(energy, form, weight, count, rng) for weight in weights[1:-1]] + [last]
    total, variance = size / 2 * math.log(2 * math.pi) + form.log_volume, 0.0
    for (low, high), (here, there) in zip(itertools.pairwise(weights), itertools.pairwise(rests), strict=True):
        ratio, error = acceptance_ratio((high - low) * here, (high - low) * there)
        total, variance = total + ratio, variance + error**2
    return total, math.sqrt(variance)


def _rests(energy, form, points):
    """D at whitened points."""
    return np.array([energy(form.outward(s))[0] - float(s @ s) / 2 for s in points])


def _walked(energy, form, weight, count, rng):
    """D along a chain of the energy with a part of it."""
    walker = Walker(energy, form, rng, weight=weight)
    walker.place(np.zeros(len(form.centre)))
    found = []
    for k in range(40 + count):
        chance = walker.move()
        if k < 40:
            walker.learn(chance)
        else:
            found.append((walker.value - float(walker.s @ walker.s) / 2) / weight)
    return np.array(found)


def acceptance_ratio(forward, backward):
    """log(Z_1 / Z_0) by Bennett's acceptance ratio, with its standard error.

    forward: E_1 - E_0 at draws of 0, infinite where 1 can't be; backward: E_1 - E_0 at draws of 1.
    """
    shift = math.log(len(forward) / len(backward))

    def balance(ratio):
        """Zero at the free energy difference -log(Z_1 / Z_0) = ratio."""
        return expit(-(shift + forward - ratio)).sum() - expit(shift + backward - ratio).sum()

    finite = np.concatenate([forward[np.isfinite(forward)], backward])
    low, high = float(finite.min()) - 50, float(finite.max()) + 50
    ratio = brentq(balance, low, high)
    error = 0.0
    for chances in (expit(-(shift + forward - ratio)), expit(shift + backward - ratio)):
        error += float(np.var(chances) / (np.mean(chances) ** 2 * len(chances)))
    return -ratio, math.sqrt(error)
