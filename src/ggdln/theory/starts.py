"""Where the search for the saddle point begins, and which of several minima is the lowest.

At T = 0, and for one layer, the prior times the best common factor is the start, or an earlier solution nearby. For several
layers at T > 0 H may have several minima: near the prior the kernel is too small to fit the data, and elsewhere a few
directions of gate space are amplified in all layers until it does. There H is scanned along lines, each amplifying the same
gates in all layers, and the search begins at the minima on the lines: on that of all gates always, on the others if the data
are not fitted yet, or at a great price.
"""

import itertools
import math
from contextlib import suppress

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import brentq

from ggdln.core.errors import ConvergenceError, InputError, RankError
from ggdln.core.progress import Progress, reporter
from ggdln.theory.newton import minimise
from ggdln.theory.saddle import Whitened, cholesky

DEEP = 7
"""Depth from which a solve at T = 0 starts from parallel networks, which takes fewer steps; below, the prior does as well."""

STRAINED, UNEXPLAINED, AMPLIFIED = 3.0, 0.001, 2.0
"""When there may be a lower minimum elsewhere: y^T (K + T)^-1 y is this large for each sample, apart from what no kernel of
these features can explain, and either this share of y^T y is not explained, or the log of an order parameter is this far from
its prior. Of a thousand random problems none without had a lower one."""

PAIRS, ROUNDS, FOLLOWED = 15, 40, 3
"""Pairs of gates that lines amplify; the most rounds of three starts, on a line, at random, and displaced at random from the
lowest end; and how many of the lowest ends are followed to the last."""
ROUGH, BRIEF, ALIKE = 1e-3, 100, 1e-5
"""Residual and evaluations at which the others end, and relative difference of H within which two ends are one minimum."""
CAUTION = 2
"""How many times more starts than the rule of `enough` asks for. Of 215 random problems that were searched to the last round, a
quarter of the starts sufficed, and none was lost by the rule itself."""
PERSISTENCE = 3
"""How many times a descent that failed goes on from where it ended, if that is the lowest point of all."""


class Search:
    """The search for the lowest minimum of a `Problem` for a `Training`, by a `Solver`.

    `found` has the lowest State that each start led to, by the name of the start.
    """

    def __init__(self, training, problem, solver):
        self.training, self.problem, self.solver, self.found = training, problem, solver, {}
        self.state, self.name, self.error = None, "", None
        self.rng = np.random.default_rng([solver.seed, 1])
        decades, report = math.ceil(-math.log10(solver.tolerance)), reporter("progress", solver.progress)
        self.told = None if report is None else Progress("solve", "decades of the residual", decades, report)

    def lowest(self, trail, coordinate):
        """The lowest State; trail: up to three (coordinate, layers) of nearby solutions, to extrapolate to `coordinate`."""
        problem, cold = self.problem, problem_is_cold(self.problem)
        if cold or len(problem.powers.sizes) == 1:
            self.follow("neighbour" if trail else "prior", starting_point(self.training, problem, trail, coordinate))
        else:
            prior_forces(self.training, problem, prior(problem))  # raises RankError
            if trail:
                self.follow("neighbour", extrapolated(trail, coordinate))
            self.search_lines()
            for _ in range(PERSISTENCE):
                if self.missed() and hasattr(self.error, "state"):
                    self.follow("fitted", self.error.state.layers)
        for k in range(self.solver.check_starts):
            self.follow(f"random {k + 1}", self.random_start())
        if self.missed():
            raise self.error
        return self.state

    def missed(self):
        """Whether a descent that failed had come lower than all that didn't."""
        if self.state is None or self.error is None:
            return self.state is None
        return lower(_reached(self.error), self.state.value)

    def follow(self, name, layers):
        """Descend from some layers and keep what is lower."""
        problem, solver = self.problem, self.solver
        limit = problem.evaluations + solver.max_evaluations
        try:
            state = minimise(problem, layers, tolerance=solver.tolerance, limit=limit, seed=solver.seed, told=self.told)
        except (ConvergenceError, RankError) as error:
            self.error = min(self.error or error, error, key=_reached)
            return
        if name not in self.found or state.value < self.found[name].value:
            self.found[name] = state
        if self.state is None or state.value < self.state.value:
            self.state, self.name = state, name

    def search_lines(self):
        """Follow the minima on the line of all gates and, if the data are not fitted yet, on those of single directions."""
        problem = self.problem
        sizes = problem.powers.sizes
        cost = sum(width * size / 2 for width, size in zip(problem.widths, sizes, strict=True))
        uniform = minima_along(
            problem, lambda log: multiple(problem, log), *self.bounds(sizes), price=lambda log: cost * (math.expm1(log) - log)
        )
        for k, (_, layers) in enumerate(uniform):
            self.follow("fitted" if k else "prior", layers)
        if self.settled():
            return
        ends, lines = [self.state], self.lines()
        for _ in range(ROUNDS):
            if enough(ends):
                break
            ends.append(self.descend(next(lines, None)))
            ends.append(self.descend(self.random_start(_lowest(ends))))
            ends.append(self.descend(self.displaced(_lowest(ends))))
        for state in distinct(ends)[:FOLLOWED]:
            if self.state is None or lower(state.value, self.state.value) or state.value - self.state.value > alike(state):
                self.follow("fitted", state.layers)

    def lines(self):
        """Layers at the minima on the lines of single directions, one line after another, the lowest of each first."""
        for directions in self.directions():
            columns = self.problem.powers.powers_of(directions)
            _, high, points = self.bounds([column.shape[1] for column in columns])
            found = minima_along(self.problem, lambda log, c=columns: amplified(self.problem.powers, c, log), 0.0, high, points)
            yield from (layers for _, layers in sorted(found, key=lambda pair: pair[0]))

    def descend(self, layers):
        """The State at about the minimum below some layers; None if there is none."""
        problem = self.problem
        if layers is None:
            return None
        try:
            return minimise(problem, layers, tolerance=ROUGH, limit=problem.evaluations + BRIEF, seed=self.solver.seed)
        except ConvergenceError as error:
            return error.state
        except RankError:
            return None

    def directions(self):
        """Sets of directions in the space of gates that are amplified together, the most promising first: what the labels ask
        for, all gates, single ones, and pairs of gates."""
        count = self.training.shape[1]
        single = [] if self.state is None else [np.linalg.eigh(self.pulls())[1].T[:2]]
        single += [np.linalg.eigh(self.training.overlaps)[1].T[::-1], np.eye(count), self.rng.standard_normal((4, count))]
        single = np.concatenate(single)
        single /= np.linalg.norm(single, axis=1)[:, None]
        pairs = [np.eye(count)[[i, j]] for i, j in itertools.combinations(range(count), 2)]
        chosen = self.rng.permutation(len(pairs))[:PAIRS]
        return [*single[:2, None, :], np.eye(count), *single[2:, None, :], *(pairs[i] for i in chosen)]

    def pulls(self):
        """The data force on V_1 at the best solution, in the space of gates: (M, M); negative where labels ask for more."""
        powers, state = self.problem.powers, self.state
        root = state.z[0] if state.chain.c[0] is None else state.chain.c[0] @ state.z[0]
        inverse = np.linalg.inv(root)
        force = inverse.T @ state.forces[0] @ inverse
        if powers.points[0] is not None:
            unit = powers.unit[powers.points[0]].repeat(powers.outputs, axis=0)
            return unit.T @ force @ unit
        count = self.training.shape[1]
        return np.einsum("mcnc->mn", force.reshape(count, powers.outputs, count, powers.outputs))

    def bounds(self, ranks):
        """Where on a line minima can be, in the log of the amplified variances, and how many points to look at.

        With u the factor, L tr(K (K + T)^-1) + sum_l N_l rank_l (u - 1) = L times the pull of the data, at most y^T y / 4T.
        """
        problem, depth = self.problem, len(ranks)
        price = sum(width * rank for width, rank in zip(problem.widths, ranks, strict=True))
        low = math.log(max(1 - depth * problem.likelihood.count / price, 0.01))
        high = math.log1p(depth * problem.likelihood.pull / (4 * price))
        return low, high, min(max(math.ceil(depth * (high - low)), 8), 40)

    def settled(self):
        """Whether the best solution fits the data as well as can be, at no great price."""
        if self.state is None:
            return False
        likelihood = self.problem.likelihood
        misfit = self.state.data.quadratic - likelihood.floor
        highest = max(float(layer.logs[-1]) for layer in self.state.layers)
        easy = misfit <= UNEXPLAINED * likelihood.pull and highest <= AMPLIFIED
        return easy or misfit <= STRAINED * likelihood.count

    def displaced(self, state):
        """The layers of a State, moved at random; None if that can't be done."""
        if state is None:
            return None
        size, steps = math.exp(self.rng.uniform(0, 1.5)), []
        for layer in state.layers:
            x = self.rng.standard_normal((len(layer.logs),) * 2)
            steps.append(size * (x + x.T) / math.sqrt(2 * len(x)))
        try:
            return [layer.moved(x) for layer, x in zip(state.layers, steps, strict=True)]
        except FloatingPointError:
            return None

    def random_start(self, state=None):
        """Wishart-distributed about the scaled prior, or one up to as large as a State: eigenvalues over a decade or more."""
        problem, sizes = self.problem, self.problem.powers.sizes
        if state is None:
            factor = best_factor(problem, prior(problem), *prior_forces(self.training, problem, prior(problem)))
        else:
            factor = math.exp(self.rng.uniform(0, max(1.0, *(float(layer.logs[-1]) for layer in state.layers))) / 2)
        roots = [factor * (np.eye(r) + self.rng.standard_normal((r, r)) / math.sqrt(2 * r)) for r in sizes]
        return [Whitened.of(root) for root in roots]


def enough(ends):
    """Whether descents that ended at these States, None where there was none, have likely found all minima.

    Were they drawn by the sizes of their basins, n descents to w minima would let one expect w (n - 1) / (n - w - 2) of them in
    all; that is w by rounding from n = 2 w^2 + 3 w + 2 on (Boender and Rinnooy Kan 1987).
    """
    minima, made = len(distinct(ends)), sum(state is not None for state in ends)
    return minima > 0 and made >= CAUTION * (2 * minima**2 + 3 * minima + 2)


def distinct(ends):
    """The lowest State of each minimum that descents came close to, the lowest minimum first."""
    ends = sorted(filter(None, ends), key=lambda state: state.value)
    return ends[:1] + [b for a, b in itertools.pairwise(ends) if b.value - a.value > alike(b)]


def alike(state):
    """Difference of H up to which two rough ends are one minimum."""
    return ALIKE * (1 + abs(state.value))


def lower(value, other):
    """Whether a value of H is below another one by more than rounding."""
    return value < other - 1e-6 * (1 + abs(other))


def _reached(error):
    """H where a descent failed."""
    return error.state.value if hasattr(error, "state") else math.inf


def _lowest(states):
    return min(filter(None, states), key=lambda state: state.value, default=None)


def problem_is_cold(problem):
    return not problem.likelihood.temperature > 0


def prior(problem):
    """The GP limit of all layers."""
    return multiple(problem, 0.0)


def multiple(problem, log):
    """All layers at e^log times their prior means."""
    return [Whitened.multiple(math.exp(log / 2), r) for r in problem.powers.sizes]


def minima_along(problem, family, low, high, points, price=None):
    """(H, layers) at the minima of H among points on a line, in their order along it; family: log -> layers.

    price: log -> the prior term, if known beforehand. log det (K + T) grows along a line, so where the price and the first one
    exceed the lowest H no lower one can follow.
    """
    logs = np.linspace(low, high, points)
    values, least = [math.inf] * points, None
    for i, log in enumerate(logs):
        if price is not None and least is not None and log > 0 and least + price(log) > min(values):
            break
        try:
            state = problem.evaluate(family(log))
        except FloatingPointError:
            state = None
        if state is not None:
            values[i] = state.value
            least = state.data.entropy if least is None else least
    padded = [math.inf, *values, math.inf]
    lowest = [i for i in range(points) if padded[i] >= padded[i + 1] < padded[i + 2]]
    return [(values[i], family(logs[i])) for i in lowest]


def amplified(powers, columns, log):
    """Layers in which the features `columns` (r_l, k), powers of k gate directions, are amplified, all alike.

    V_l = G_l + (u - 1) u^(l-1) sum_k s s^T with u = e^log: networks behind one gate each, in parallel, which reach large
    outputs at the lowest price.
    """
    layers, v = [], None
    for level, (size, column) in enumerate(zip(powers.sizes, columns, strict=True)):
        g = powers.first if level == 0 else powers.steps[level - 1].forward(v)
        c = np.eye(size) if g is None else cholesky(g)
        column = column * math.sqrt(math.expm1(log) * math.exp(level * log))
        left, singular, _ = np.linalg.svd(solve_triangular(c, column, lower=True, check_finite=False))
        logs = np.zeros(size)
        logs[: len(singular)] = np.log1p(singular**2)[:size]
        layers.append(Whitened.diagonal(left, logs))
        b = c @ layers[-1].matrix
        v = b @ b.T
    return layers


def starting_point(training, problem, trail, coordinate):
    """Layers to start from: the prior or an earlier solution times the best factor, or several extrapolated."""
    if len(trail) > 1:
        return extrapolated(trail, coordinate)
    layers = trail[0][1] if trail else prior(problem)
    forces = prior_forces(training, problem, layers)
    factor = best_factor(problem, layers, *forces)
    if factor > 1 and len(layers) >= DEEP and not trail:
        with suppress(FloatingPointError):  # a G_l of gates that are nearly dependent
            return parallel_start(training, problem, *forces)
    return [layer.times(factor) for layer in layers]


def prior_forces(training, problem, layers):
    """How log det (K + T) and y^T (K + T)^-1 y change with the log of the scale of K at `layers`; raises RankError."""
    state = problem.evaluate(layers)
    if state is None or state.data.pivot < problem.likelihood.count * np.finfo(float).eps:
        raise training.rank_error(problem.likelihood.sigma, problem.likelihood.temperature)
    return state.data.repulsion(), max(state.data.attraction, 1e-300)


def best_factor(problem, layers, repulsion, attraction):
    """The factor of all Z_l that minimises H at T = 0, and is a fair guess otherwise."""
    depth, parts = len(layers), list(zip(problem.widths, layers, strict=True))
    excess = sum(width * float(np.trace(layer.excess)) for width, layer in parts)
    price = sum(width * len(layer.logs) for width, layer in parts) + excess

    def slope(a):
        """dH/da for Z_l -> e^a Z_l."""
        data = repulsion - math.exp(min(math.log(attraction) - 2 * depth * a, 700.0))
        return depth * data + price * math.expm1(2 * a) + excess

    return math.exp(root(slope) or 0.0)


def parallel_start(training, problem, repulsion, attraction):
    """Layers in which all gates are amplified, each by itself, by the best factor."""
    powers, depth = problem.powers, len(problem.powers.sizes)
    columns = powers.powers_of(np.eye(training.shape[1]))
    price = sum(problem.widths) / depth * columns[0].shape[1]
    log = 0.0
    for _ in range(6):

        def slope(a, log=log, attraction=attraction):
            """dH/da for u = e^a, if all of K scales like u^L."""
            pull = math.exp(min(math.log(attraction) - depth * (a - log), 700.0))
            return repulsion - pull + price * math.expm1(a)

        following = root(slope)
        if following is None or following < 0:
            break
        shift, log = following - log, following
        layers = amplified(powers, columns, log)
        if abs(shift) * depth < 1:
            break
        _, attraction = prior_forces(training, problem, layers)
    return amplified(powers, columns, log)


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
    if len(places) == 1:
        return trail[0][1]
    # A step much longer than the last one would make this a guess.
    reach = 2 * abs(places[-1] - places[-2])
    here = places[-1] + min(max(here - places[-1], -reach), reach)
    weights = [math.prod((here - other) / (place - other) for other in places if other != place) for place in places]
    result = []
    for layer in zip(*(layers for _, layers in trail), strict=True):
        values, vectors = np.linalg.eigh(sum(w * z.log for w, z in zip(weights, layer, strict=True)))
        result.append(Whitened.diagonal(vectors, values))
    return result


def check_start(powers, layers):
    """Refuse an earlier solution with other order parameters."""
    sizes = [len(layer.logs) for layer in layers]
    if sizes != powers.sizes:
        raise InputError(f"start: order parameters of sizes {sizes}, expected {powers.sizes}")
