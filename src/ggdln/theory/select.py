"""Width, prior, temperature and number of gates chosen by evidence.

At the saddle point H does not change with the order parameters, so its derivatives by sigma and T are those at fixed ones, and
cost nothing beyond the solution. What is left free follows them to the maximum of log p(y); what is given as several values is
tried at each of them.

Widths need more: for a given training set log p(y) depends on N by terms of order 1/N, of which the saddle point has only one
part and one loop the rest. The saddle point alone favours narrow networks whatever the data.
"""

import itertools
import math
import warnings
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import xarray as xr
from scipy.optimize import minimize

from ggdln.core import checks
from ggdln.core.display import Shown
from ggdln.core.errors import GgdlnError, InputError
from ggdln.core.progress import Progress
from ggdln.core.types import Gatings, Inputs, Labels, Several
from ggdln.core.variables import ARGUMENTS, LOG_EVIDENCE, described
from ggdln.theory.loops import MOST_COORDINATES, one_loop
from ggdln.theory.solution import NetworkShape, Solver, by_points, saddle_point
from ggdln.theory.training import Training

START = {"sigma": 1.0, "temperature": 0.1}
BOUNDS = {"sigma": (1e-3, 1e3), "temperature": (1e-8, 1e3)}
"""Of what is free; temperatures in units of the mean squared label."""
DOUBLINGS = 12
"""Of the least width, at which a free one is tried."""
CURVE = ARGUMENTS | {"log_evidence": LOG_EVIDENCE}


def select(
    x: Inputs,
    gates: Gatings | None = None,
    y: Labels | None = None,
    *,
    width: Several | None = None,
    sigma: Several | None = None,
    temperature: Several | None = None,
    M: Several | None = None,
    depth: int = 1,
    loops: int = 0,
    solver: Solver | None = None,
) -> "Selection":
    """The network with the largest evidence for inputs x (P, N0), gates (P, M) and labels y (P,) or (P, C), or for blocks of
    such as x alone, which are read once: a `Selection`.

    width, sigma, temperature    a number is kept, several are tried, None is free: sigma and temperature are found by gradient,
                                 the width among the doublings of the least at which one loop can be, and infinity
    M                            numbers of gates to try, for gates of which the first M are taken; None (as with blocks): all
    depth, loops, solver         as for `solve`; loops=1, as for a free width in any case, corrects the evidence at each point
                                 that is tried, and the progress of the solver is that of points

    Free temperatures are above 0. A point without a solution has evidence NaN. Without one loop the evidence favours narrow
    networks: widths that are compared need loops=1.
    """
    solver, report = by_points(solver)
    sets = _training_sets(x, gates, y, M, depth=depth, basis=solver.basis, form=solver.form)
    given = {"width": width, "sigma": sigma, "temperature": temperature}
    if width is None:
        given["width"], loops = _widths(sets[max(sets)]()), 1
    free = [name for name, value in given.items() if value is None]
    axes = {name: _values(name, value) for name, value in given.items() if value is not None}
    points, tried = [], list(itertools.product(*axes.values()))
    told = Progress("select", "points", len(sets) * len(tried), report)
    for count, make in sets.items():
        training = make()
        for values in tried:
            fixed = dict(zip(axes, values, strict=True))
            points.append(_Climb(training, fixed, free, training.mean_square or 1.0, solver, loops).point(count))
            told.update(len(points))
    found = Selection.of({"M": list(sets)} | axes, points, free)
    if not loops and found.best["width"] == min(axes["width"]) < max(axes["width"]):
        said = f"width: the narrowest, {found.best['width']:g}, has the largest evidence; without one loop it mostly has"
        warnings.warn(f"{said}, use loops=1", RuntimeWarning, stacklevel=2)
    return found


def _widths(training):
    """Widths at which a free one is tried."""
    coordinates = sum(r * (r + 1) // 2 for r in training.powers.sizes)
    if coordinates > MOST_COORDINATES:
        raise InputError(
            f"width: None; to compare widths takes one loop, and here that has {coordinates} coordinates, more than "
            f"{MOST_COORDINATES}; accepted: a number"
        )
    least = max(training.powers.sizes) + 1
    return [float(least * 2**k) for k in range(DOUBLINGS)] + [math.inf]


def _training_sets(x, gates, y, M, **more):
    """Functions that make the `Training` of a number of gates, by that number."""
    if gates is None and y is None:
        if M is not None:
            raise InputError(f"M: expected None for samples in blocks, which are read once, got {M!r}")
        training = Training.of(x, None, None, **more)
        return {training.shape[1]: lambda: training}
    x, gates = checks.inputs(x, gates)
    y, most = checks.labels("y", y, len(x)), gates.shape[1]
    counts = [most] if M is None else [checks.integer("M", m, 1) for m in np.atleast_1d(M).tolist()]
    if max(counts) > most:
        raise InputError(f"M: expected at most the {most} gates given, got {max(counts)}")
    return {count: partial(Training.of, x, gates[:, :count], y, **more) for count in counts}


def _values(name, value):
    infinite = name == "width"
    low, exclusive = (0, name != "temperature")
    many = np.ndim(value) > 0
    found = list(value) if many else [value]
    if not found:
        raise InputError(f"{name}: expected at least one value, got {value!r}")
    return [checks.number(name, one, low, exclusive=exclusive, infinite=infinite) for one in found]


@dataclass(frozen=True, repr=False)
class Selection(Shown):
    """What was tried, and the best of it.

    best        width, sigma, temperature and M with the largest evidence
    solution    the solution there
    curve       a Dataset over the axes with several values: log_evidence, and each free parameter where it is largest
    """

    best: dict
    solution: Any
    curve: xr.Dataset

    def facts(self) -> dict[str, Any]:
        return self.best | {"log_evidence": self.solution.log_evidence, "tried": self.curve.log_evidence.size}

    @classmethod
    def of(cls, axes: dict[str, list], points: list[dict[str, Any]], free: list[str]) -> "Selection":
        """From the axes and the points in the order of their product."""
        shape = [len(values) for values in axes.values()]
        names = ["log_evidence", *free]
        data = {name: (tuple(axes), np.array([point[name] for point in points]).reshape(shape)) for name in names}
        curve = xr.Dataset(data, coords={name: list(values) for name, values in axes.items()})
        lonely = [name for name, values in axes.items() if len(values) == 1]
        evidence = curve.log_evidence.values.ravel()
        if not np.isfinite(evidence).any():
            raise points[0]["error"]
        best = points[int(np.nanargmax(evidence))]
        chosen = {name: best[name] for name in ("width", *START, "M")}
        return cls(chosen, best["solution"], described(curve.squeeze(lonely), CURVE))


class _Climb:
    """The maximum of the evidence over the free parameters, by their logarithms."""

    def __init__(self, training, fixed, free, unit, solver, loops):
        self.training, self.fixed, self.free, self.solver, self.loops = training, fixed, free, solver, loops
        self.unit = {"temperature": unit}
        self.trail = ()

    def point(self, count):
        """The evidence and parameters at the maximum, for `count` gates."""
        found = {"M": count, "log_evidence": math.nan, "solution": None, "error": None}
        try:
            values = self.climb()
            solution = self.solve(values)
            if self.loops and not solution.shape.is_infinite:
                solution = one_loop(solution, self.loops)
            found |= values | {"log_evidence": solution.log_evidence, "solution": solution}
        except GgdlnError as error:
            found |= dict.fromkeys(self.free, math.nan) | self.fixed | {"error": error}
        return found

    def solve(self, values):
        shape = NetworkShape(values["width"], values["sigma"], self.training.depth)
        solution = saddle_point(self.training, shape, values["temperature"], self.solver, trail=self.trail)
        self.trail = () if shape.is_infinite else [(0.0, solution.layers)]
        return solution

    def climb(self):
        """All parameters by name."""
        if not self.free:
            return self.fixed
        units = np.array([self.unit.get(name, 1.0) for name in self.free])
        bounds = [np.log(np.array(BOUNDS[name]) * unit) for name, unit in zip(self.free, units, strict=True)]
        start = np.log([START[name] * unit for name, unit in zip(self.free, units, strict=True)])

        def energy(logs):
            values = self.fixed | dict(zip(self.free, map(float, np.exp(logs)), strict=True))
            try:
                solution = self.solve(values)
            except GgdlnError:
                return 1e100, np.zeros(len(logs))
            return -solution.log_evidence, np.array([slopes(solution)[name] for name in self.free])

        # The first step is as long as the gradient, which would lead into the corners of the bounds.
        unit = max(1.0, float(np.linalg.norm(energy(start)[1])))

        def scaled(logs):
            value, gradient = energy(logs)
            return value / unit, gradient / unit

        found = minimize(scaled, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"ftol": 1e-10, "maxiter": 60})
        return self.fixed | dict(zip(self.free, map(float, np.exp(found.x)), strict=True))


def slopes(solution):
    """Derivatives of -log p(y) by the logarithms of sigma and temperature, at a `Solution`."""
    data, depth = solution.data, solution.depth
    noise = data.noise_trace()
    attraction, explained = data.attraction, data.likelihood.count - noise
    lost = data.quadratic - attraction  # T |(K + T)^-1 y|^2
    dead = solution.training
    count = dead.dead * dead.sides
    by_temperature = (noise - lost) / 2
    if solution.temperature > 0:
        by_temperature += count / 2 - dead.dead_square / (2 * solution.temperature)
    return {"sigma": (depth + 1) * (explained - attraction), "temperature": by_temperature}
