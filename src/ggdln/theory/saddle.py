"""The effective Hamiltonian of the order parameters and its saddle-point equation.

    H   = 1/2 y^T (K + T)^-1 y + 1/2 log det (K + T) + 1/2 sum_l N_l [ tr(V_l G_l^-1) - log det(V_l G_l^-1) - r_l ]
    G_1 = I,   G_{l+1} = S^T (I (x) V_l) S

with V_l in units of the prior variances, and K linear in V_L (see `likelihood`). H is measured from the prior, so no constant
depends on the basis. Writing V_l = B_l B_l^T, B_l = C_l Z_l, C_l C_l^T = G_l, the prior term is
1/2 sum_l N_l ( |Z_l|^2 - log det Z_l^T Z_l - r_l ): the same well-conditioned form at every depth. E_l = Z_l^T Z_l - 1 is
carried along beside Z_l: N E_l is accurate even for large N and small E_l. Rotations of Z_l from the right change nothing and
are used to keep E_l nearly diagonal.

V_l is moved to B_l T T^T B_l^T with T(X_l) lower triangular, so it stays positive: T has the entries of the symmetric X_l below
the diagonal and exp(X_ii / 2) on it. The gradient in X_l is S_l / 2,

    S_l = N_l (Z_l^T Z_l - 1) + 2 B_l^T (dH_data/dV_l) B_l,

and S_l = 0 for all l is the saddle-point equation; for L = 1 it reads U = sigma^2 (1 - U^1/2 (R1 - R2) U^1/2 / N).

Where a direction of gate space is amplified in all layers, H is a narrow valley along which it turns. Two triangles keep this
valley straight. The columns of Z_l come in the order of their lengths, so T adds small columns of B_l to large ones, which
turns these and leaves their length. And C_l = Q_l L_l, with L_l triangular in a basis Q_l that has the large directions of G_l
first, turns with G_l, and so does V_l at fixed Z_l.

Levels count from the readout: V_1 belongs to the readout weights and to the last hidden layer, V_L to the first one.
"""

import math
from functools import cache, cached_property

import numpy as np
from scipy.linalg import lapack, solve_triangular

# Smallest singular value of Z: with zero labels and more samples than weights H has no minimum, and Z shrinks for ever.
SMALLEST = 1e-20

# Entries of L_l in units of the diagonal above them from which on a new basis Q_l is taken.
TURNED = 1.0


class Whitened:
    """Z (r, r), an order parameter relative to its prior mean, as `matrix`, with Z^T Z = 1 + `excess`.

    logs     logs of the eigenvalues of Z^T Z, ascending
    frame    a token that is shared by all Z of which steps X can be compared entry by entry
    basis    Q_l (r, r), orthogonal; None for the basis of the features themselves, as in all that is kept or compared
    """

    def __init__(self, matrix, excess, logs, frame=None, basis=None):
        self.matrix, self.excess, self.logs, self.basis = matrix, excess, logs, basis
        self.frame = object() if frame is None else frame

    @classmethod
    def diagonal(cls, q, h, basis=None):
        """Z = Q e^(h/2) with Q orthogonal and h (r,) the logs of the eigenvalues, the largest first."""
        order = np.argsort(-h, kind="stable")
        q, h = q[:, order], h[order]
        return cls(q * np.exp(h / 2), np.diag(np.expm1(h)), h[::-1], basis=basis)

    @classmethod
    def of(cls, z, basis=None):
        """Any Z, turned from the right so that Z^T Z is diagonal."""
        left, singular, _ = np.linalg.svd(z)
        if not singular[-1] > SMALLEST:
            raise FloatingPointError("Z is singular to working precision")
        return cls.diagonal(left, 2 * np.log(singular), basis)

    @classmethod
    def multiple(cls, factor, size):
        """The prior mean times factor^2."""
        return cls.diagonal(np.eye(size), np.full(size, 2 * math.log(factor)))

    def times(self, factor):
        """The same with Z multiplied by a number."""
        square = factor**2
        excess = square * self.excess
        excess[np.diag_indices_from(excess)] += square - 1
        return Whitened(factor * self.matrix, excess, self.logs + math.log(square), self.frame, self.basis)

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
        """Z T(X) for a symmetric X, turned from the right only after a large change."""
        e = np.tril(x, -1)
        e[np.diag_indices_from(e)] = np.expm1(x.diagonal() / 2)
        z = self.matrix + self.matrix @ e
        if not np.abs(x).max() < 0.5:
            return Whitened.of(z, self.basis)
        # (1 + e)^T (1 + E) (1 + e) - 1 without cancellation: near the prior only the difference from it matters.
        half = self.excess + self.excess @ e
        excess = half + e.T @ half + e + e.T + e.T @ e
        excess = (excess + excess.T) / 2
        values = np.linalg.eigvalsh(excess)
        # Eigenvalues 1 + E close to 0, or far below the largest, would be lost in rounding.
        if not 1 + values[0] > max(1e-3, 1e-6 * (1 + values[-1])):
            return Whitened.of(z, self.basis)
        length = np.sqrt(1 + excess.diagonal())
        overlap = np.abs(excess) / np.outer(length, length)
        np.fill_diagonal(overlap, 0.0)
        longest_after = np.maximum.accumulate(length[::-1])[::-1]
        if not (overlap.max() < 0.5 and (longest_after < 2 * length).all()):
            return Whitened.of(z, self.basis)
        return Whitened(z, excess, np.log1p(values), self.frame, self.basis)


class Chain:
    """The state of all layers at given Z_l: factors C_l of G_l = C_l C_l^T, B_l = C_l Z_l and V_l = B_l B_l^T.

    Z_l is (r_l, r_l) at the saddle point. A network with fewer units than features has Z_l with N columns; the G_l above it
    has no Cholesky factor but the wide one that `step.factor` gives, and Z_l has as many rows as that has columns.

    bases: the Q_l, by default those of the features. `triangles` are the L_l = Q_l^T C_l.
    """

    def __init__(self, powers, z, bases=None):
        self.powers, self.z, self.bases = powers, z, bases or [None] * len(z)
        self.g, self.c, self.b, self.v, self.triangles = [], [], [], [], []
        for level, (z_l, q) in enumerate(zip(z, self.bases, strict=True)):
            g = c = triangle = None
            if self.is_wide(level):
                c = powers.steps[level - 1].factor(self.b[-1])
            else:
                g = powers.first if level == 0 else powers.steps[level - 1].forward(self.v[-1])
                if g is not None:
                    triangle = cholesky(g if q is None else q.T @ g @ q)
                    c = triangle if q is None else q @ triangle
            b = z_l if c is None else c @ z_l
            self.g.append(g)
            self.c.append(c)
            self.triangles.append(triangle)
            self.b.append(b)
            self.v.append(b @ b.T)

    def is_wide(self, level):
        """Whether C_l is not square, because V_{l-1} is singular."""
        return level > 0 and self.b[level - 1].shape[1] < self.b[level - 1].shape[0]

    def gradients(self, b_bar):
        """dH/dZ_l of every layer, from dH/dB_L."""
        result = [None] * len(self.z)
        for level in range(len(self.z) - 1, -1, -1):
            z, c, triangle, q = self.z[level], self.c[level], self.triangles[level], self.bases[level]
            result[level] = z_bar = b_bar if c is None else c.T @ b_bar
            if level == 0:
                break
            step = self.powers.steps[level - 1]
            if self.is_wide(level):
                b_bar = step.factor_adjoint(b_bar @ z.T)
                continue
            # Adjoint of the Cholesky factorization of G_l.
            inner = z_bar @ z.T
            inner *= half_lower(len(inner))
            left, _ = lapack.dtrtrs(triangle, inner, lower=1, trans=1)
            g_bar, _ = lapack.dtrtrs(triangle, left.T, lower=1, trans=1, overwrite_b=1)
            g_bar = (g_bar + g_bar.T) / 2
            b_bar = 2 * step.adjoint(g_bar if q is None else q @ g_bar @ q.T) @ self.b[level - 1]
        return result

    def forces(self, b_bar):
        """2 B_l^T (dH/dV_l) B_l = Z_l^T (dH/dZ_l) for every layer, from dH/dB_L."""
        return [z.T @ z_bar for z, z_bar in zip(self.z, self.gradients(b_bar), strict=True)]


def cholesky(g):
    """The lower Cholesky factor of G_l."""
    c, info = lapack.dpotrf(g, lower=1, clean=1)
    if info != 0:
        raise FloatingPointError("G_l is not positive definite to working precision")
    return c


@cache
def half_lower(size):
    """1 below the diagonal, 1/2 on it, 0 above."""
    return np.tri(size) - np.eye(size) / 2


class Problem:
    """H as a function of Z_1 ... Z_L for a likelihood of `likelihood` and widths N_l of the layers, that of V_1 first."""

    def __init__(self, likelihood, widths):
        self.likelihood, self.widths = likelihood, widths
        self.powers = likelihood.form.powers
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

    `value` is H without the constant `likelihood.shift`; `gradient` the S_l; `residual` = |S| / (sqrt(L) (tr R1 + tr R2)), the
    unbalanced part of the forces relative to the two parts of the data force, R1 = B^T F^T (k^-1 o cos) F B and R2 likewise
    with k^-1 t t^T k^-1. data: the data term, where it is known already.
    """

    def __init__(self, problem, layers, data=None):
        self.problem, self.layers = problem, layers
        self.z = [layer.matrix for layer in layers]
        self.chain = Chain(problem.powers, self.z, [layer.basis for layer in layers])
        self.data = problem.likelihood.at(self.chain.b[-1]) if data is None else data
        parts = zip(problem.widths, layers, strict=True)
        prior = sum(width / 2 * float(np.sum(np.expm1(layer.logs) - layer.logs)) for width, layer in parts)
        self.value = self.data.value + prior
        self.magnitude = self.data.magnitude + prior

    @cached_property
    def forces(self):
        """The part of the gradient from the data."""
        return self.chain.forces(self.data.b_bar)

    @cached_property
    def gradient(self):
        """S_l of every layer."""
        parts = zip(self.problem.widths, self.forces, self.layers, strict=True)
        return [force + width * layer.excess for width, force, layer in parts]

    @cached_property
    def residual(self):
        """Norm of the gradient in units of the data forces."""
        norm = math.sqrt(sum(float(np.sum(g**2)) for g in self.gradient))
        # tr R1 - tr R2 is the trace of the force.
        scale = abs(float(np.trace(self.forces[-1]))) + 2 * self.data.attraction
        return norm / (math.sqrt(len(self.layers)) * scale) if norm > 0 else 0.0

    def graded(self):
        """The same point with the large directions of every G_l first, where those in use have turned away from that."""
        bases = [layer.basis for layer in self.layers]
        for level, triangle in enumerate(self.chain.triangles):
            # G_1 does not change.
            if level > 0 and np.abs(np.tril(triangle / triangle.diagonal(), -1)).max() > TURNED:
                bases[level] = np.linalg.eigh(self.chain.g[level])[1][:, ::-1]
        try:
            return self.in_bases(bases)
        except FloatingPointError:
            return self

    def in_bases(self, bases):
        """The same point with other Q_l; raises FloatingPointError."""
        layers = list(self.layers)
        for level, (layer, q) in enumerate(zip(self.layers, bases, strict=True)):
            if q is not layer.basis:
                g, b = self.chain.g[level], self.chain.b[level]
                left = cholesky(g) if q is None else cholesky(q.T @ g @ q)
                z = solve_triangular(left, b if q is None else q.T @ b, lower=True, check_finite=False)
                layers[level] = Whitened(z, layer.excess, layer.logs, basis=q)
        return self if layers == self.layers else State(self.problem, layers, self.data)
