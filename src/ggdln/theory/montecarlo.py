"""Hamiltonian Monte Carlo for energies that are close to a quadratic form.

In coordinates s in which the form is |s|^2 / 2, E = |s|^2 / 2 + D(s) with a small rest D. The motion in the form alone is a
rotation of s and momentum p, which is done exactly; the rest gives kicks in between. A trajectory of about a quarter turn makes
successive draws nearly independent, and the smaller the rest, the fewer kicks it needs. They come in pairs, weaker where two
pairs meet and stronger inside, which makes the error of the energy smaller than kicks of equal strength do (McLachlan, SIAM J.
Sci. Comput. 16, 151, 1995). The form is the prior's, corrected along the few directions in which the data change it most, found
by Lanczos iteration. Any form gives the right distribution.
"""

import itertools
import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import erfcinv, expit

DIFFERENCE = 1e-4
"""Step of the differences of gradients, in units of the width of the posterior."""

LANCZOS_STEPS, CHANGED, FAR = (6, 20), 0.2, 0.5
"""Least and most products with the Hessian; the relative change of an eigenvalue from 1 that is worth a correction, and the one
that is worth further products until it is found."""

MOST_KICKS, ACCEPTED, JUDGED = 40, (0.7, 0.8), 5
"""Of a trajectory; the accepted share below which their number is raised, and the one that is aimed at; and after how many
trajectories."""

OUTER = 0.1932
"""The share of the outer kicks of a pair, where both together and the inner one make 1: McLachlan's with the least error."""

FORGOTTEN, MOST_WARMUP = 1.5, 80
"""Trajectories of a warm-up for each kick of a trajectory, and most of them."""

TURN = math.pi / 2, 0.2
"""The angle of a trajectory, and its relative spread, without which a period of the motion might be met."""

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
    least, most = LANCZOS_STEPS
    while len(basis) < min(most, size):
        basis.append(v)
        w = product(v)
        diagonal.append(float(w @ v))
        # Twice, since rounding would bring back what was taken off.
        for _ in range(2):
            w -= np.array(basis).T @ (np.array(basis) @ w)
        norm = float(np.linalg.norm(w)) if len(basis) < size else 0.0
        values, vectors = np.linalg.eigh(np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1))
        # Only what has converged: a Ritz value inside the spectrum says nothing of a single direction.
        found = norm * np.abs(vectors[-1]) < 0.3 * np.abs(values - 1)
        far = ((np.abs(values - 1) > FAR) & ~found).any()
        if norm < 1e-8 * abs(diagonal[-1]) or (len(basis) >= least and not far):
            break
        beside.append(norm)
        v = w / norm
    kept = (np.abs(values - 1) > CHANGED) & found & (values > 0.05)
    return Form(centre, scale, vectors.T[kept] @ np.array(basis), 1 / np.sqrt(values[kept]))


def strengths(kicks):
    """Of the kicks of a trajectory, one at each end and the others at equal distances between them: (kicks + 1,), sum 1."""
    if kicks == 1:
        return np.full(2, 0.5)
    found = np.zeros(kicks + 1)
    found[1::2] = 1 - 2 * OUTER
    found[:-1:2] += OUTER
    found[2::2] += OUTER
    return 2 * found / kicks


class Pace:
    """How many kicks a trajectory takes, 1 or an even number, learnt from how others of the same distribution went."""

    def __init__(self):
        self.kicks, self.least, self.chances = 2, 1, []

    def learn(self, chance):
        """Change the number if the trajectories with it are accepted too rarely, or more often than needed."""
        self.chances.append(chance)
        if len(self.chances) % JUDGED:
            return
        # erfc of the error of the energy is the accepted share; as the kicks become more it fell no faster than by the fourth
        # power, on the tasks that were looked at.
        few, aim, error = erfcinv([*ACCEPTED, min(max(np.mean(self.chances), 1e-6), 1 - 1e-6)])
        kicks, fewer = self.kicks, max(self.kicks - 2, 1)
        if error > few:
            wanted = kicks * min((error / aim) ** 0.25, 2.0)
            kicks = self.least = min(max(2 * math.ceil(wanted / 2), kicks // 2 * 2 + 2), MOST_KICKS)
        elif self.least <= fewer < kicks and error * (kicks / fewer) ** 4 < aim:
            kicks = fewer
        if kicks != self.kicks:
            self.kicks, self.chances = kicks, []


class Walker:
    """One chain: a position s with its energy and gradient, and the `Pace` at which it goes, which chains may share.

    force: the gradient alone, for the kicks inside a trajectory, where the energy isn't needed. Neither has to be the true
    gradient: what goes by any function of the position can be undone and keeps volumes, and the energies decide.
    """

    def __init__(self, energy, form, rng, *, weight=1.0, pace=None, force=None):
        self.energy, self.form, self.rng, self.weight = energy, form, rng, weight
        self.force = force or self._slope
        self.pace = Pace() if pace is None else pace

    def _slope(self, u):
        return self.energy(u)[1]

    def place(self, s):
        """Begin at s; whether its energy is finite."""
        self.s, (self.value, self.slope) = s, self.at(s)
        return math.isfinite(self.value)

    def at(self, s):
        """Energy, of which `weight` is the share beside the quadratic form, and the gradient of the rest D."""
        value, gradient = self.energy(self.form.outward(s))
        rest = self.weight * (value - float(s @ s) / 2)
        return float(s @ s) / 2 + rest, self.slope_of(gradient, s)

    def slope_of(self, gradient, s):
        """The gradient of the rest by s, from that of the energy by u."""
        return None if gradient is None else self.weight * (self.form.pulled(gradient) - s)

    def move(self):
        """One trajectory: the chance with which it was accepted."""
        momentum = self.rng.standard_normal(len(self.s))
        begin = self.value + float(momentum @ momentum) / 2
        mean, spread = TURN
        angle, (first, *others) = mean * self.rng.uniform(1 - spread, 1 + spread), strengths(self.pace.kicks)
        cosine, sine = math.cos(angle / len(others)), math.sin(angle / len(others))
        s, value, slope = self.s, math.inf, self.slope
        momentum = momentum - angle * first * slope
        for left, strength in zip(reversed(range(len(others))), others, strict=True):
            s, momentum = cosine * s + sine * momentum, cosine * momentum - sine * s
            if left:
                slope = self.slope_of(self.force(self.form.outward(s)), s)
            else:
                value, slope = self.at(s)
            if slope is None:
                break
            momentum = momentum - angle * strength * slope
        end = math.inf if slope is None else value + float(momentum @ momentum) / 2
        chance = math.exp(min(0.0, begin - end)) if math.isfinite(end) else 0.0
        if self.rng.random() < chance:
            self.s, self.value, self.slope = s, value, slope
        return chance

    def warm_up(self):
        """Make trajectories until the beginning is forgotten and the number of kicks known.

        From a Gaussian of the form the energy took one or two trajectories to forget where two kicks are enough (N >= 25), six
        where six are needed (N = 5, depth 3) and nine where ten are (N = 1).
        """
        done, total = 0, 0
        while (done < FORGOTTEN * self.pace.kicks or len(self.pace.chances) < JUDGED) and total < MOST_WARMUP:
            before = self.pace.kicks
            self.pace.learn(self.move())
            done, total = done + 1 if self.pace.kicks == before else 0, total + 1


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
    walker.warm_up()
    found = []
    for _ in range(count):
        walker.move()
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
