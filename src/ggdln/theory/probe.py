"""New inputs in the terms of a training set: the kernel between them, and with the training inputs.

At a saddle point the order parameters outside the span of the training gates are their prior means. In a draw from the
posterior they are draws from the prior, given those inside.
"""

import math
from functools import cached_property

import numpy as np
from scipy.linalg import cho_solve, solve_triangular

from ggdln.core.blas import outer
from ggdln.theory.training import prior_lengths

MOST_FEATURES = 64
"""Up to so many features it is faster to multiply those of all samples than to copy entries for samples with the same gates."""


class NewInputs:
    """New live inputs, as far as they don't depend on order parameters: made once for many of these.

    With C outputs, a sample is an input with an output, and P_t counts all of them. unit (D, M): distinct gates, and group
    (P_t,): which of them, and which output, each sample has. coordinates: features of these in the layers that have explicit
    ones. scale (P_t,): sqrt of the diagonal of K_GP at sigma = 1, in units of which kernels are.
    """

    def __init__(self, training, x, gates):
        self.training, sides = training, training.sides
        self.scale = np.repeat(prior_lengths(x, gates, training.depth), sides)
        self.x = np.repeat(x / np.linalg.norm(x, axis=1)[:, None], sides, axis=0)
        distinct, group = np.unique(gates, axis=0, return_inverse=True)
        self.group = (group.reshape(-1, 1) * sides + np.arange(sides)).ravel()
        norms = np.linalg.norm(distinct, axis=1)
        self.unit = distinct / norms[:, None]
        powers = training.powers
        self.coordinates = [powers.each(c.features(distinct, norms)) for c in powers.coordinates]
        self._form = None

    def cosines(self, form):
        """Cosines of these inputs with the training inputs of a `KernelForm`: (P_t, P)."""
        if self._form is not form:
            self._form, self._cosines = form, outer(self.x, form.unit)
        return self._cosines


class Probe:
    """New live inputs for given order parameters: their features in every layer, in the terms of the training set.

    features[l] (D, r_l) of the D distinct gates, and outputs, are exact coordinates, or in the span form the part in the span
    of the training gates, G_l^-1 G_l(., new); outside it V_l is its prior mean. Other attributes are those of the `NewInputs`.
    """

    def __init__(self, inputs, chain):
        self.inputs, self.powers, self.chain = inputs, inputs.training.powers, chain
        self.x, self.unit, self.group, self.scale = inputs.x, inputs.unit, inputs.group, inputs.scale
        self.features = list(inputs.coordinates)
        self._add_spans()

    def _add_spans(self):
        """Features of the new gates in the layers in the span form."""
        powers, chain = self.powers, self.chain
        for level in range(len(self.features), powers.depth):
            overlap = powers.unit[powers.points[level]] @ self.unit.T
            if level == 0:
                cross = powers.each(overlap)
            else:
                step = powers.steps[level - 1]
                below = chain.v[level - 1] @ self.features[-1].T
                cross = powers.all(overlap) * (below if step.features is None else step.features @ below)
            self.features.append(cho_solve((chain.c[level], True), cross, check_finite=False).T)

    @cached_property
    def rows(self):
        """Features in the terms of B_L, s_L^T B_L, as far as they are in the span of those of the training set: (D, n)."""
        return self.features[-1] @ self.chain.b[-1]

    def training_kernel(self, form):
        """k between these inputs and the training set of a `KernelForm`: (P_t, P)."""
        b = self.chain.b[-1]
        trained = b if self.powers.top is None else self.powers.top @ b
        if b.shape[1] <= MOST_FEATURES:
            cross = outer(self.rows[self.group], trained[form.group])
        else:
            cross = outer(self.rows, trained)[np.ix_(self.group, form.group)]
        cross *= self.inputs.cosines(form)
        return cross

    def kernel(self, other):
        """k between these and other new inputs."""
        overlap = self.powers.all(self.unit @ other.unit.T)
        begin = self.powers.each(np.ones((len(self.unit), len(other.unit))))
        gate = self._renormalized(other, begin, overlap, lambda a, v, b: a @ v @ b.T)
        return self._between(gate, other)

    def diagonal(self):
        """k(x, x) of the new inputs: (P_t,)."""
        return self._renormalized(self, 1.0, 1.0, _diagonal)[self.group]

    def outside(self):
        """The part of k between these inputs that comes from gates outside the training span."""
        if len(self.powers.coordinates) == self.powers.depth:
            return 0.0
        return self.kernel(self) - self._between(self.rows @ self.rows.T, self)

    def outside_diagonal(self):
        if len(self.powers.coordinates) == self.powers.depth:
            return 0.0
        return self.diagonal() - np.einsum("tn,tn->t", self.rows, self.rows)[self.group]

    def _between(self, gate, other):
        cross = gate[np.ix_(self.group, other.group)]
        cross *= outer(self.x, other.x)
        return cross

    def _renormalized(self, other, gate, overlap, form):
        """s_L^T V_L s_L' with the prior mean outside the training span, `form` contracting features with a matrix.

        gate: overlaps of no gates at all, 1 between equal outputs; overlap: those of the gates.
        """
        explicit = len(self.powers.coordinates)
        if explicit:
            gate = form(self.features[explicit - 1], self.chain.v[explicit - 1], other.features[explicit - 1])
        for level in range(explicit, self.powers.depth):
            renormalized = self.chain.v[level] - self.chain.g[level]
            gate = overlap * gate + form(self.features[level], renormalized, other.features[level])
        return gate


def _diagonal(a, v, b):
    return np.einsum("ti,ti->t", a @ v, b)


class DrawnProbe(Probe):
    """New live inputs for a draw from the posterior, whose order parameters outside the training span are drawn with `rng`.

    outer (D, k): further columns of s_L^T B_L, which the training inputs don't have.
    """

    def __init__(self, inputs, chain, widths, rng):
        self.widths, self.rng = widths, rng
        super().__init__(inputs, chain)

    def _add_spans(self):
        """Rows of the new gates in the terms of B_l of every layer in the span form; see `outer`."""
        powers, chain, explicit = self.powers, self.chain, len(self.powers.coordinates)
        overlap, sides = powers.all(self.unit @ self.unit.T), powers.outputs
        rows = self.features[-1] @ chain.b[explicit - 1] if explicit else None
        for level in range(explicit, powers.depth):
            b, z, points = chain.b[level], chain.z[level], powers.unit[powers.points[level]]
            if chain.is_wide(level):
                gates = np.repeat(self.unit, sides, axis=0)
                rows = (gates[:, :, None] * rows[:, None, :]).reshape(len(rows), -1) @ z
                continue
            if level == 0:
                cross, own = powers.each(self.unit @ points.T), powers.each(self.unit @ self.unit.T)
            else:
                step, below = powers.steps[level - 1], chain.b[level - 1]
                below = below if step.features is None else step.features @ below
                cross = powers.all(self.unit @ points.T) * (rows[:, : below.shape[1]] @ below.T)
                own = overlap * (rows @ rows.T)
            inner = solve_triangular(chain.c[level], cross.T, lower=True, check_finite=False).T
            width, columns = self.widths[level], b.shape[1]
            noise = _root(own - inner @ inner.T)
            drawn = self.rng.standard_normal((noise.shape[1], width)) / math.sqrt(width)
            rows = np.hstack([inner @ z + noise @ drawn[:, :columns], _narrowed(noise @ drawn[:, columns:])])
        self._all_rows = rows

    @cached_property
    def rows(self):
        return self._all_rows[:, : self.chain.b[-1].shape[1]]

    def kernel(self, other):
        if other is not self:
            raise NotImplementedError("a draw outside the training span is one for all inputs at once")
        return self._between(self._all_rows @ self._all_rows.T, self)

    def diagonal(self):
        return np.einsum("tn,tn->t", self._all_rows, self._all_rows)[self.group]


def _root(matrix):
    """A factor (D, k) of a positive semidefinite matrix, up to rounding."""
    values, vectors = np.linalg.eigh(matrix)
    kept = values > 1e-12 * max(1.0, values[-1])
    return vectors[:, kept] * np.sqrt(values[kept])


def _narrowed(rows):
    """Rows with the same products and no more columns than rows."""
    return rows if rows.shape[1] <= len(rows) else np.linalg.qr(rows.T, mode="r").T
