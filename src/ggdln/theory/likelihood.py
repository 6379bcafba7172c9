"""The data term 1/2 y^T (K + T)^-1 y + 1/2 log det (K + T) of a kernel K that is linear in V_L = B B^T, in two exact forms.

`KernelForm` works with matrices of the side P of the training set. All lengths are taken out first: with d the square root of
the diagonal of K_GP, t = y/d and unit inputs and gates,

    k = (s_L^T V_L s_L') o cos(x, x') + T/d^2,

so the problem that is solved numerically depends on sigma only through t and T/d^2.

`FeatureForm` works with matrices of the number D = r_L N0 of features phi(x) = s_L(g) (x) x / sqrt(N0), and needs T > 0. The
training set enters through the sums Phi^T Phi, Phi^T y and y^T y alone, so its samples need not be held at once. With
X = Phi (B (x) 1) and S = X^T X + T,

    log det (K + T) = (P - D) log T + log det S,    y^T (K + T)^-1 y = (y^T y - y^T X S^-1 X^T y) / T.

A form with a temperature and the product of the sigmas is a *likelihood*; its value at some B knows its derivatives and
predicts. With C outputs a sample is a pair (x, c), and the features are those of `symmetric`.
"""

import math
from functools import cached_property

import numpy as np
from scipy.linalg import blas, lapack, solve, solve_triangular

from ggdln.core.blas import shared

# Random vectors in the model of the Hessian; from 5 to 100 of them the number of steps hardly changed on digits.
PROBES = 10

# Rows of a panel, of 32 to 512 the fastest at P = 600 to 3000, and samples up to which there is one panel.
PANEL, SMALL = 128, 512


class KernelForm:
    """What does not depend on width, sigma, labels and temperature: cosines of the inputs and features of the gates.

    x (P, N0) are live; `powers` are the GatePowers of the distinct gates and `group` (P,) says which of them, and which
    output, each sample has. Samples must be sorted by group. lengths (P,): sqrt of the diagonal of K_GP at sigma = 1.

    Symmetric matrices of side P are worked on by panels, rows `first:last` and columns `first:` of them, which stay in the
    cache and are shared by threads. In Fortran order those of the transpose are the lower triangle.
    """

    def __init__(self, x, powers, group, y, lengths):
        self.powers, self.group, self.count, self.y, self.lengths = powers, group, len(group), y, lengths
        self.unit = x / np.linalg.norm(x, axis=1)[:, None]
        self.whole = self.count <= SMALL
        size = self.count if self.whole else PANEL
        self.panels = [(first, min(first + size, self.count)) for first in range(0, self.count, size)]
        cosines = self._assembled(lambda first, last, place: np.matmul(self.unit[first:last], self.unit[first:].T, out=place))
        mirror(cosines)
        np.fill_diagonal(cosines, 1.0)
        self.cosines = cosines.T  # symmetric, and in C order as panels are
        self.starts = np.flatnonzero(np.r_[True, np.diff(group) > 0])
        # Few distinct gates: work with one row per gate and copy; many: work with one row per sample, by BLAS.
        top = powers.top
        self.grouped = top is None or 4 * len(self.starts) < self.count
        self.features = top if self.grouped else np.ascontiguousarray(top[group])

    @property
    def side(self):
        """Side of the largest matrices."""
        return self.count

    def likelihood(self, sigma, temperature):
        """For a product `sigma` of the prior standard deviations of all layers."""
        return KernelLikelihood(self, sigma, temperature)

    def in_precision(self, dtype):
        """Cosines and features in a precision."""
        return self._single if dtype == np.float32 else (self.cosines, self.features)

    @cached_property
    def _single(self):
        return self.cosines.astype(np.float32), None if self.features is None else self.features.astype(np.float32)

    def factored(self, b):
        """Panels of s_L^T B B^T s_L', by their edges, for b (r, n), in its precision."""
        _, features = self.in_precision(b.dtype)
        rows = b if features is None else features @ b
        return self._between(rows, rows)

    def expanded(self, v):
        """Panels of s_L^T v s_L', by their edges, for a symmetric v (r, r), in its precision."""
        _, features = self.in_precision(v.dtype)
        return self._between(v, None) if features is None else self._between(features @ v, features)

    def kernel(self, panel, dtype=np.float64):
        """Panels times cosines as one matrix in Fortran order, of which the lower triangle is valid: (P, P)."""
        cosines, _ = self.in_precision(dtype)
        return self._assembled(
            lambda first, last, place: np.multiply(panel(first, last), cosines[first:last, first:], out=place), dtype
        )

    def _assembled(self, fill, dtype=np.float64):
        """A matrix of which `fill` writes the panel first, last to its place."""
        result = np.empty((self.count, self.count), dtype=dtype, order="F")
        shared(lambda edges: fill(*edges, result.T[edges[0] : edges[1], edges[0] :]), self.panels)
        return result

    def _between(self, left, right):
        """Panels of left right^T, which have a row for each distinct gate or for each sample; no right is the identity."""
        if not self.grouped:
            return lambda first, last: left[first:last] @ right[first:].T
        table = (left if right is None else left @ right.T).take(self.group, axis=1)
        return lambda first, last: table[:, first:][self.group[first:last]]

    def times(self, panel, vectors):
        """W times vectors (P, n) for a symmetric W by its panels."""
        if self.whole:
            return panel(0, self.count) @ vectors

        def part(edges):
            first, last = edges
            w = panel(first, last)
            return w @ vectors[first:], w[:, last - first :].T @ vectors[first:last]

        result = np.zeros_like(vectors)
        for (first, last), (own, below) in zip(self.panels, shared(part, self.panels), strict=True):
            result[first:last] += own
            result[last:] += below
        return result

    def contracted(self, panel, dtype=np.float64):
        """F^T (W + W^T) F, F the features of the training set, for a W by its panels, with zeros to their left: (r, r)."""
        _, features = self.in_precision(dtype)

        def part(edges):
            first, last = edges
            w = panel(first, last)
            if not self.grouped:
                return features[first:last].T @ (w @ features[first:])
            return np.add.reduceat(np.add.reduceat(w, self._cuts(first, self.count), axis=1), self._cuts(first, last), axis=0)

        parts = shared(part, self.panels)
        if self.whole:
            total = parts[0]
        elif self.grouped:
            total = np.zeros((self.group[-1] + 1,) * 2, dtype=dtype)
            for (first, last), one in zip(self.panels, parts, strict=True):
                total[self.group[first] : self.group[last - 1] + 1, self.group[first] :] += one
        else:
            total = sum(one.astype(np.float64) for one in parts)
        if self.grouped and features is not None:
            total = features.T @ total @ features
        total = total.astype(np.float64, copy=False)
        return total + total.T

    def _cuts(self, first, last):
        """Where another gate begins among the samples first:last, counted from the first one."""
        inner = self.starts[np.searchsorted(self.starts, first, "right") : np.searchsorted(self.starts, last)]
        return np.r_[0, inner - first]


def mirror(a):
    """Copy the lower triangle of the square array `a` onto its upper one, in blocks to need no second array."""
    step = 256
    for i in range(0, len(a), step):
        j = i + step
        block = a[i:j, i:j]
        block[...] = np.tril(block) + np.tril(block, -1).T
        a[i:j, j:] = a[j:, i:j].T


class KernelLikelihood:
    """Labels t (P,) and noise T/d^2 (P,) of a KernelForm."""

    def __init__(self, form, sigma, temperature):
        self.form, self.sigma, self.temperature = form, sigma, temperature
        scale = sigma * form.lengths
        self.labels, self.noise = form.y / scale, temperature / scale**2
        self.count, self.shift = form.count, float(np.log(scale).sum())

    @property
    def halves(self):
        """Whether single precision takes about half the time."""
        return not self.form.whole

    @property
    def pull(self):
        """y^T y / T, infinite at T = 0."""
        return float(np.sum(self.form.y**2)) / self.temperature if self.temperature > 0 else math.inf

    @cached_property
    def floor(self):
        """A part of y^T (K + T)^-1 y that no K can reduce: labels of inputs with the same gates that aren't linear in x."""
        form, total = self.form, 0.0
        for first, size in zip(form.starts, np.diff(np.r_[form.starts, form.count]), strict=True):
            part = slice(first, first + size)
            x, y = form.lengths[part, None] * form.unit[part], form.y[part]
            total += float(np.sum((y - x @ np.linalg.lstsq(x, y)[0]) ** 2)) if size > 1 else 0.0
        return total / self.temperature

    def at(self, b, dtype=np.float64):
        """The data term at V_L = B B^T, in a precision."""
        return KernelValue(self, b, dtype)


class KernelValue:
    """The data term at one V_L = B B^T, without the constant sum log d, and its derivatives."""

    def __init__(self, likelihood, b, dtype):
        self.likelihood, self.form, self.b, self.dtype = likelihood, likelihood.form, b, np.dtype(dtype)
        k = self.form.kernel(self.form.factored(b.astype(dtype, copy=False)), dtype)
        diagonal = np.einsum("ii->i", k)
        diagonal += likelihood.noise
        variances = diagonal.copy()
        factorize = lapack.dpotrf if self.dtype == np.float64 else lapack.spotrf
        factor, info = factorize(k, lower=1, clean=1, overwrite_a=1)
        if info:
            raise FloatingPointError("k is not positive definite to working precision")
        pivots = np.einsum("ii->i", factor)
        # The part of a sample's variance that the samples before it leave unexplained.
        self.pivot = float(np.min(pivots**2 / variances))
        self.factor = factor
        self.rough_inverse = None  # in single precision, which is enough for the Hessian of one layer
        solved = lapack.dpotrs if self.dtype == np.float64 else lapack.spotrs
        self.weights, _ = solved(factor, likelihood.labels.astype(dtype, copy=False), lower=1)
        self.quadratic = float(likelihood.labels @ self.weights)
        self.entropy = float(np.log(pivots).sum())
        self.magnitude = self.quadratic / 2 + abs(self.entropy)

    @property
    def value(self):
        return self.quadratic / 2 + self.entropy

    @cached_property
    def v_bar(self):
        """dH/dV_L = F^T ((k^-1 - k^-1 t t^T k^-1) o cos) F / 2: (r, r)."""
        return self.slope(self.dtype)

    def slope(self, dtype):
        """The same, in a precision from the inverse on."""
        double = dtype == np.float64
        inverse, _ = (lapack.dpotri if double else lapack.spotri)(self.factor.astype(dtype, copy=False), lower=1)
        form, weights = self.form, self.weights.astype(dtype, copy=False)
        cosines, _ = form.in_precision(dtype)
        if double and form.powers.depth == 1 and not form.whole:
            self.rough_inverse = np.empty(inverse.shape, dtype=np.float32)

        def panel(first, last):
            # On the other side of the diagonal of the inverse are zeros.
            part, size = inverse.T[first:last, first:], last - first
            if self.rough_inverse is not None:
                rough = self.rough_inverse[first:last, first:]
                rough[...] = part
                rough[:, :size] += np.triu(rough[:, :size], 1).T
            diagonal, others = np.einsum("ii->i", part[:, :size]), weights[first:].copy()
            diagonal /= 2
            others[:size] /= 2
            part -= np.outer(weights[first:last], others)
            part *= cosines[first:last, first:]
            return part

        return form.contracted(panel, dtype) / 2

    def solved(self, columns):
        """k^-1 times columns (P, n) in about their precision."""
        if self.rough_inverse is None or columns.dtype == np.float64:
            return lapack.dpotrs(self.factor, columns, lower=1)[0]
        return self.form.times(lambda first, last: self.rough_inverse[first:last, first:], columns)

    @property
    def b_bar(self):
        """dH/dB: (r, n)."""
        return 2 * self.v_bar @ self.b

    @property
    def rough_b_bar(self):
        """The same in single precision."""
        return 2 * self.slope(np.float32) @ self.b

    @property
    def attraction(self):
        """How fast the quadratic term falls with the log of the scale of K: t^T k^-1 (k - T/d^2) k^-1 t."""
        return abs(self.quadratic - float(self.likelihood.noise @ self.weights**2))

    def repulsion(self):
        """How fast log det k grows with the log of the scale of K, from a few random vectors at T > 0."""
        noise = self.likelihood.noise
        if not noise.any():
            return float(self.form.count)
        signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(len(noise), 8))
        random = solve_triangular(self.factor, signs, lower=True, trans="T", check_finite=False)
        return max(float(self.form.count - noise @ np.mean(random**2, axis=1)), 0.0)

    def noise_trace(self):
        """T tr (K + T)^-1."""
        inverse, _ = lapack.dpotri(self.factor, lower=1)
        return float(self.likelihood.noise @ np.diagonal(inverse))

    def curvature(self, rng, dtype=np.float64):
        return KernelCurvature(self, rng, dtype)

    def predict(self, probe, covariance):
        """Mean (n,) and variance (n,) or covariance (n, n) at a `Probe`, in units of its scale."""
        cross = probe.training_kernel(self.form).astype(self.dtype, copy=False)
        mean = cross @ self.weights
        explained = solve_triangular(self.factor, cross.T, lower=True, overwrite_b=True, check_finite=False)
        if covariance:
            return mean, probe.kernel(probe) - explained.T @ explained
        return mean, probe.diagonal() - np.einsum("pt,pt->t", explained, explained)


class KernelCurvature:
    """Products with the Hessian of the data term, with w^T dk k^-1 dk' w for tr(k^-1 dk k^-1 dk').

    w are random vectors of covariance k^-1: an accurate model of the Hessian at the cost of a few passes over k, which may be
    in single precision.
    """

    def __init__(self, value, rng, dtype):
        self.value, self.dtype, count, probes = value, dtype, value.form.count, PROBES
        if count <= 4 * probes:
            # For few samples all unit vectors: the exact trace, and no noise that looks like negative curvature.
            signs, probes = np.eye(count) * math.sqrt(count), count
        else:
            signs = rng.choice([-1.0, 1.0], size=(count, probes))
        random = solve_triangular(value.factor, signs, lower=True, trans="T", overwrite_b=True, check_finite=False)
        vectors = np.column_stack([value.weights, random])
        # Lengths are taken out, since those of vectors with the inverse kernel may be beyond single precision.
        lengths = np.linalg.norm(vectors, axis=0)
        self.vectors = (vectors / np.where(lengths > 0, lengths, 1.0)).astype(dtype)
        self.signs = np.r_[1.0, np.full(probes, -0.5 / probes)] * lengths**2

    def product(self, dv):
        """Change of dH/dV_L under the change dv of V_L."""
        form, vectors, size = self.value.form, self.vectors, float(np.abs(dv).max()) or 1.0
        (cosines, _), change = form.in_precision(self.dtype), form.expanded((dv / size).astype(self.dtype))

        def changed(first, last):
            part = change(first, last)
            part *= cosines[first:last, first:]
            return part

        response = self.value.solved(form.times(changed, vectors)) * self.signs
        scale = float(np.abs(response).max()) or 1.0
        response = (response / scale).astype(self.dtype)
        left, right = np.hstack([vectors, response]), np.hstack([response, vectors])

        def panel(first, last):
            if last == form.count:
                part = vectors[first:] @ response[first:].T
            else:
                part = left[first:last] @ right[first:].T
                part[:, : last - first] /= 2
            part *= cosines[first:last, first:]
            return part

        return size * scale / 2 * form.contracted(panel, self.dtype)


class FeatureForm:
    """Sums over the training set, at sigma = 1 and with unit gates: gram = Phi^T Phi, overlap = Phi^T y, square = y^T y.

    gram (r, N0, r, N0), overlap (r, N0, C); `powers` are the GatePowers, r the side of s_L for one output.
    """

    def __init__(self, powers, dimension):
        self.powers, self.count, self.square = powers, 0, 0.0
        self.rank, self.dimension = powers.sizes[-1] // powers.outputs, dimension
        self.gram = np.zeros((self.rank * dimension,) * 2, order="F")
        self.overlap = np.zeros((self.rank, dimension, powers.outputs))

    def add(self, x, features, y):
        """Add live samples x (p, N0) with features (p, r), both with all lengths in x, and labels y (p, C)."""
        step = max(1, 2**24 // (self.rank * self.dimension))
        for first in range(0, len(x), step):
            part = slice(first, first + step)
            phi = (features[part, :, None] * x[part, None, :]).reshape(-1, self.rank * self.dimension)
            self.gram = blas.dsyrk(1.0, phi.T, beta=1.0, c=self.gram, lower=1, overwrite_c=1)
            self.overlap += (phi.T @ y[part]).reshape(self.overlap.shape)
        self.count += y.size
        self.square += float(np.sum(y**2))

    def finished(self):
        """Itself, once all samples are in."""
        mirror(self.gram)
        self.gram = self.gram.T  # symmetric, and in C order
        return self

    @property
    def side(self):
        """Side of the largest matrices."""
        return self.rank * self.dimension * self.powers.outputs

    def likelihood(self, sigma, temperature):
        """For a product `sigma` of the prior standard deviations of all layers."""
        return FeatureLikelihood(self, sigma, temperature)


class FeatureLikelihood:
    """A FeatureForm at a temperature."""

    halves = False

    def __init__(self, form, sigma, temperature):
        self.form, self.sigma, self.temperature = form, sigma, temperature
        self.count, self.shift = form.count, 0.0

    @property
    def pull(self):
        """y^T y / T."""
        return self.form.square / self.temperature

    @cached_property
    def floor(self):
        """The part of y^T (K + T)^-1 y that no K can reduce: labels that aren't linear in the features."""
        form = self.form
        overlap = form.overlap.reshape(len(form.gram), -1)
        ridge = 1e-12 * float(np.trace(form.gram)) * np.eye(len(form.gram))
        fitted = np.sum(overlap * solve(form.gram + ridge, overlap, assume_a="pos", check_finite=False))
        return max(form.square - float(fitted), 0.0) / self.temperature

    def at(self, b, dtype=np.float64):
        """The data term at V_L = B B^T; small matrices gain nothing from another precision."""
        return FeatureValue(self, b)


class FeatureValue:
    """The data term at one V_L = B B^T and its derivatives. Matrices of side n N0 for B (r C, n)."""

    def __init__(self, likelihood, b):
        self.likelihood, self.form, self.b = likelihood, likelihood.form, b
        form, temperature = self.form, likelihood.temperature
        self.columns = n = b.shape[1]
        # One (r, n) matrix for each output, B_c, since X = Phi B_c for its samples; and X^T Phi (n N0, r, N0).
        self.parts = likelihood.sigma * b.reshape(form.rank, form.powers.outputs, n).transpose(1, 0, 2)
        gram, shape = form.gram.reshape(form.rank, -1), (n * form.dimension, form.rank, form.dimension)
        images = [(part.T @ gram).reshape(shape) for part in self.parts]
        s = sum(np.matmul(part.T, image) for part, image in zip(self.parts, images, strict=True)).reshape(shape[0], -1)
        self.is_square = b.shape[0] == n
        self.images = None if self.is_square else images
        s[np.diag_indices_from(s)] += temperature
        factor, info = lapack.dpotrf(s.T, lower=1, clean=1, overwrite_a=1)
        if info:
            raise FloatingPointError("Phi^T Phi + T is not positive definite to working precision")
        self.factor = factor
        pairs = zip(self.parts, np.moveaxis(form.overlap, 2, 0), strict=True)
        labels = sum(part.T @ overlap for part, overlap in pairs).ravel()
        self.weights, _ = lapack.dpotrs(factor, labels, lower=1)
        self.pivot = 1.0
        self.quadratic = (form.square - float(labels @ self.weights)) / temperature
        pivots = np.einsum("ii->i", factor)
        self.entropy = float(np.log(pivots).sum()) + (form.count - len(factor)) / 2 * math.log(temperature)
        # Rounding of y^T y / T, from which the rest is taken off, is far below that of an ill-conditioned kernel.
        self.magnitude = abs(self.quadratic) / 2 + abs(self.entropy) + 1e-4 * form.square / temperature

    @property
    def value(self):
        return self.quadratic / 2 + self.entropy

    @cached_property
    def inverse(self):
        """S^-1: (n N0, n N0)."""
        inverse, _ = lapack.dpotri(self.factor, lower=1)
        mirror(inverse)
        return inverse.T  # symmetric, and in C order

    @cached_property
    def _b_inverse(self):
        return np.linalg.inv(self.b)

    @cached_property
    def force(self):
        """2 B^T (dH/dV_L) B = sum over input dimensions of 1 - T S^-1 - w w^T: (n, n), without cancellation at small T."""
        n, dimension = self.columns, self.form.dimension
        blocks = self.inverse.reshape(n, dimension, n, dimension)
        weights = self.weights.reshape(n, dimension)
        trace = np.einsum("ajbj->ab", blocks)
        return dimension * np.eye(n) - self.likelihood.temperature * trace - weights @ weights.T

    @property
    def v_bar(self):
        """dH/dV_L: (r, r), for a square B."""
        return self._b_inverse.T @ self.force @ self._b_inverse / 2

    @property
    def b_bar(self):
        """dH/dB: (r, n). A square B has it from `force`; for fewer columns small differences are divided by T."""
        if self.is_square:
            return self._b_inverse.T @ self.force
        form, parts = self.form, []
        inverse = self.inverse.reshape(-1, self.columns, form.dimension)
        weights = self.weights.reshape(self.columns, form.dimension)
        for image, overlap in zip(self.images, np.moveaxis(form.overlap, 2, 0), strict=True):
            residual = (overlap - np.tensordot(self.weights, image, 1)) / self.likelihood.temperature
            parts.append(np.tensordot(image, inverse, ((0, 2), (0, 2))) - residual @ weights.T)
        return self.likelihood.sigma * np.stack(parts, axis=1).reshape(self.b.shape)

    @property
    def attraction(self):
        """How fast the quadratic term falls with the log of the scale of K."""
        return float(self.weights @ self.weights)

    def repulsion(self):
        """How fast log det grows with the log of the scale of K."""
        return len(self.factor) - self.likelihood.temperature * float(np.trace(self.inverse))

    def noise_trace(self):
        """T tr (K + T)^-1."""
        return self.form.count - self.repulsion()

    def curvature(self, rng, dtype=np.float64):
        return FeatureCurvature(self)

    def predict(self, probe, covariance):
        """Mean (n,) and variance (n,) or covariance (n, n) at a `Probe`, in units of its scale.

        What the network may do with gates outside the training span, which has no features here, is its prior.
        """
        temperature = self.likelihood.temperature
        rows = probe.rows[probe.group]
        features = (rows[:, :, None] * probe.x[:, None, :]).reshape(len(rows), -1)
        left = solve_triangular(self.factor, features.T, lower=True, check_finite=False)
        mean = features @ self.weights
        if covariance:
            return mean, temperature * left.T @ left + probe.outside()
        return mean, temperature * np.einsum("pt,pt->t", left, left) + probe.outside_diagonal()


class FeatureCurvature:
    """Products with the Hessian of the data term, exact: -1/2 tr(Y E Y E') + w^T E Y E' w with Y = 1 - T S^-1, dV = B E B^T."""

    def __init__(self, value):
        self.value = value
        self.y = -value.likelihood.temperature * value.inverse
        self.y[np.diag_indices_from(self.y)] += 1

    def product(self, dv):
        """Change of dH/dV_L under the change dv of V_L."""
        value = self.value
        n, dimension = value.columns, value.form.dimension
        inverse = value._b_inverse
        change = inverse @ dv @ inverse.T
        y, weights = self.y.reshape(n, dimension, n, dimension), value.weights.reshape(n, dimension)
        moved = np.tensordot(change, y, (1, 0))  # E Y
        trace = np.einsum("ajci,cibj->ab", y, moved, optimize=True)
        pushed = (self.y @ (change @ weights).ravel()).reshape(n, dimension)
        result = -trace / 2 + pushed @ weights.T
        return inverse.T @ ((result + result.T) / 2) @ inverse
