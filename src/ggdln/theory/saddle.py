"""The saddle point of the effective Hamiltonian, found by a trust-region Newton method.

All lengths are taken out first: with d the square root of the diagonal of K_GP on the training set, t = y/d and unit
inputs and gates, the problem that is solved numerically depends on sigma only through t and T/d^2:

    k   = (s_L^T V_L s_L') o cos(x, x') + T/d^2
    H   = 1/2 t^T k^-1 t + 1/2 log det k + sum log d + N/2 sum_l [ tr(V_l G_l^-1) - log det(V_l G_l^-1) - r_l ]
    G_1 = I,   G_{l+1} = S^T (I (x) V_l) S

with V_l in units of sigma^(2l). H is measured from the prior, so no constant depends on the basis. Writing
V_l = B_l B_l^T, B_l = C_l Z_l, C_l C_l^T = G_l, the prior term is N/2 sum_l ( |Z_l|^2 - log det Z_l^T Z_l - r_l ): the
same well-conditioned form at every depth. Rotations of Z_l from the right change nothing and are used to keep it in the
form Z_l = Q_l e^(h_l/2) with Q_l orthogonal and h_l diagonal: N (e^h - 1) is accurate even for large N and small h.

V_l is moved along geodesics, V_l -> B_l exp(X_l) B_l^T with X_l symmetric, so it stays positive. The gradient in X_l is
S_l / 2,

    S_l = N (Z_l^T Z_l - 1) + 2 B_l^T (dH_data/dV_l) B_l,

and S_l = 0 for all l is the saddle-point equation; for L = 1 it reads U = sigma^2 (1 - U^1/2 (R1 - R2) U^1/2 / N).

One evaluation of H and its gradient costs a Cholesky factorization and an inverse of k. A Hessian product would cost
two P x P matrix products; its only expensive part, tr(k^-1 dk k^-1 dk'), is replaced by w^T dk k^-1 dk' w averaged
over a few random w of covariance k^-1. That is an accurate model of the Hessian at the cost of a few passes over k; the
gradient is exact, so is the solution. H is not convex: directions of negative curvature are followed, so a stationary
point that is not a minimum is left.
"""

import itertools
import math

import numpy as np
from scipy.linalg import blas, lapack, solve_triangular

from ggdln.errors import ConvergenceError, RankError

# Random vectors in the model of the Hessian; from 5 to 40 of them the number of steps hardly changed on digits.
PROBES = 10


class Geometry:
    """What does not depend on width, sigma and labels: cosines of the inputs and features of the gates.

    x (P, N0) and gates (P, M) are live; `powers` are the GatePowers of the distinct gates and `group` (P,) says which
    of them each sample has. Samples must be sorted by group.
    """

    def __init__(self, x, powers, group):
        self.powers, self.group, self.count = powers, group, len(group)
        self.unit = x / np.linalg.norm(x, axis=1)[:, None]
        self.cosines = blas.dsyrk(1.0, np.asfortranarray(self.unit.T), trans=1, lower=1)
        mirror(self.cosines)
        np.fill_diagonal(self.cosines, 1.0)
        self.starts = np.flatnonzero(np.r_[True, np.diff(group) > 0])
        self.sizes = np.diff(np.r_[self.starts, self.count])
        # Few distinct gates: work with one row per gate and copy; many: work with one row per sample, by BLAS.
        self.grouped = powers.top is None or 4 * len(self.starts) < self.count
        top = powers.top
        self.features = None if top is None else np.asfortranarray(top if self.grouped else top[group])

    def gate_kernel(self, b):
        """s_L^T B B^T s_L' on the training set, lower triangle valid: (P, P), Fortran order."""
        rows = np.asfortranarray(b if self.features is None else self.features @ b)
        kernel = blas.dsyrk(1.0, rows, lower=1)
        if not self.grouped:
            return kernel
        mirror(kernel)
        return self._copied(kernel)

    def expand(self, v):
        """s_L^T v s_L' on the training set for a symmetric v (r, r): (P, P), a new array in Fortran order."""
        if self.features is not None:
            v = blas.dgemm(1.0, self.features @ v, self.features, trans_b=1)
        return self._copied(v) if self.grouped else v

    def contract(self, w):
        """F^T (W + W^T) F / 2 for W (P, P) in Fortran order, F the features of the training set: (r, r)."""
        if self.grouped and len(self.starts) < self.count:
            w = np.add.reduceat(np.add.reduceat(w.T, self.starts, axis=0), self.starts, axis=1).T
        if self.features is not None:
            w = self.features.T @ blas.dgemm(1.0, w, self.features)
        return (w + w.T) / 2

    def _copied(self, kernel):
        """A symmetric kernel of the distinct gates as one of all samples, always a new array in Fortran order."""
        if len(self.starts) == self.count:
            return np.array(kernel, order="F")
        return np.repeat(np.repeat(kernel, self.sizes, axis=1), self.sizes, axis=0).T


def mirror(a):
    """Copy the lower triangle of the square array `a` onto its upper one, in blocks to need no second array."""
    step = 256
    for i in range(0, len(a), step):
        j = i + step
        block = a[i:j, i:j]
        block[...] = np.tril(block) + np.tril(block, -1).T
        a[i:j, j:] = a[j:, i:j].T


class Whitened:
    """Z = Q e^(h/2), an order parameter relative to its prior mean: Q (r, r) orthogonal, h (r,) logs of eigenvalues."""

    def __init__(self, q, h):
        self.q, self.h = q, h
        self.excess = np.expm1(h)
        self.matrix = q * np.exp(h / 2)

    @classmethod
    def multiple(cls, factor, size):
        """The prior mean times factor^2."""
        return cls(np.eye(size), np.full(size, 2 * math.log(factor)))

    def times(self, factor):
        """The same with Z multiplied by a number."""
        return Whitened(self.q, self.h + 2 * math.log(factor))

    def moved(self, x):
        """Z exp(X/2) for a symmetric X, up to a rotation from the right."""
        values, vectors = np.linalg.eigh(x)
        e = (vectors * np.expm1(values / 2)) @ vectors.T
        if np.abs(self.h).max() < 0.1 and np.abs(values).max() < 0.1:
            # (1 + e) exp(h) (1 + e) - 1 without cancellation: near the prior only the difference from it matters.
            half = e * np.exp(self.h)[:, None]
            half[np.diag_indices_from(half)] += self.excess
            excess = half + e + e @ half
            d, axes = np.linalg.eigh((excess + excess.T) / 2)
            h = np.log1p(d)
            return Whitened((self.matrix @ (axes + e @ axes)) * np.exp(-h / 2), h)
        e[np.diag_indices_from(e)] += 1
        left, singular, _ = np.linalg.svd(np.exp(self.h / 2)[:, None] * e)
        if not singular[-1] > 0:
            raise FloatingPointError("Z is singular to working precision")
        return Whitened(self.q @ left, 2 * np.log(singular))


class Chain:
    """The state of all layers at given Z_l (r_l, r_l): C_l, B_l, V_l."""

    def __init__(self, powers, z):
        self.powers, self.z = powers, z
        self.g, self.c, self.b, self.v = [], [], [], []
        for level, z_l in enumerate(z):
            g = powers.first if level == 0 else powers.steps[level - 1].forward(self.v[-1])
            if g is None:
                c, b = None, z_l
            else:
                c, info = lapack.dpotrf(g, lower=1, clean=1)
                if info != 0:
                    raise FloatingPointError("G_l is not positive definite to working precision")
                b = c @ z_l
            self.g.append(g)
            self.c.append(c)
            self.b.append(b)
            self.v.append(b @ b.T)

    def forces(self, v_bar):
        """2 B_l^T (dH/dV_l) B_l for every layer, from dH/dV_L at fixed Z."""
        result = [None] * len(self.z)
        for level in range(len(self.z) - 1, -1, -1):
            b, z, c = self.b[level], self.z[level], self.c[level]
            b_bar = 2 * v_bar @ b
            result[level] = b.T @ b_bar
            if level > 0:
                # Adjoint of the Cholesky factorization of G_l.
                inner = np.tril(c.T @ (b_bar @ z.T))
                np.einsum("ii->i", inner)[...] /= 2
                left, _ = lapack.dtrtrs(c, inner, lower=1, trans=1)
                g_bar, _ = lapack.dtrtrs(c, left.T, lower=1, trans=1, overwrite_b=1)
                v_bar = self.powers.steps[level - 1].adjoint((g_bar + g_bar.T) / 2)
        return result


class Data:
    """The data term at one V_L: its value and dH/dV_L."""

    def __init__(self, geometry, b, labels, noise):
        k = geometry.gate_kernel(b)
        k *= geometry.cosines
        diagonal = np.einsum("ii->i", k)
        diagonal += noise
        variances = diagonal.copy()
        factor, info = lapack.dpotrf(k, lower=1, clean=1, overwrite_a=1)
        if info:
            raise FloatingPointError("k is not positive definite to working precision")
        pivots = np.einsum("ii->i", factor)
        self.pivot = float(np.min(pivots**2 / variances))
        self.factor = factor
        self.weights, _ = lapack.dpotrs(factor, labels, lower=1)
        self.quadratic = float(labels @ self.weights)
        self.entropy = float(np.log(pivots).sum())

    def differentiate(self, geometry):
        """Set dH/dV_L = F^T ((k^-1 - k^-1 t t^T k^-1) o cos) F / 2."""
        inverse, _ = lapack.dpotri(self.factor, lower=1)
        inverse = blas.dsyr(-1.0, self.weights, lower=1, a=inverse, overwrite_a=1)
        inverse *= geometry.cosines
        diagonal = np.einsum("ii->i", inverse)
        diagonal /= 2
        self.v_bar = geometry.contract(inverse)


class Problem:
    """H as a function of Z_1 ... Z_L for given labels t (P,), noise T/d^2 (P,) and width N."""

    def __init__(self, geometry, labels, noise, width):
        self.geometry, self.labels, self.noise, self.width = geometry, labels, noise, width
        self.evaluations = 0

    def evaluate(self, layers, step=None):
        """The State at `layers`, moved by `step` if given; None if a matrix is numerically not positive definite."""
        self.evaluations += 1
        try:
            if step is not None:
                layers = [layer.moved(x) for layer, x in zip(layers, step, strict=True)]
            return State(self, layers)
        except FloatingPointError:
            return None


class State:
    """H, its gradient and the certificate at one point.

    `value` is H without sum log d; `gradient` the S_l; `residual` = |S| / (sqrt(L) (tr R1 + tr R2)), the unbalanced
    part of the forces relative to the two parts of the data force, R1 = B^T F^T (k^-1 o cos) F B and R2 likewise with
    k^-1 t t^T k^-1.
    """

    def __init__(self, problem, layers):
        width = problem.width
        self.layers = layers
        self.z = [layer.matrix for layer in layers]
        self.scales = [np.exp(layer.h) for layer in layers]
        self.chain = Chain(problem.geometry.powers, self.z)
        self.data = data = Data(problem.geometry, self.chain.b[-1], problem.labels, problem.noise)
        prior = width / 2 * sum(float(np.sum(layer.excess - layer.h)) for layer in layers)
        self.value = data.quadratic / 2 + data.entropy + prior
        self.magnitude = data.quadratic / 2 + abs(data.entropy) + prior
        data.differentiate(problem.geometry)
        self.forces = self.chain.forces(data.v_bar)
        self.gradient = [force + np.diag(width * layer.excess) for force, layer in zip(self.forces, layers, strict=True)]
        norm = math.sqrt(sum(float(np.sum(g**2)) for g in self.gradient))
        # tr R2 = t k^-1 (k - T/d^2) k^-1 t; tr R1 - tr R2 is the trace of the force.
        attraction = abs(data.quadratic - float(problem.noise @ data.weights**2))
        scale = abs(float(np.trace(self.forces[-1]))) + 2 * attraction
        self.residual = norm / (math.sqrt(len(layers)) * scale) if norm > 0 else 0.0


class Curvature:
    """Products with the Hessian of H at a State, tr(k^-1 dk k^-1 dk') by `probes` random vectors."""

    def __init__(self, problem, state, probes, rng):
        self.problem, self.state = problem, state
        factor = state.data.factor
        signs = rng.choice([-1.0, 1.0], size=(problem.geometry.count, probes))
        random = solve_triangular(factor, signs, lower=True, trans="T", overwrite_b=True, check_finite=False)
        self.vectors = np.asfortranarray(np.column_stack([state.data.weights, random]))
        self.signs = np.r_[1.0, np.full(probes, -0.5 / probes)]
        # The prior term alone has the diagonal N (v_i + v_j) / 4; with one layer the force N (1 - v) at the saddle
        # point brings it down to N / 2. Of v^0, v^1/2 and v these needed the fewest products, for L = 1 and for L = 12.
        scales = state.scales if len(state.scales) > 1 else [np.ones_like(state.scales[0])]
        self.preconditioner = [problem.width / 4 * (v[:, None] + v) for v in scales]

    def data_product(self, dv):
        """Change of dH/dV_L under the change dv of V_L."""
        geometry = self.problem.geometry
        change = geometry.expand(dv)
        change *= geometry.cosines
        changes = blas.dgemm(1.0, change, self.vectors)
        response, _ = lapack.dpotrs(self.state.data.factor, changes, lower=1, overwrite_b=1)
        change = blas.dgemm(1.0, self.vectors * self.signs, response, trans_b=1, c=change, overwrite_c=1)
        change *= geometry.cosines
        return geometry.contract(change)

    def product(self, step):
        """Hessian times `step` (symmetric, one array per layer).

        A difference quotient of S/2 that repeats the layers but not the kernel. Pulling S_l back from Z_l exp(X/2)
        would add a commutator of symmetric matrices, which is antisymmetric and drops out.
        """
        state, width = self.state, self.problem.width
        size = 1e-6 / max(np.abs(s).max() for s in step)
        moved = [z + size / 2 * (z @ s) for z, s in zip(state.z, step, strict=True)]
        ahead = Chain(self.problem.geometry.powers, moved)
        bar = self.data_product((ahead.v[-1] - state.chain.v[-1]) / size)
        forces = ahead.forces(state.data.v_bar + size * bar)
        result = []
        for scales, force, rest, s in zip(state.scales, forces, state.forces, step, strict=True):
            total = (force - rest) / size + width * scales[:, None] * s
            result.append((total + total.T) / 4)
        return result


def dot(a, b):
    """Inner product of two lists of arrays."""
    return sum(float(np.vdot(u, v)) for u, v in zip(a, b, strict=True))


def add(a, b, factor):
    """a + factor * b for lists of arrays."""
    return [u + factor * v for u, v in zip(a, b, strict=True)]


def model_step(curvature, gradient, radius, accuracy, limit):
    """Minimise the quadratic model within |step| <= radius by preconditioned conjugate gradients (Steihaug).

    Returns the step, the decrease of H that the model predicts, the norm of the step and whether it is on the boundary.
    """
    inverse = [1 / m for m in curvature.preconditioner]
    step = [np.zeros_like(g) for g in gradient]
    bent = step
    remainder = [-g for g in gradient]
    direction = [r * m for r, m in zip(remainder, inverse, strict=True)]
    rho = start = dot(remainder, direction)
    edge = False
    for _ in range(limit):
        image = curvature.product(direction)
        bend = dot(direction, image)
        dd, sd, ss = dot(direction, direction), dot(step, direction), dot(step, step)
        length = rho / bend if bend > 0 else math.inf
        if not ss + 2 * length * sd + length**2 * dd < radius**2:
            length = (-sd + math.sqrt(sd**2 + dd * (radius**2 - ss))) / dd
            edge = True
        step, bent = add(step, direction, length), add(bent, image, length)
        if edge:
            break
        remainder = add(remainder, image, -length)
        solved = [r * m for r, m in zip(remainder, inverse, strict=True)]
        previous, rho = rho, dot(remainder, solved)
        if rho < accuracy**2 * start:
            break
        direction = add(solved, direction, rho / previous)
    return step, -(dot(gradient, step) + dot(step, bent) / 2), math.sqrt(dot(step, step)), edge


def minimise(problem, layers, *, tolerance, limit, seed=0):
    """Descend from `layers` (Whitened) to a minimum of H: the State at which the residual is below `tolerance`.

    Raises ConvergenceError after `limit` evaluations, or when rounding keeps the residual above `tolerance`.
    """
    rng = np.random.default_rng(seed)
    state = problem.evaluate(layers)
    if state is None:
        raise RankError("the kernel at the starting point is not positive definite to working precision")
    # A typical change of log V of 0.3 per direction.
    radius = 0.3 * math.sqrt(sum(len(z) for z in state.z))
    while state.residual > tolerance:
        curvature = Curvature(problem, state, PROBES, rng)
        gradient = [g / 2 for g in state.gradient]
        # Far from the minimum the model is rough, and solving it well would be wasted.
        accuracy = 0.02 if state.residual < 1e-2 else 0.3
        step, predicted, norm, edge = model_step(curvature, gradient, radius, accuracy, limit=60)
        del curvature
        # Below this the difference of two values of H is rounding, and the residual decides.
        rounding = 1e-11 * state.magnitude
        for attempt in itertools.count():
            if problem.evaluations >= limit or attempt > 20:
                raise ConvergenceError(
                    f"saddle point not found in {problem.evaluations} evaluations: residual {state.residual:.1e}, "
                    f"tolerance {tolerance:.1e}; raise max_evaluations or tolerance, or start from a nearby solution"
                )
            trial = problem.evaluate(state.layers, step)
            if trial is None:
                ratio = -math.inf
            elif predicted > rounding:
                ratio = (state.value - trial.value) / predicted
            else:
                ratio = 1.0 if trial.residual < state.residual else -math.inf
            if ratio > 0.05:
                break
            step, norm, predicted = [0.3 * s for s in step], 0.3 * norm, 0.3 * predicted
            radius = norm
        if ratio > 0.75 and edge:
            radius *= 2
        elif ratio < 0.25:
            radius = norm / 2
        state = trial
    return state
