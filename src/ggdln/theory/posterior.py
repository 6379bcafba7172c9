"""The posterior of a network of any width, as a density over small triangular matrices.

With the first layer of weights integrated out, f is Gaussian given the others, with the kernel of `likelihood` at V_L, and a
priori V_l = C_l Z_l Z_l^T C_l^T, C_l C_l^T = G_l(V_{l-1}), where N Z_l Z_l^T are independent Wishart matrices of side r_l and N
degrees of freedom. Nothing is approximated, and nothing but these exponents depends on the width. Z_l may be taken lower
triangular (Bartlett), with r_l rows and min(r_l, N) columns: entries below the diagonal are Gaussian of variance 1/N, and
N z_ii^2 has a chi-squared distribution with N - i degrees of freedom, i = 0, 1, ... So in the coordinates u = (z_ij, j <= i)

    E(u) = 1/2 y^T (K + T)^-1 y + 1/2 log det (K + T) + sum_l [ N/2 |Z_l|^2 - sum_i (N - i - 1) log |z_ii| ]

is the energy, smooth and close to its prior part: the eigenvalues of its Hessian, in units of that of the prior, are of order
1. Any fixed rotation of Z_l from the left leaves the prior as it is; here it makes the saddle point diagonal. Where N < r_l the
V_l are singular, and the level above has the wide factor of G_l (see `saddle.Chain`), with as many rows of Z as that has
columns.
"""

import math

import numpy as np
from scipy.optimize import minimize
from scipy.special import gammaln

from ggdln.theory.saddle import Chain


class Posterior:
    """The energy E(u) for a `Solution`, and the `layers` at a minimum of H from which the coordinates are chosen.

    size: number D of coordinates; centre (D,): those of the saddle point, or close to it where N < r_l.
    """

    def __init__(self, solution, layers):
        self.likelihood, self.powers = solution.likelihood, solution.training.powers
        self.widths, self.evaluations = [int(width) for width in solution.shape.levels], 0
        self.turns, self.shapes, centre = [], [], []
        rows, self.wide = self.powers.sizes[0], [False]
        for level, (layer, width) in enumerate(zip(layers, self.widths, strict=True)):
            columns = min(rows, width)
            self.shapes.append((rows, columns))
            start = np.zeros((rows, columns))
            if not self.wide[level]:
                left, singular, _ = np.linalg.svd(layer.matrix)
                self.turns.append(_signed(left))
                np.fill_diagonal(start, singular)
            else:
                self.turns.append(None)
                np.fill_diagonal(start, 1.0)
            centre.append(start)
            if level + 1 < len(self.widths):
                self.wide.append(columns < self.powers.sizes[level])
                rows = self.powers.gates.shape[1] * columns if self.wide[-1] else self.powers.sizes[level + 1]
        self.masks = [np.tri(*shape, dtype=bool) for shape in self.shapes]
        self.exponents = [width - np.arange(columns) for width, (_, columns) in zip(self.widths, self.shapes, strict=True)]
        self.centre = self.flat(centre)
        self.size = len(self.centre)

    def flat(self, matrices):
        """The coordinates of triangular matrices."""
        return np.concatenate([matrix[mask] for matrix, mask in zip(matrices, self.masks, strict=True)])

    def triangles(self, u):
        """The triangular matrices with coordinates u."""
        matrices, position = [], 0
        for shape, mask in zip(self.shapes, self.masks, strict=True):
            matrix, count = np.zeros(shape), int(mask.sum())
            matrix[mask] = u[position : position + count]
            matrices.append(matrix)
            position += count
        return matrices

    def chain(self, u):
        """The `Chain` of all layers at u."""
        return Chain(self.powers, [_turned(q, z) for q, z in zip(self.turns, self.triangles(u), strict=True)])

    def energy(self, u):
        """E(u) and its gradient (D,); infinity and None where a matrix is numerically not positive definite."""
        return self._energy(u, lambda data: data.b_bar)

    def rough_energy(self, u):
        """The same, with the gradient in single precision."""
        return self._energy(u, lambda data: data.rough_b_bar)

    def rough_gradient(self, u):
        """All in single precision, without E: (D,) or None."""
        try:
            chain, triangles = self._weighed(u)
            return self._gradient(chain, triangles, self.likelihood.at(chain.b[-1], np.float32).b_bar)
        except FloatingPointError:
            return None

    def _energy(self, u, slope):
        try:
            chain, triangles = self._weighed(u)
            data = self.likelihood.at(chain.b[-1])
            gradient = self._gradient(chain, triangles, slope(data))
        except FloatingPointError:
            return math.inf, None
        value = data.value
        for width, exponents, z in zip(self.widths, self.exponents, triangles, strict=True):
            value += width / 2 * float(np.sum(z**2)) - float(np.sum((exponents - 1) * np.log(np.abs(np.diagonal(z)))))
        return (value, gradient) if math.isfinite(value) else (math.inf, None)

    def _weighed(self, u):
        """The `Chain` at u and its triangles."""
        self.evaluations += 1
        triangles = self.triangles(u)
        if any((np.diagonal(z) == 0).any() for z in triangles):
            raise FloatingPointError("no weights")
        return Chain(self.powers, [_turned(q, z) for q, z in zip(self.turns, triangles, strict=True)]), triangles

    def _gradient(self, chain, triangles, b_bar):
        """Of E, from that of the data term by B_L."""
        gradients = []
        for width, exponents, q, z, slope in zip(
            self.widths, self.exponents, self.turns, triangles, chain.gradients(b_bar), strict=True
        ):
            diagonal = np.diagonal(z)
            gradient = width * z + (slope if q is None else q.T @ slope)
            np.einsum("ii->i", gradient[: len(diagonal)])[...] -= (exponents - 1) / diagonal
            gradients.append(gradient)
        return self.flat(gradients)

    def upright_energy(self, u):
        """The same where all z_ii are positive, infinite elsewhere."""
        return self.energy(u) if all((np.diagonal(z) > 0).all() for z in self.triangles(u)) else (math.inf, None)

    def prior_curvature(self, u):
        """The Hessian of the prior part of E, which is diagonal: (D,)."""
        curvatures = []
        for width, exponents, z in zip(self.widths, self.exponents, self.triangles(u), strict=True):
            curvature = np.full(z.shape, float(width))
            np.einsum("ii->i", curvature[: len(exponents)])[...] += (exponents - 1) / np.diagonal(z) ** 2
            curvatures.append(curvature)
        return self.flat(curvatures)

    def log_prior_volume(self):
        """log of the integral of the prior part of e^-E over z_ii > 0."""
        total = 0.0
        for width, exponents, mask in zip(self.widths, self.exponents, self.masks, strict=True):
            total += (int(mask.sum()) - len(exponents)) / 2 * math.log(2 * math.pi / width)
            total += float(np.sum(gammaln(exponents / 2) + exponents / 2 * np.log(2 / width))) - len(exponents) * math.log(2)
        return total

    def mode(self, tolerance=1e-3, limit=500):
        """Upright coordinates of a minimum of E near the centre, to a decrease of E of about `tolerance`: (D,)."""
        scale = 1 / np.sqrt(self.prior_curvature(self.centre))

        def energy(s):
            value, gradient = self.energy(self.centre + scale * s)
            return (1e300, np.zeros_like(s)) if gradient is None else (value, scale * gradient)

        options = {"maxiter": limit, "maxcor": 20, "gtol": math.sqrt(tolerance / self.size), "ftol": 1e-14}
        found = minimize(energy, np.zeros(self.size), jac=True, method="L-BFGS-B", options=options)
        return self.upright(self.centre + scale * found.x)

    def upright(self, u):
        """The same point of the posterior with positive diagonals.

        The sign of a column of Z_l changes nothing but those of columns of a wide factor of G_{l+1}, with which rows of Z_{l+1}
        change theirs.
        """
        triangles, signs = self.triangles(u), np.ones(0)
        for level, z in enumerate(triangles):
            if self.wide[level]:
                z *= np.tile(signs, len(z) // len(signs))[:, None]
            signs = np.where(np.diagonal(z) < 0, -1.0, 1.0)
            z *= signs
        return self.flat(triangles)


def _signed(columns):
    """Singular vectors whose largest entry is positive, since LAPACK libraries choose signs differently."""
    largest = np.take_along_axis(columns, np.abs(columns).argmax(axis=0)[None], axis=0)
    return np.where(largest < 0, -columns, columns)


def _turned(q, z):
    return z if q is None else q @ z


def hessian(energy, u, scale):
    """The Hessian of E at a minimum u in coordinates divided by `scale` (D,), by differences of the gradient: (D, D)."""
    step, here, rows = 1e-4, energy(u)[1], []
    for i in range(len(u)):
        shift = np.zeros_like(u)
        shift[i] = step * scale[i]
        ahead = energy(u + shift)[1]
        if ahead is None:
            raise FloatingPointError("the energy is not finite near its minimum")
        rows.append(scale * (ahead - here) / step)
    matrix = np.array(rows)
    return (matrix + matrix.T) / 2
