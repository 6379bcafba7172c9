"""The saddle point of the effective Hamiltonian, found by a trust-region Newton method.

All lengths are taken out first: with d the square root of the diagonal of K_GP on the training set, t = y/d and unit
inputs and gates, the problem that is solved numerically depends on sigma only through t and T/d^2:

    k   = (s_L^T V_L s_L') o cos(x, x') + T/d^2
    H   = 1/2 t^T k^-1 t + 1/2 log det k + sum log d + N/2 sum_l [ tr(V_l G_l^-1) - log det(V_l G_l^-1) - r_l ]
    G_1 = I,   G_{l+1} = S^T (I (x) V_l) S

with V_l in units of sigma^(2l). H is measured from the prior, so no constant depends on the basis. Writing
V_l = B_l B_l^T, B_l = C_l Z_l, C_l C_l^T = G_l, the prior term is N/2 sum_l ( |Z_l|^2 - log det Z_l^T Z_l - r_l ): the
same well-conditioned form at every depth. E_l = Z_l^T Z_l - 1 is carried along beside Z_l: N E_l is accurate even for
large N and small E_l. Rotations of Z_l from the right change nothing and are used to keep E_l nearly diagonal.

V_l is moved to B_l R(X_l)^2 B_l^T with X_l symmetric, so it stays positive: R(X) is exp(X/2) for large steps and
1 + X/2 + X^2/8, equal to second order, for small ones. The gradient in X_l is S_l / 2,

    S_l = N (Z_l^T Z_l - 1) + 2 B_l^T (dH_data/dV_l) B_l,

and S_l = 0 for all l is the saddle-point equation; for L = 1 it reads U = sigma^2 (1 - U^1/2 (R1 - R2) U^1/2 / N).

One evaluation of H and its gradient costs a Cholesky factorization and an inverse of k. A Hessian product would cost
two P x P matrix products; its only expensive part, tr(k^-1 dk k^-1 dk'), is replaced by w^T dk k^-1 dk' w averaged
over a few random w of covariance k^-1. That is an accurate model of the Hessian at the cost of a few passes over k; the
gradient is exact, so is the solution. The directions of earlier conjugate-gradient runs precondition the later ones, which
matters for many layers: a change of the same kind in all of them is L times stiffer than one in a single layer, and
changes that cancel between layers are soft. H is not convex: directions of negative curvature are followed, so a stationary
point that is not a minimum is left.
"""

import itertools
import math
from functools import cache, cached_property

import numpy as np
from scipy.linalg import blas, lapack, solve_triangular

from ggdln.core.errors import ConvergenceError, RankError

# Random vectors in the model of the Hessian; from 5 to 100 of them the number of steps hardly changed on digits.
PROBES = 10

# Smallest singular value of Z: with zero labels and more samples than weights H has no minimum, and Z shrinks for ever.
SMALLEST = 1e-20

# Directions of earlier conjugate-gradient runs that are kept.
RECYCLED = 100

# Below CLOSE the residual falls fast until rounding stops it: that many evaluations without halving it are a sign.
CLOSE, PATIENCE = 1e-5, 60


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
    """Z (r, r), an order parameter relative to its prior mean, as `matrix`, with Z^T Z = 1 + `excess`.

    logs     logs of the eigenvalues of Z^T Z, ascending
    frame    a token that is shared by all Z of which steps X can be compared entry by entry
    """

    def __init__(self, matrix, excess, logs, frame=None):
        self.matrix, self.excess, self.logs = matrix, excess, logs
        self.frame = object() if frame is None else frame

    @classmethod
    def diagonal(cls, q, h):
        """Z = Q e^(h/2) with Q orthogonal and h (r,) the logs of the eigenvalues."""
        return cls(q * np.exp(h / 2), np.diag(np.expm1(h)), np.sort(h))

    @classmethod
    def of(cls, z):
        """Any Z, turned from the right so that Z^T Z is diagonal."""
        left, singular, _ = np.linalg.svd(z)
        if not singular[-1] > SMALLEST:
            raise FloatingPointError("Z is singular to working precision")
        return cls.diagonal(left, 2 * np.log(singular))

    @classmethod
    def multiple(cls, factor, size):
        """The prior mean times factor^2."""
        return cls.diagonal(np.eye(size), np.full(size, 2 * math.log(factor)))

    def times(self, factor):
        """The same with Z multiplied by a number."""
        square = factor**2
        excess = square * self.excess
        excess[np.diag_indices_from(excess)] += square - 1
        return Whitened(factor * self.matrix, excess, self.logs + math.log(square), self.frame)

    @property
    def scales(self):
        """Diagonal of Z^T Z: (r,)."""
        return np.einsum("ij,ij->j", self.matrix, self.matrix)

    @property
    def log(self):
        """log(Z Z^T): (r, r)."""
        left, singular, _ = np.linalg.svd(self.matrix)
        return (left * (2 * np.log(singular))) @ left.T

    def moved(self, x):
        """Z R(X) for a symmetric X, turned from the right only after a large change."""
        if not np.abs(x).max() < 0.5:
            values, vectors = np.linalg.eigh(x)
            return Whitened.of(self.matrix @ ((vectors * np.exp(values / 2)) @ vectors.T))
        e = x @ x
        e *= 0.125
        e += 0.5 * x
        # (1 + e) (1 + E) (1 + e) - 1 without cancellation: near the prior only the difference from it matters.
        half = self.excess + self.excess @ e
        excess = half + e @ half + 2 * e + e @ e
        excess = (excess + excess.T) / 2
        values = np.linalg.eigvalsh(excess)
        z = self.matrix + self.matrix @ e
        # Eigenvalues 1 + E close to 0, or far below the largest, would be lost in rounding.
        if not 1 + values[0] > max(1e-3, 1e-6 * (1 + values[-1])):
            return Whitened.of(z)
        length = np.sqrt(1 + excess.diagonal())
        overlap = np.abs(excess) / np.outer(length, length)
        np.fill_diagonal(overlap, 0.0)
        return Whitened(z, excess, np.log1p(values), self.frame) if overlap.max() < 0.5 else Whitened.of(z)


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
            if level == 0:
                result[level] = b.T @ b_bar
            else:
                z_bar = c.T @ b_bar
                result[level] = z.T @ z_bar
                # Adjoint of the Cholesky factorization of G_l.
                inner = z_bar @ z.T
                inner *= half_lower(len(inner))
                left, _ = lapack.dtrtrs(c, inner, lower=1, trans=1)
                g_bar, _ = lapack.dtrtrs(c, left.T, lower=1, trans=1, overwrite_b=1)
                v_bar = self.powers.steps[level - 1].adjoint((g_bar + g_bar.T) / 2)
        return result


@cache
def half_lower(size):
    """1 below the diagonal, 1/2 on it, 0 above."""
    return np.tri(size) - np.eye(size) / 2


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
    """H and, on demand, its gradient and the certificate at one point.

    `value` is H without sum log d; `gradient` the S_l; `residual` = |S| / (sqrt(L) (tr R1 + tr R2)), the unbalanced
    part of the forces relative to the two parts of the data force, R1 = B^T F^T (k^-1 o cos) F B and R2 likewise with
    k^-1 t t^T k^-1.
    """

    def __init__(self, problem, layers):
        self.problem, self.layers = problem, layers
        self.z = [layer.matrix for layer in layers]
        self.chain = Chain(problem.geometry.powers, self.z)
        self.data = data = Data(problem.geometry, self.chain.b[-1], problem.labels, problem.noise)
        prior = problem.width / 2 * sum(float(np.sum(np.expm1(layer.logs) - layer.logs)) for layer in layers)
        self.value = data.quadratic / 2 + data.entropy + prior
        self.magnitude = data.quadratic / 2 + abs(data.entropy) + prior

    @cached_property
    def forces(self):
        """The part of the gradient from the data."""
        self.data.differentiate(self.problem.geometry)
        return self.chain.forces(self.data.v_bar)

    @cached_property
    def gradient(self):
        """S_l of every layer."""
        return [force + self.problem.width * layer.excess for force, layer in zip(self.forces, self.layers, strict=True)]

    @cached_property
    def residual(self):
        """Norm of the gradient in units of the data forces."""
        norm = math.sqrt(sum(float(np.sum(g**2)) for g in self.gradient))
        # tr R2 = t k^-1 (k - T/d^2) k^-1 t; tr R1 - tr R2 is the trace of the force.
        attraction = abs(self.data.quadratic - float(self.problem.noise @ self.data.weights**2))
        scale = abs(float(np.trace(self.forces[-1]))) + 2 * attraction
        return norm / (math.sqrt(len(self.layers)) * scale) if norm > 0 else 0.0


class Curvature:
    """Products with the Hessian of H at a State, tr(k^-1 dk k^-1 dk') by `probes` random vectors."""

    def __init__(self, problem, state, probes, rng):
        self.problem, self.state = problem, state
        factor, count = state.data.factor, problem.geometry.count
        if count <= 4 * probes:
            # For few samples all unit vectors: the exact trace, and no noise that looks like negative curvature.
            signs, probes = np.eye(count) * math.sqrt(count), count
        else:
            signs = rng.choice([-1.0, 1.0], size=(count, probes))
        random = solve_triangular(factor, signs, lower=True, trans="T", overwrite_b=True, check_finite=False)
        self.vectors = np.asfortranarray(np.column_stack([state.data.weights, random]))
        self.signs = np.r_[1.0, np.full(probes, -0.5 / probes)]
        # The prior term alone has the diagonal N (v_i + v_j) / 4; with one layer the force N (1 - v) at the saddle
        # point brings it down to N / 2. Of v^0, v^1/2 and v these needed the fewest products, for L = 1 and for L = 12.
        scales = [layer.scales if len(state.layers) > 1 else np.ones(len(layer.logs)) for layer in state.layers]
        self.preconditioner = np.concatenate([(problem.width / 4 * (v[:, None] + v)).ravel() for v in scales])

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
        """Hessian times `step`, both flat: symmetric matrices, one per layer.

        A difference quotient of S/2 that repeats the layers but not the kernel. Pulling S_l back from Z_l R(X) would add
        a commutator of symmetric matrices, which is antisymmetric and drops out.
        """
        state, width = self.state, self.problem.width
        size = 1e-6 / np.abs(step).max()
        steps = layered(step, state.layers)
        changes = [z @ s for z, s in zip(state.z, steps, strict=True)]
        ahead = Chain(self.problem.geometry.powers, [z + size / 2 * y for z, y in zip(state.z, changes, strict=True)])
        bar = self.data_product((ahead.v[-1] - state.chain.v[-1]) / size)
        forces = ahead.forces(state.data.v_bar + size * bar)
        result = np.empty_like(step)
        parts = zip(layered(result, state.layers), state.z, changes, forces, state.forces, strict=True)
        for part, z, change, force, rest in parts:
            total = (force - rest) / size + width * (z.T @ change)
            part[...] = (total + total.T) / 4
        return result


def layered(flat, layers):
    """Views of a flat vector as one square matrix per layer."""
    sizes = [len(layer.logs) for layer in layers]
    ends = np.cumsum([size**2 for size in sizes])
    return [flat[end - size**2 : end].reshape(size, size) for size, end in zip(sizes, ends, strict=True)]


class Recycler:
    """Conjugate-gradient directions p and their images q = H p of earlier steps, as a preconditioner.

    They update a diagonal preconditioner D as in limited-memory BFGS, the oldest first,

        D^-1 -> (1 - p q^T) D^-1 (1 - q p^T) + p p^T    with p.q = 1,

    so it stays positive. Only the rows of every X_l in which the order parameter is farthest from its prior are kept,
    twice as many as gates, and those in single precision: the rest of the Hessian is close to D.
    """

    def __init__(self, count):
        self.count, self.frames = count, None

    def attend(self, layers):
        """Forget everything if the frame of a layer has changed."""
        frames = [layer.frame for layer in layers]
        if self.frames is not None and all(a is b for a, b in zip(frames, self.frames, strict=True)):
            return
        self.frames = frames
        rows, columns, factors, offset = [], [], [], 0
        for layer in layers:
            size = len(layer.logs)
            chosen = np.argsort(-np.abs(np.log(layer.scales)), kind="stable")[: self.count]
            inside = np.zeros(size, dtype=bool)
            inside[chosen] = True
            i, j = np.repeat(chosen, size), np.tile(np.arange(size), len(chosen))
            rows.append(offset + i * size + j)
            columns.append(offset + j * size + i)
            # An entry outside the square of chosen rows stands for itself and for its mirror image.
            factors.append(np.where(inside[j], 1.0, math.sqrt(2)))
            offset += size**2
        self.rows, self.columns = np.concatenate(rows), np.concatenate(columns)
        self.factors = np.concatenate(factors)
        self.both = self.factors > 1
        self.columns = self.columns[self.both]
        # Newest first; overlap[i, j] = p_i.q_j for j < i, 1 on the diagonal.
        self.p = self.q = np.zeros((0, len(self.rows)), dtype=np.float32)
        self.overlap = np.zeros((0, 0))

    def keep(self, directions, images, bends):
        """Add pairs, the oldest ones make room."""
        if not bends:
            return
        scales = 1 / np.sqrt(bends[::-1])
        p, q = (
            np.stack([self._part(scale * vector) for scale, vector in zip(scales, reversed(vectors), strict=True)])
            for vectors in (directions, images)
        )
        corner = np.tril(p @ q.T, -1) + np.eye(len(p))
        overlap = np.block([[corner, np.zeros((len(p), len(self.p)))], [self.p @ q.T, self.overlap]])
        self.p, self.q = np.concatenate([p, self.p])[:RECYCLED], np.concatenate([q, self.q])[:RECYCLED]
        self.overlap = np.asfortranarray(overlap[:RECYCLED, :RECYCLED])

    def apply(self, vector, diagonal):
        """The preconditioner applied to a flat vector."""
        if not len(self.p):
            return vector / diagonal
        first, _ = lapack.dtrtrs(self.overlap, self.p @ self._part(vector), lower=1)
        result = self._added(vector.copy(), -first.astype(np.float32) @ self.q)
        result /= diagonal
        second, _ = lapack.dtrtrs(self.overlap, first - self.q @ self._part(result), lower=1, trans=1)
        return self._added(result, second.astype(np.float32) @ self.p)

    def _part(self, vector):
        return (vector[self.rows] * self.factors).astype(np.float32)

    def _added(self, vector, part):
        part = part / self.factors
        vector[self.rows] += part
        vector[self.columns] += part[self.both]
        return vector


def model_step(curvature, gradient, radius, accuracy, limit, recycler=None):
    """Minimise the quadratic model within |step| <= radius by preconditioned conjugate gradients (Steihaug).

    A Recycler improves the preconditioner and takes in the directions of this run. Returns the step, the decrease of H
    that the model predicts, the norm of the step and whether it is on the boundary.
    """
    if recycler is not None:
        recycler.attend(curvature.state.layers)
    diagonal = curvature.preconditioner

    def preconditioned(vector):
        return vector / diagonal if recycler is None else recycler.apply(vector, diagonal)

    directions, images, bends = [], [], []
    step, bent = np.zeros_like(gradient), np.zeros_like(gradient)
    remainder = -gradient
    direction = preconditioned(remainder)
    rho = start = float(remainder @ direction)
    edge = False
    for _ in range(limit):
        image = curvature.product(direction)
        bend = float(direction @ image)
        dd, sd, ss = float(direction @ direction), float(step @ direction), float(step @ step)
        length = rho / bend if bend > 0 else math.inf
        if bend > 0:
            directions.append(direction)
            images.append(image)
            bends.append(bend)
        if not ss + 2 * length * sd + length**2 * dd < radius**2:
            length = (-sd + math.sqrt(sd**2 + dd * (radius**2 - ss))) / dd
            edge = True
        step, bent = step + length * direction, bent + length * image
        if edge:
            break
        remainder = remainder - length * image
        solved = preconditioned(remainder)
        previous, rho = rho, float(remainder @ solved)
        if rho < accuracy**2 * start:
            break
        direction = solved + rho / previous * direction
    if recycler is not None:
        recycler.keep(directions, images, bends)
    return step, -float(gradient @ step + step @ bent / 2), math.sqrt(step @ step), edge


def minimise(problem, layers, *, tolerance, limit, seed=0):
    """Descend from `layers` (Whitened) to a minimum of H: the State at which the residual is below `tolerance`.

    Raises ConvergenceError after `limit` evaluations, or when rounding keeps the residual above `tolerance`.
    """
    rng = np.random.default_rng(seed)
    state = problem.evaluate(layers)
    if state is None:
        raise RankError("the kernel at the starting point is not positive definite to working precision")
    # A typical change of log V_L of 0.3 per direction: those of all layers add up.
    radius = 0.3 * math.sqrt(sum(len(z) for z in state.z)) / len(state.z)
    recycler = Recycler(2 * problem.geometry.powers.gates.shape[1])
    best, improved = state.residual, problem.evaluations
    while state.residual > tolerance:
        curvature = Curvature(problem, state, PROBES, rng)
        gradient = np.concatenate([(g / 2).ravel() for g in state.gradient])
        # Far from the minimum the model is rough, and solving it well would be wasted. With several layers a product
        # costs nearly as much as an evaluation, and a rough solution is the cheaper one throughout.
        close, rough = (1e-2, 0.02) if len(state.layers) == 1 else (1e-3, 0.1)
        accuracy = rough if state.residual < close else 0.3
        # Directions from far away mislead, and with one layer there is nothing to gain.
        memory = recycler if len(state.layers) > 1 and state.residual < 3e-2 else None
        step, predicted, norm, edge = model_step(curvature, gradient, radius, accuracy, 60, memory)
        del curvature
        # Below this the difference of two values of H is rounding, and the residual decides.
        rounding = 1e-11 * state.magnitude
        for attempt in itertools.count():
            if best < CLOSE and (attempt > 20 or problem.evaluations - improved > PATIENCE):
                raise ConvergenceError(
                    f"rounding keeps the residual at {best:.1e}, above the tolerance {tolerance:.1e}: the kernel is nearly "
                    "singular; raise tolerance or temperature"
                )
            if problem.evaluations >= limit or attempt > 20:
                raise ConvergenceError(
                    f"saddle point not found in {problem.evaluations} evaluations: residual {state.residual:.1e}, "
                    f"tolerance {tolerance:.1e}; raise max_evaluations or tolerance, or start from a nearby solution"
                )
            trial = problem.evaluate(state.layers, layered(step, state.layers))
            if trial is None:
                ratio = -math.inf
            elif predicted > rounding:
                ratio = (state.value - trial.value) / predicted
            else:
                ratio = 1.0 if trial.residual < state.residual else -math.inf
            if ratio > 0.05:
                break
            step, norm, predicted = 0.3 * step, 0.3 * norm, 0.3 * predicted
            radius = norm
        if ratio > 0.75 and edge:
            radius *= 2
        elif ratio < 0.25:
            radius = norm / 2
        state = trial
        if state.residual < best / 2:
            best, improved = state.residual, problem.evaluations
    return state
