"""Solve the finite-width theory and predict with it.

At the saddle point the posterior of a gated network of width N is a Gaussian process with the renormalized kernel

    K~(x, x') = M^-L s_L(x)^T V_L s_L(x') K_0(x, x'),    s_l(x).s_l(x') = (g(x).g(x'))^l,

whose order parameters V_1 ... V_L minimise the effective Hamiltonian (see `saddle`). For L = 1, V_1 is the M x M matrix
U_1 of the paper.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
import xarray as xr

from ggdln.core import checks
from ggdln.core.blas import threads_for
from ggdln.core.errors import ConvergenceError, InputError
from ggdln.core.progress import Progress, reporter
from ggdln.core.types import Eigenvalues, Gatings, Inputs, Labels, OrderParameter, PerLayer, Told
from ggdln.core.variables import ARGUMENTS, LOG_EVIDENCE, NUMBER, Variable, described
from ggdln.theory.evidence import log_evidence
from ggdln.theory.predictor import Predictor
from ggdln.theory.probe import NewInputs, Probe
from ggdln.theory.saddle import Chain, Problem
from ggdln.theory.starts import Search, check_start, lower, prior, prior_forces
from ggdln.theory.training import ArrayTraining, Training, prior_lengths

if TYPE_CHECKING:
    from ggdln.theory.loops import LoopSolution

BASES = ("auto", "monomial", "subset", "span")
FORMS = ("auto", "kernel", "features")
STRANGE = 100
"""Labels that are so many times the outputs of the prior are in other units."""
JUMP = 0.1
"""Change of the logarithm of an order parameter that shows, at the end of a bisection, that the minimum is another one."""
TABLE = {
    "hamiltonian": Variable("effective Hamiltonian at the saddle point, measured from the prior", "H_L", units=NUMBER),
    "log_evidence": LOG_EVIDENCE,
    "residual": Variable("residual of the saddle-point equation relative to its terms", units=NUMBER),
}
"""What the table of a sweep holds."""


@dataclass(frozen=True)
class Solver:
    """How a saddle point is searched.

    basis            features of layers > 1: "monomial", "subset" (0/1 gates only), "span", or "auto", the smallest
    form             matrices of the side of the samples, "kernel", or, at T > 0, of the r_L N0 features, "features"; "auto"
                     takes the cheaper one
    tolerance        largest accepted `Solution.residual`; ConvergenceError if it is not reached in `max_evaluations`
    start            an earlier Solution for the same x, gates and depth: its order parameters are a starting point
    check_starts     number of further random starting points; the lowest minimum is returned, see `Solution.starts`
    seed             of the random starts and of the random vectors in the model of the Hessian
    progress         True prints how many decades the residual has fallen; or a function (done, total, rate, seconds_left)
    """

    basis: str = "auto"
    form: str = "auto"
    tolerance: float = 1e-8
    max_evaluations: int = 500
    start: Any = None
    check_starts: int = 0
    seed: int = 0
    progress: Any = None

    def __post_init__(self):
        reporter("progress", self.progress)
        for name, accepted in (("basis", BASES), ("form", FORMS)):
            if getattr(self, name) not in accepted:
                raise InputError(f"{name}: expected one of {', '.join(accepted)}, got {getattr(self, name)!r}")
        checks.number("tolerance", self.tolerance, 0, 1, exclusive=True)
        checks.integer("max_evaluations", self.max_evaluations, 1)
        checks.integer("check_starts", self.check_starts, 0)
        if not (self.start is None or isinstance(self.start, Solution)):
            raise InputError(f"start: expected a Solution, got {type(self.start).__name__}")


class NetworkShape:
    """Widths N_1 ... N_L of the hidden layers and prior standard deviations sigma_1 ... sigma_{L+1}, from the input up.

    width, sigma: as given, one number or one for each layer.
    """

    def __init__(self, width, sigma, depth):
        self.depth, positive = depth, partial(checks.number, low=0, exclusive=True)
        told, wide = "a number in (0, inf)", partial(positive, infinite=True)
        self.width = checks.one_or_each("width", width, wide, told, depth, "hidden layers")
        self.sigma = checks.one_or_each("sigma", sigma, positive, told, depth + 1, "layers of weights")
        self.widths = self.width if isinstance(self.width, tuple) else (self.width,) * depth
        self.sigmas = self.sigma if isinstance(self.sigma, tuple) else (self.sigma,) * (depth + 1)
        if any(map(math.isinf, self.widths)) and not self.is_infinite:
            raise InputError(f"width: expected all layers finite, or all infinite, got {width!r}")

    @property
    def is_infinite(self):
        return all(map(math.isinf, self.widths))

    @property
    def levels(self):
        """Widths in the order of V_1 ... V_L, from the readout down."""
        return self.widths[::-1]

    @property
    def variances(self):
        """Prior variances in the units of V_1 ... V_L: products of those of the layers from the readout down."""
        return np.cumprod(np.square(self.sigmas[:0:-1]))

    @property
    def scale(self):
        """The product of all sigmas, in units of which the output is."""
        return math.prod(self.sigmas)


@overload
def solve(
    x: Inputs,
    gates: Gatings | None = None,
    y: Labels | None = None,
    width: PerLayer | None = None,
    depth: int = 1,
    sigma: PerLayer = 1.0,
    temperature: float = 0.0,
    *,
    loops: Literal[0] = 0,
    solver: Solver | None = None,
    progress: Told | None = None,
) -> "Solution": ...
@overload
def solve(
    x: Inputs,
    gates: Gatings | None = None,
    y: Labels | None = None,
    width: PerLayer | None = None,
    depth: int = 1,
    sigma: PerLayer = 1.0,
    temperature: float = 0.0,
    *,
    loops: int,
    solver: Solver | None = None,
    progress: Told | None = None,
) -> "LoopSolution": ...
def solve(
    x: Inputs,
    gates: Gatings | None = None,
    y: Labels | None = None,
    width: PerLayer | None = None,
    depth: int = 1,
    sigma: PerLayer = 1.0,
    temperature: float = 0.0,
    *,
    loops: int = 0,
    solver: Solver | None = None,
    progress: Told | None = None,
) -> "Solution | LoopSolution":
    """The saddle point for inputs x (P, N0), gates (P, M), labels y (P,), or (P, C) for C outputs: a `Solution`.

    x                inputs; or, with neither gates nor y, an iterable of blocks (x, gates, y), read once (T > 0)
    width            N, a positive number, or one for each hidden layer from the input up; math.inf is the GP limit
    depth            L, number of gated layers
    sigma            prior standard deviation of every weight, or one for each of the L + 1 layers from the input up
    temperature      T; at 0 the kernel must have full rank (RankError otherwise)
    loops            1 corrects mean, variance and evidence to order 1/N, see `ggdln.theory.loops`
    solver           a `Solver`: tolerance and the like
    progress         as in `Solver`

    Inputs that are zero or have no active gate are dead: f = 0 for all weights. They are left out and counted.
    """
    solver = solver_of(solver) if progress is None else replace(solver_of(solver), progress=progress)
    training = Training.of(x, gates, y, depth=depth, basis=solver.basis, form=solver.form)
    solution = saddle_point(training, NetworkShape(width, sigma, training.depth), temperature, solver)
    if checks.integer("loops", loops, 0) == 0:
        return solution
    from ggdln.theory.loops import one_loop

    return one_loop(solution, loops)


def solve_sweep(
    x: Inputs,
    gates: Gatings | None = None,
    y: Labels | None = None,
    *,
    widths: Iterable[float] | None = None,
    sigmas: Iterable[float] | None = None,
    width: PerLayer | None = None,
    sigma: PerLayer = 1.0,
    depth: int = 1,
    temperature: float = 0.0,
    solver: Solver | None = None,
) -> "Sweep":
    """Solutions along `widths` or along `sigmas`, in the order given: a `Sweep`, which is a list of them.

    Each starts from those before it, kernels and gate features are shared, and the sweep runs from large to small. Other
    arguments are those of `solve`; the progress of the solver is that of points. Where H has several minima, every solution is
    the lowest one; `Sweep.switches` finds where it becomes another one.
    """
    if (widths is None) == (sigmas is None):
        raise InputError("widths, sigmas: give exactly one of them")
    if widths is not None and width is not None:
        raise InputError(f"width: expected None beside widths, got {width!r}")
    name = "widths" if widths is not None else "sigmas"
    values = widths if widths is not None else sigmas
    values = [checks.number(name, value, 0, exclusive=True, infinite=widths is not None) for value in values]
    if not values:
        raise InputError(f"{name}: expected at least one value")
    solver, report = by_points(solver)
    training = Training.of(x, gates, y, depth=depth, basis=solver.basis, form=solver.form)

    def at(value, trail=()):
        N, prior_sigma = (value, sigma) if widths is not None else (width, value)
        shape = NetworkShape(N, prior_sigma, training.depth)
        return saddle_point(training, shape, temperature, solver, trail=trail, coordinate=math.log(value))

    # From wide to narrow and from weak to strong prior: away from the GP limit, where the start is best.
    order = sorted(range(len(values)), key=lambda i: -values[i])
    solutions: list[Any] = [None] * len(values)
    trail = []
    told = Progress("solve_sweep", "points", len(values), report)
    for done, i in enumerate(order):
        solutions[i] = at(values[i], trail)
        coordinate = math.log(values[i])
        if math.isfinite(coordinate) and not (trail and trail[-1][0] == coordinate):
            trail = [*trail[-2:], (coordinate, solutions[i].layers)]
        told.update(done + 1)
    return Sweep(solutions, name.removesuffix("s"), values, at)


class Sweep(list["Solution"]):
    """Solutions along an axis, "width" or "sigma", in the order in which its `values` were given."""

    def __init__(self, solutions, axis, values, at):
        super().__init__(solutions)
        self.axis, self.values, self._at = axis, values, at

    def table(self) -> xr.Dataset:
        """H, evidence and residual along the axis."""
        data = {name: (self.axis, [getattr(one, name) for one in self]) for name in TABLE}
        return described(xr.Dataset(data, coords={self.axis: self.values}), TABLE | ARGUMENTS)

    def switches(self, within: float = 0.01) -> list[tuple[float, float]]:
        """Where another minimum of H becomes the lowest: pairs of values that differ by this share of them, in rising order.

        The order parameters jump there: between such values they change by more than JUMP in their logarithms. What changes
        by more than that from point to point is bisected until it doesn't, or the values are near enough. Of several
        switches between two points one is found.
        """
        within, found = checks.number("within", within, 0, 1, exclusive=True), []
        points = sorted(
            (pair for pair in zip(self.values, self, strict=True) if math.isfinite(pair[0])), key=lambda pair: pair[0]
        )
        for (low, below), (high, above) in pairwise(points):
            while _apart(below, above) > JUMP:
                if high <= low * (1 + within):
                    found.append((low, high))
                    break
                middle = math.sqrt(low * high)
                between = self._at(middle)
                if _apart(below, between) > _apart(between, above):
                    high, above = middle, between
                else:
                    low, below = middle, between
        return found


def _apart(one, other):
    """The largest difference of the logarithms of eigenvalues of two solutions' order parameters."""
    return max(float(np.abs(np.sort(a.logs) - np.sort(b.logs)).max()) for a, b in zip(one.layers, other.layers, strict=True))


def solver_of(solver):
    """The settings that were given, or the usual ones."""
    if not (solver is None or isinstance(solver, Solver)):
        raise InputError(f"solver: expected Solver(...), got {solver!r}")
    return solver or Solver()


def by_points(solver):
    """The settings for solves that don't tell their progress, and what tells that of all points instead."""
    solver = solver_of(solver)
    return replace(solver, progress=None), reporter("progress", solver.progress)


def saddle_point(training, shape, temperature, solver, *, trail=(), coordinate=0.0):
    """The `Solution` for a `Training`; `trail` holds up to three (coordinate, layers) to extrapolate to `coordinate`."""
    temperature = checks.number("temperature", temperature, 0)
    problem = Problem(training.likelihood(shape.scale, temperature), shape.levels)
    if solver.start is not None and not trail:
        trail = [(0.0, solver.start.layers)]
    for _, layers in trail:
        check_start(training.powers, layers)
    if shape.is_infinite:
        layers = prior(problem)
        prior_forces(training, problem, layers)  # raises RankError
        return Solution(training, shape, temperature, layers, problem)
    with threads_for(problem.likelihood.form.side):
        search = Search(training, problem, solver)
        try:
            state = search.lowest(trail, coordinate)
        except ConvergenceError as error:
            error.args = (f"{error}{_advice(training, shape)}",)
            raise
    return Solution(training, shape, temperature, state.layers, problem, state, search)


def _advice(training, shape):
    """What would help if there is no convergence since labels are of another order than the outputs that the prior gives."""
    if not isinstance(training, ArrayTraining):
        return ""
    expected = shape.scale * math.sqrt(np.mean(prior_lengths(training.x, training.gates, training.depth) ** 2))
    ratio = math.sqrt(np.mean(training.y**2)) / expected
    if ratio < STRANGE:
        return ""
    return f". Labels are {ratio:.0e} times the outputs that the prior gives: standardize inputs and labels, or raise sigma"


class Solution(Predictor):
    """A saddle point, its certificate and its predictor.

    width, depth, sigma, temperature    as given
    hamiltonian     H at the minimum, measured from the prior:
                    1/2 y^T K~^-1 y + 1/2 log det K~ + 1/2 sum_l N_l [ tr(W_l) - log det(W_l) - r_l ],
                    W_l = V_l G_l^-1 / sigma^2. The paper's H is this plus the constant N/2 (1 - log sigma^2) sum_l M^l
    residual        norm of the saddle-point equation, relative to the two opposing data forces in it
    converged       whether the residual met the tolerance (a Solution that did not is never returned)
    evaluations     number of factorizations of the kernel
    starts          H at the minimum that each starting point led to, by name: "prior" and, where the solution from there does
                    not fit the data and others were found, the lowest of those, "fitted"; in sweeps "neighbour"; "random 1" ...
    branch          the name of the start that led to this, the lowest one
    dead            number of dead training inputs, left out of the solve
    """

    def __init__(self, training, shape, temperature, layers, problem, state=None, search=None):
        self.training, self.shape, self.layers, self.temperature = training, shape, layers, temperature
        self.width, self.sigma, self.depth, self.dead = shape.width, shape.sigma, training.depth, training.dead
        self.evaluations, self.converged = problem.evaluations, True
        self.residual = 0.0 if state is None else state.residual
        self.likelihood = problem.likelihood
        self.chain = Chain(training.powers, [layer.matrix for layer in layers])
        value = self.data.value if state is None else state.value
        self.hamiltonian = value + self.likelihood.shift
        found = {"prior": (value, layers)}
        if search is not None:
            found = {name: (state.value, state.layers) for name, state in search.found.items()}
        self.starts = {name: value + self.likelihood.shift for name, (value, _) in found.items()}
        self._minima = [layers for _, layers in sorted(found.values(), key=lambda pair: pair[0])]
        self.branch = "prior" if search is None else search.name

    def coexisting(self, distance):
        """Layers at all minima that were found no further than `distance` above the lowest, which comes first."""
        values = sorted(self.starts.values())
        pairs = list(zip(values, self._minima, strict=True))
        near = [pair for pair in pairs[1:] if lower(values[0], pair[0]) and pair[0] - values[0] <= distance]
        return [pairs[0][1], *(layers for _, layers in near)]

    @cached_property
    def data(self):
        """The data term at the saddle point; made on first use, since a sweep need not hold a kernel per point."""
        return self.likelihood.at(self.chain.b[-1])

    @property
    def log_evidence(self) -> float:
        """log p(y) to leading order in 1/N, see `ggdln.theory.evidence`."""
        return log_evidence(self.training, self.temperature, self.hamiltonian)

    @property
    def bases(self) -> list[str]:
        """How V_1 ... V_L are held: "gates", "monomial", "subset" or "span" (see `order_parameters`)."""
        return ["gates", *self.training.powers.kinds[1:]]

    @cached_property
    def order_parameters(self) -> list[OrderParameter]:
        """V_1 ... V_L.

        V_1 is U_1 (M, M) in the basis of the gates, sigma^2 outside the span of the training gates; l > 1 by `bases`:
        "monomial" and "subset" in the coordinates `ggdln.theory.symmetric.Coordinates(kind, M, l)`; "span" as the form
        V_l[p, q] = s_l(p)^T V_l s_l(q) on the unit-length training gates p, q = `span_gates[l - 1]`. With C outputs every
        side is C times as large, with index i C + c for output c.
        """
        return in_gate_basis(self.training.powers, self.chain.v, self.shape.variances)

    @property
    def span_gates(self) -> list[np.ndarray | None]:
        """For each layer in the span form its (r_l, M) unit training gates, None for the others."""
        powers = self.training.powers
        return [None if points is None else powers.unit[points] for points in powers.points]

    @cached_property
    def eigenvalues(self) -> list[Eigenvalues]:
        """For each layer the eigenvalues (ascending) of V_l G_l^-1: sigma^2 in the GP limit. For L = 1 those of U_1."""
        return [sigma**2 * np.exp(layer.logs) for sigma, layer in zip(self.shape.sigmas[:0:-1], self.layers, strict=True)]

    def moments(self, x, gates, covariance):
        probe = Probe(NewInputs(self.training, x, gates), self.chain)
        scale = self.shape.scale * probe.scale
        mean, spread = self.data.predict(probe, covariance)
        return scale * mean, spread * (np.outer(scale, scale) if covariance else scale**2)

    def between(self, first, second):
        first, second = (Probe(NewInputs(self.training, *pair), self.chain) for pair in (first, second))
        block = first.kernel(second)
        block *= self.shape.scale**2 * np.outer(first.scale, second.scale)
        return block

    def diagonal(self, x, gates):
        probe = Probe(NewInputs(self.training, x, gates), self.chain)
        return (self.shape.scale * probe.scale) ** 2 * probe.diagonal()


def in_gate_basis(powers, v, variances):
    """Order parameters V_l in units of their prior variances as they are told: the first one in the basis of the gates."""
    result = [variance * one for variance, one in zip(variances, v, strict=True)]
    if powers.kinds[0] == "span":
        first = powers.first
        reach = np.linalg.solve(first, powers.each(powers.unit[powers.points[0]]))
        result[0] = variances[0] * (np.eye(reach.shape[1]) + reach.T @ (v[0] - first) @ reach)
    return result
