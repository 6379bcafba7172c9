"""Solve the finite-width theory and predict with it.

At the saddle point the posterior of a gated network of width N is a Gaussian process with the renormalized kernel

    K~(x, x') = M^-L s_L(x)^T V_L s_L(x') K_0(x, x'),    s_l(x).s_l(x') = (g(x).g(x'))^l,

whose order parameters V_1 ... V_L minimise the effective Hamiltonian (see `saddle`). For L = 1, V_1 is the M x M matrix
U_1 of the paper.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import cho_solve, solve_triangular
from scipy.optimize import brentq

from ggdln.core import checks
from ggdln.core.errors import InputError, RankError
from ggdln.theory.saddle import Chain, Data, Geometry, Problem, Whitened, minimise
from ggdln.theory.symmetric import GatePowers

DEEP = 7
"""Depth from which a solve starts from parallel networks: there it takes fewer steps, below it the prior does as well."""

BASES = ("auto", "monomial", "subset", "span")


@dataclass(frozen=True)
class Solver:
    """How a saddle point is searched.

    basis            features of layers > 1: "monomial", "subset" (0/1 gates only), "span", or "auto", the smallest
    tolerance        largest accepted `Solution.residual`; ConvergenceError if it is not reached in `max_evaluations`
    check_starts     number of further random starting points; the lowest minimum is returned, see `Solution.starts`
    seed             of the random starts and of the random vectors in the model of the Hessian
    """

    basis: str = "auto"
    tolerance: float = 1e-8
    max_evaluations: int = 500
    check_starts: int = 0
    seed: int = 0

    def __post_init__(self):
        if self.basis not in BASES:
            raise InputError(f"basis: expected one of {', '.join(BASES)}, got {self.basis!r}")
        checks.number("tolerance", self.tolerance, 0, 1, exclusive=True)
        checks.integer("max_evaluations", self.max_evaluations, 1)
        checks.integer("check_starts", self.check_starts, 0)


def solve(x, gates, y, width, depth=1, sigma=1.0, temperature=0.0, *, start=None, solver=None):
    """The saddle point for inputs x (P, N0), gates (P, M), labels y (P,): a `Solution`.

    width            N, a positive number; math.inf is the GP limit
    depth            L, number of gated layers
    sigma            prior standard deviation of every weight
    temperature      T; at 0 the kernel must have full rank (RankError otherwise)
    start            an earlier Solution for the same x, gates and depth: its order parameters are the starting point
    solver           a `Solver`: tolerance and the like

    Inputs that are zero or have no active gate are dead: f = 0 for all weights. They are left out and counted.
    """
    training = Training(x, gates, y, depth=depth, solver=solver or Solver())
    return training.solve(width, sigma, temperature, start=start)


def solve_sweep(x, gates, y, *, widths=None, sigmas=None, width=None, sigma=1.0, depth=1, temperature=0.0, solver=None):
    """Solutions along `widths` or along `sigmas`, in the order given; each starts from those before it.

    Kernels and gate features are shared. The sweep runs from large to small. Other arguments are those of `solve`.
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
    training = Training(x, gates, y, depth=depth, solver=solver or Solver())
    # From wide to narrow and from weak to strong prior: away from the GP limit, where the start is best.
    order = sorted(range(len(values)), key=lambda i: -values[i])
    solutions = [None] * len(values)
    trail = []
    for i in order:
        pair = (values[i], sigma) if widths is not None else (width, values[i])
        coordinate = math.log(values[i])
        solutions[i] = training.solve(*pair, temperature, trail=trail, coordinate=coordinate)
        if math.isfinite(coordinate) and not (trail and trail[-1][0] == coordinate):
            trail = [*trail[-2:], (coordinate, solutions[i])]
    return solutions


class Training:
    """The live part of a training set, sorted by gates, with the kernels that all solves share."""

    def __init__(self, x, gates, y, *, depth, solver):
        x, gates, y = checks.training_set(x, gates, y)
        self.depth, self.solver, basis = checks.integer("depth", depth, 1), solver, solver.basis
        live = live_rows(x, gates)
        self.dead = int(len(x) - live.sum())
        if self.dead == len(x):
            raise InputError(f"gates: none of the {len(x)} training inputs has an active gate and a non-zero input")
        x, gates, y = x[live], gates[live], y[live]
        binary = bool(np.isin(gates, (0.0, 1.0)).all())
        if basis == "subset" and not binary:
            raise InputError("basis: 'subset' needs gates that are 0 or 1")
        kind = "subset" if basis == "subset" or (basis == "auto" and binary and self.depth >= 3) else "monomial"
        explicit = {"auto": None, "span": 0}.get(basis, self.depth)
        distinct, group = np.unique(gates, axis=0, return_inverse=True)
        group = group.ravel()
        self.order = np.argsort(group, kind="stable")
        x, gates = x[self.order], gates[self.order]
        self.y = y[self.order]
        self.powers = GatePowers(distinct, self.depth, kind, explicit)
        self.geometry = Geometry(x, self.powers, group[self.order])
        self.shape = x.shape[1], gates.shape[1]
        # sqrt of the diagonal of K_GP at sigma = 1.
        self.lengths = lengths(x, gates, self.depth)

    def solve(self, width, sigma, temperature, *, start=None, trail=(), coordinate=0.0):
        """One Solution; `trail` holds up to three (coordinate, Solution) to extrapolate to `coordinate`."""
        width = checks.number("width", width, 0, exclusive=True, infinite=True)
        sigma = checks.number("sigma", sigma, 0, exclusive=True)
        temperature = checks.number("temperature", temperature, 0)
        tolerance, limit, seed = self.solver.tolerance, self.solver.max_evaluations, self.solver.seed
        scale = sigma ** (self.depth + 1) * self.lengths
        problem = Problem(self.geometry, self.y / scale, temperature / scale**2, width)
        problem.temperature, problem.coordinate = temperature, coordinate
        if start is not None:
            if not isinstance(start, Solution):
                raise InputError(f"start: expected a Solution, got {type(start).__name__}")
            trail = [(0.0, start)]
        layers = self.starting_point(problem, trail)
        if math.isinf(width):
            return Solution(self, problem, layers, None, sigma, temperature)
        state = minimise(problem, layers, tolerance=tolerance, limit=limit, seed=seed)
        values = [state.value]
        rng = np.random.default_rng([seed, 1])
        for _ in range(self.solver.check_starts):
            # Wishart-distributed about the scaled prior: a start with eigenvalues spread over more than a decade.
            factor = self.best_factor(problem, self.prior(), *self.scaling_forces(problem, self.prior()))
            roots = [factor * (np.eye(r) + rng.standard_normal((r, r)) / math.sqrt(2 * r)) for r in self.powers.sizes]
            layers = [Whitened.of(root) for root in roots]
            other = minimise(problem, layers, tolerance=tolerance, limit=problem.evaluations + limit, seed=seed)
            values.append(other.value)
            if other.value < state.value:
                state = other
        solution = Solution(self, problem, state.layers, state, sigma, temperature)
        solution.starts = np.array(values) + float(np.log(scale).sum())
        return solution

    def prior(self):
        """The GP limit of all layers."""
        return [Whitened.multiple(1.0, r) for r in self.powers.sizes]

    def starting_point(self, problem, trail):
        """Layers to start from: the prior or an earlier solution times the best factor, or several extrapolated."""
        for _, solution in trail:
            if solution.training.powers.sizes != self.powers.sizes:
                sizes = solution.training.powers.sizes
                raise InputError(f"start: order parameters of sizes {sizes}, expected {self.powers.sizes}")
        if len(trail) > 1 and math.isfinite(problem.width):
            return extrapolated(trail, problem.coordinate)
        layers = trail[0][1].layers if trail and math.isfinite(problem.width) else self.prior()
        forces = self.scaling_forces(problem, layers)
        if math.isinf(problem.width):
            return layers
        factor = self.best_factor(problem, layers, *forces)
        if factor > 1 and self.depth >= DEEP and not trail:
            return self.parallel_start(problem, *forces)
        return [layer.times(factor) for layer in layers]

    def scaling_forces(self, problem, layers):
        """How log det k and t^T k^-1 t change with the log of the scale of k at `layers`; raises RankError."""
        problem.evaluations += 1
        try:
            chain = Chain(self.powers, [layer.matrix for layer in layers])
            data = Data(self.geometry, chain.b[-1], problem.labels, problem.noise)
        except FloatingPointError:
            data = None
        # The pivot is the part of a sample's variance that the samples before it leave unexplained.
        if data is None or data.pivot < self.geometry.count * np.finfo(float).eps:
            raise RankError(
                f"temperature: the kernel of the {self.geometry.count} live training inputs does not have full rank (P "
                f"is above capacity, or inputs repeat), so it must be well above 0, got {problem.temperature}"
            )
        noise, repulsion, attraction = problem.noise, float(self.geometry.count), data.quadratic
        if noise.any():
            signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(len(noise), 8))
            random = solve_triangular(data.factor, signs, lower=True, trans="T", check_finite=False)
            repulsion -= float(noise @ np.mean(random**2, axis=1))
            attraction -= float(noise @ data.weights**2)
        return max(repulsion, 0.0), max(attraction, 1e-300)

    def best_factor(self, problem, layers, repulsion, attraction):
        """The factor of all Z_l that minimises H at T = 0, and is a fair guess otherwise."""
        excess = sum(float(np.trace(layer.excess)) for layer in layers)
        size = sum(self.powers.sizes) + excess

        def slope(a):
            """dH/da for Z_l -> e^a Z_l."""
            data = repulsion - math.exp(min(math.log(attraction) - 2 * self.depth * a, 700.0))
            return self.depth * data + problem.width * (size * math.expm1(2 * a) + excess)

        return math.exp(root(slope) or 0.0)

    def parallel_start(self, problem, repulsion, attraction):
        """Layers in which only products of one and the same gate are amplified, all alike and by the best factor.

        M networks in parallel, one behind each gate, reach large outputs at the lowest price: V_l = G_l + (u - 1) u^(l-1)
        sum_m s s^T with s = g_m^l.
        """
        count = self.powers.gates.shape[1]
        log = 0.0
        for _ in range(6):

            def slope(a, log=log, attraction=attraction):
                """dH/da for u = e^a, if all of k scales like u^L."""
                pull = math.exp(min(math.log(attraction) - self.depth * (a - log), 700.0))
                return repulsion - pull + problem.width * count * math.expm1(a)

            following = root(slope)
            if following is None or following < 0:
                break
            shift, log = following - log, following
            layers = self.parallel(log)
            if abs(shift) * self.depth < 1:
                break
            _, attraction = self.scaling_forces(problem, layers)
        return self.parallel(log)

    def parallel(self, log):
        """The layers of `parallel_start` for u = e^log."""
        layers, v, powers = [], None, self.powers
        for level, size in enumerate(powers.sizes):
            g = powers.first if level == 0 else powers.steps[level - 1].forward(v)
            columns = powers.pure(level) * math.sqrt(math.expm1(log) * math.exp(level * log))
            c = np.eye(size) if g is None else np.linalg.cholesky(g)
            left, singular, _ = np.linalg.svd(solve_triangular(c, columns, lower=True, check_finite=False))
            h = np.zeros(size)
            h[: len(singular)] = np.log1p(singular**2)[:size]
            layers.append(Whitened.diagonal(left, h))
            b = c @ layers[-1].matrix
            v = b @ b.T
        return layers


def root(slope):
    """The zero of an increasing function of a logarithm, None if it is below -40, as for labels that are zero."""
    low, high = -1.0, 1.0
    while slope(low) > 0:
        low *= 2
        if low < -40:
            return None
    while slope(high) < 0:
        high *= 2
    return brentq(slope, low, high)


def extrapolated(trail, here):
    """Layers with log(Z_l Z_l^T) at `here` on the line or parabola through those of the trail."""
    places = [place for place, _ in trail]
    # A step much longer than the last one would make this a guess.
    reach = 2 * abs(places[-1] - places[-2])
    here = places[-1] + min(max(here - places[-1], -reach), reach)
    weights = [math.prod((here - other) / (place - other) for other in places if other != place) for place in places]
    result = []
    for layer in zip(*(solution.layers for _, solution in trail), strict=True):
        values, vectors = np.linalg.eigh(sum(w * z.log for w, z in zip(weights, layer, strict=True)))
        result.append(Whitened.diagonal(vectors, values))
    return result


def live_rows(x, gates):
    """Which inputs have an active gate and are not zero: elsewhere f = 0 for all weights."""
    return (gates != 0).any(axis=1) & (x != 0).any(axis=1)


def lengths(x, gates, depth):
    """sqrt K_GP(x, x) at sigma = 1: (|g|^2/M)^(L/2) |x| / sqrt(N0)."""
    overlap = np.linalg.norm(gates, axis=1) / math.sqrt(gates.shape[1])
    return overlap**depth * np.linalg.norm(x, axis=1) / math.sqrt(x.shape[1])


class Solution:
    """A saddle point, its certificate and its predictor.

    width, depth, sigma, temperature    as given
    hamiltonian     H at the minimum, measured from the prior:
                    1/2 y^T K~^-1 y + 1/2 log det K~ + N/2 sum_l [ tr(W_l) - log det(W_l) - r_l ],
                    W_l = V_l G_l^-1 / sigma^2. The paper's H is this plus the constant N/2 (1 - log sigma^2) sum_l M^l
    residual        norm of the saddle-point equation, relative to the two opposing data forces in it
    converged       whether the residual met the tolerance (a Solution that did not is never returned)
    evaluations     number of factorizations of the kernel
    starts          H at the minima reached from all starting points
    dead            number of dead training inputs, left out of the solve
    """

    def __init__(self, training, problem, layers, state, sigma, temperature):
        self.training, self.layers = training, layers
        self.width, self.depth, self.sigma, self.temperature = problem.width, training.depth, sigma, temperature
        self.dead = training.dead
        self.evaluations = problem.evaluations
        self.converged = True
        self.residual = 0.0 if state is None else state.residual
        self._labels, self._noise = problem.labels, problem.noise
        self._chain = Chain(training.powers, [layer.matrix for layer in layers])
        shift = float(np.log(sigma ** (self.depth + 1) * training.lengths).sum())
        if state is None:
            self.hamiltonian = self._data.quadratic / 2 + self._data.entropy + shift
        else:
            self.hamiltonian = state.value + shift
        self.starts = np.array([self.hamiltonian])

    @cached_property
    def _data(self):
        """Cholesky factor of k and k^-1 t; made on first use, since a sweep need not hold one per point."""
        return Data(self.training.geometry, self._chain.b[-1], self._labels, self._noise)

    @property
    def bases(self):
        """How V_1 ... V_L are held: "gates", "monomial", "subset" or "span" (see `order_parameters`)."""
        return ["gates", *self.training.powers.kinds[1:]]

    @cached_property
    def order_parameters(self):
        """V_1 ... V_L.

        V_1 is U_1 (M, M) in the basis of the gates, sigma^2 outside the span of the training gates; l > 1 by `bases`:
        "monomial" and "subset" in the coordinates `ggdln.theory.symmetric.Coordinates(kind, M, l)`; "span" as the form
        V_l[p, q] = s_l(p)^T V_l s_l(q) on the unit-length training gates p, q = `span_gates[l - 1]`.
        """
        powers = self.training.powers
        result = [self.sigma ** (2 * (level + 1)) * v for level, v in enumerate(self._chain.v)]
        if powers.kinds[0] == "span":
            reach = np.linalg.solve(powers.first, powers.unit[powers.points[0]])
            result[0] = self.sigma**2 * (np.eye(reach.shape[1]) + reach.T @ (self._chain.v[0] - powers.first) @ reach)
        return result

    @property
    def span_gates(self):
        """For each layer in the span form its (r_l, M) unit training gates, None for the others."""
        powers = self.training.powers
        return [None if points is None else powers.unit[points] for points in powers.points]

    @cached_property
    def eigenvalues(self):
        """For each layer the eigenvalues (ascending) of V_l G_l^-1: sigma^2 in the GP limit. For L = 1 those of U_1."""
        return [self.sigma**2 * np.exp(layer.logs) for layer in self.layers]

    def predict(self, x, gates):
        """Mean and variance of f at x (P_t, N0) with gates (P_t, M): two arrays (P_t,), both 0 at dead inputs."""
        x, gates = self._checked(x, gates, "")
        mean, variance = np.zeros(len(x)), np.zeros(len(x))
        live = live_rows(x, gates)
        if live.any():
            probe = _Probe(self, x[live], gates[live])
            cross = probe.training_kernel()
            mean[live] = probe.scale * (cross @ self._data.weights)
            explained = solve_triangular(self._data.factor, cross.T, lower=True, overwrite_b=True, check_finite=False)
            # Rounding may leave a trained input's variance slightly below its exact value 0.
            left = np.maximum(probe.diagonal() - np.einsum("pt,pt->t", explained, explained), 0.0)
            variance[live] = probe.scale**2 * left
        return mean, variance

    def kernel(self, x, gates, x2=None, gates2=None):
        """K~ between (x, gates) and (x2, gates2), default themselves: (P_t, P_t2). Without the temperature."""
        x, gates = self._checked(x, gates, "")
        x2, gates2 = (x, gates) if x2 is None else self._checked(x2, gates2, "second ")
        result = np.zeros((len(x), len(x2)))
        rows, columns = live_rows(x, gates), live_rows(x2, gates2)
        if rows.any() and columns.any():
            first, second = _Probe(self, x[rows], gates[rows]), _Probe(self, x2[columns], gates2[columns])
            block = first.kernel(second)
            block *= np.outer(first.scale, second.scale)
            result[np.ix_(rows, columns)] = block
        return result

    def kernel_diagonal(self, x, gates):
        """K~(x, x) for each input: (P_t,)."""
        x, gates = self._checked(x, gates, "")
        result = np.zeros(len(x))
        live = live_rows(x, gates)
        if live.any():
            probe = _Probe(self, x[live], gates[live])
            result[live] = probe.scale**2 * probe.diagonal()
        return result

    def _checked(self, x, gates, prefix):
        x, gates = checks.inputs(x, gates, prefix)
        for name, value, size in (("x", x, self.training.shape[0]), ("gates", gates, self.training.shape[1])):
            if value.shape[1] != size:
                raise InputError(f"{prefix}{name}: {value.shape[1]} columns, the training set has {size}")
        powers = self.training.powers
        if powers.kind == "subset" and powers.coordinates and not np.isin(gates, (0.0, 1.0)).all():
            raise InputError(f"{prefix}gates: expected 0 or 1 as in training; solve with basis='monomial' for others")
        return x, gates


class _Probe:
    """New live inputs: their features in every layer, in the terms of the training set.

    features[l] (P_t, r_l) are exact coordinates, or in the span form the part in the span of the training gates,
    G_l^-1 G_l(., new); outside it V_l is its prior mean sigma^2 G_l.
    """

    def __init__(self, solution, x, gates):
        training = solution.training
        self.solution, self.powers, self.chain = solution, training.powers, solution._chain
        self.scale = solution.sigma ** (solution.depth + 1) * lengths(x, gates, solution.depth)
        self.x = x / np.linalg.norm(x, axis=1)[:, None]
        distinct, self.group = np.unique(gates, axis=0, return_inverse=True)
        self.group = self.group.ravel()
        norms = np.linalg.norm(distinct, axis=1)
        self.unit = distinct / norms[:, None]
        self.features = [c.features(distinct, norms) for c in self.powers.coordinates]
        for level in range(len(self.features), solution.depth):
            points = self.powers.points[level]
            cross = self.powers.unit[points] @ self.unit.T
            if level > 0:
                step = self.powers.steps[level - 1]
                below = self.chain.v[level - 1] @ self.features[-1].T
                cross *= below if step.features is None else step.features @ below
            self.features.append(cho_solve((self.chain.c[level], True), cross, check_finite=False).T)

    def training_kernel(self):
        """k between the new inputs and the training set: (P_t, P)."""
        geometry = self.solution.training.geometry
        top = self.features[-1] @ self.chain.v[-1]
        if self.powers.top is not None:
            top = top @ self.powers.top.T
        cross = top[np.ix_(self.group, geometry.group)]
        cross *= self.x @ geometry.unit.T
        return cross

    def kernel(self, other):
        """k between these and other new inputs."""
        gate = self._renormalized(other, self.unit @ other.unit.T, lambda a, v, b: a @ v @ b.T)
        cross = gate[np.ix_(self.group, other.group)]
        cross *= self.x @ other.x.T
        return cross

    def diagonal(self):
        """k(x, x) of the new inputs: (P_t,)."""
        return self._renormalized(self, 1.0, lambda a, v, b: np.einsum("ti,ti->t", a @ v, b))[self.group]

    def _renormalized(self, other, overlap, form):
        """s_L^T V_L s_L' with the prior mean outside the training span, `form` contracting features with a matrix."""
        explicit = len(self.powers.coordinates)
        gate = 1.0
        if explicit:
            gate = form(self.features[explicit - 1], self.chain.v[explicit - 1], other.features[explicit - 1])
        for level in range(explicit, self.solution.depth):
            renormalized = self.chain.v[level] - self.chain.g[level]
            gate = overlap * gate + form(self.features[level], renormalized, other.features[level])
        return gate
