"""Symmetric powers of gates: the small space in which the order parameters of every layer live.

The gates are shared by all layers, so layer l only sees the features s_l(g) with s_l(g).s_l(g') = (g.g')^l. They are
held in one of three exact forms, the smaller of two for each layer:

monomial    one coordinate per monomial of degree l, scaled by the square root of its multinomial coefficient
subset      0/1 gates of depth >= 3: monomials with the same support S coincide, and the squared scales add up to the
            number of surjections from l onto |S|; one coordinate per subset of at most l gates
span        no more coordinates than distinct training gates: a training feature s_l(p) is the p-th basis vector. A new
            gate vector has a part in their span, and a part outside where the order parameter keeps its prior

Going up a layer is linear in the order parameter: G_{l+1}, the prior mean of V_{l+1} up to sigma^2, is
S^T (I (x) V_l) S with g (x) s_l(g) = S s_{l+1}(g); in the span form it is (g.g') o (s_l^T V_l s_l').

A network with C outputs is one with a single output on samples (x, c) whose first-level gates are g(x) (x) e_c; later levels
multiply by g(x) alone. So all features are s_l(x) (x) e_c, with index i C + c, and every matrix here has C times the side.
"""

from itertools import combinations, pairwise
from math import comb

import numpy as np
from scipy import sparse
from scipy.linalg import lapack, solve_triangular

# Squared distance of a unit feature from the span of others below which it counts as inside it.
SPAN_TOLERANCE = 1e-13


def monomials(count, degree):
    """Exponents of all monomials of this degree in `count` variables: (C(count + degree - 1, degree), count)."""
    bars = np.array(list(combinations(range(count + degree - 1), count - 1)), dtype=int)
    bars = bars.reshape(comb(count + degree - 1, degree), count - 1)
    edges = np.full((len(bars), 1), -1), np.full((len(bars), 1), count + degree - 1)
    # Reversed, so that degree 1 lists the gates in their own order.
    return (np.diff(np.hstack([edges[0], bars, edges[1]]), axis=1) - 1)[::-1]


def subsets(count, degree):
    """Indicators of the non-empty subsets of at most `degree` of `count` gates: (sum_k C(count, k), count)."""
    rows = [c for size in range(1, min(count, degree) + 1) for c in combinations(range(count), size)]
    indicators = np.zeros((len(rows), count), dtype=int)
    for row, members in enumerate(rows):
        indicators[row, list(members)] = 1
    return indicators


def surjections(degree, size):
    """Number of surjections from a set of `degree` elements onto one of `size`."""
    return sum((-1) ** k * comb(size, k) * (size - k) ** degree for k in range(size + 1))


class Coordinates:
    """The features s_l in explicit coordinates (`kind` monomial or subset) for gates g (., M)."""

    def __init__(self, kind, count, degree):
        self.kind, self.degree = kind, degree
        self.exponents = (monomials if kind == "monomial" else subsets)(count, degree)
        self.size = len(self.exponents)
        # Squared scales are integers that may exceed float64's range of exact integers, but not its range.
        if kind == "monomial":
            powers = [_multinomial(row) for row in self.exponents]
        else:
            by_size = {k: surjections(degree, k) for k in range(1, min(count, degree) + 1)}
            powers = [by_size[k] for k in self.exponents.sum(axis=1)]
        self.scale = np.sqrt(np.array(powers, dtype=float))
        self.index = {tuple(row): i for i, row in enumerate(self.exponents)}

    @staticmethod
    def count(kind, count, degree):
        """Number of coordinates, without building them."""
        if kind == "monomial":
            return comb(count + degree - 1, degree)
        return sum(comb(count, k) for k in range(1, min(count, degree) + 1))

    def features(self, gates, norm):
        """s_l(g / norm) for gates g (P, M) and norm (P,): (P, r_l)."""
        result = np.ones((len(gates), self.size))
        unit = gates / norm[:, None]
        for m in range(gates.shape[1]):
            power = unit[:, m, None] ** np.arange(self.exponents[:, m].max() + 1)
            result *= power[:, self.exponents[:, m]]
        if self.kind == "subset":
            # A 0/1 product over S stands for monomials of full degree l, so the norm enters l times, not |S| times.
            result *= norm[:, None] ** (self.exponents.sum(axis=1) - self.degree)
        return result * self.scale

    def powers_of(self, directions):
        """The coordinates of (a.g)^l, as a function of g, for directions a (k, M): (r_l, k)."""
        if self.kind == "monomial":
            return self.features(directions, np.ones(len(directions))).T
        # Products of 0/1 gates depend on their set S only; coefficients of the sets, factor by factor.
        columns = np.zeros((self.size, len(directions)))
        for column, direction in zip(columns.T, directions, strict=True):
            found = {(0,) * len(direction): 1.0}
            for _ in range(self.degree):
                longer = {}
                for members, value in found.items():
                    for m in np.flatnonzero(direction):
                        key = (*members[:m], 1, *members[m + 1 :])
                        longer[key] = longer.get(key, 0.0) + value * direction[m]
                found = longer
            for members, value in found.items():
                column[self.index[members]] = value
        return columns / self.scale[:, None]

    def multiplication(self, above, outputs=1):
        """S with g (x) s_l(g) = S s_{l+1}(g), as a sparse (M, r_l, r_{l+1}) operator: a `CoordinateStep`."""
        count = self.exponents.shape[1]
        m_index, lower, upper, value = [], [], [], []
        for row, exponent in enumerate(self.exponents):
            for m in range(count):
                raised = exponent.copy()
                raised[m] = 1 if self.kind == "subset" else raised[m] + 1
                target = above.index[tuple(raised)]
                m_index.append(m)
                lower.append(row)
                upper.append(target)
                value.append(self.scale[row] / above.scale[target])
        m_index, lower, upper, value = (np.repeat(np.array(a), outputs) for a in (m_index, lower, upper, value))
        output = np.tile(np.arange(outputs), len(m_index) // outputs)
        entries = m_index, lower * outputs + output, upper * outputs + output, value
        return CoordinateStep(count, self.size * outputs, above.size * outputs, *entries)


class CoordinateStep:
    """G = sum_m S_m^T V S_m between explicit coordinates, and its adjoint."""

    def __init__(self, count, below, above, m, lower, upper, value):
        self.count, self.below, self.above = count, below, above
        self.tall = sparse.csr_matrix((value, (m * below + lower, upper)), shape=(count * below, above))
        self.wide = sparse.csr_matrix((value, (m * above + upper, lower)), shape=(count * above, below))
        self.tall_t, self.wide_t = self.tall.T.tocsr(), self.wide.T.tocsr()

    def forward(self, v):
        """G_{l+1} (r_{l+1}, r_{l+1}) from V_l (r_l, r_l)."""
        product = (self.wide @ v).reshape(self.count, self.above, self.below)
        return self.tall_t @ product.transpose(0, 2, 1).reshape(-1, self.above)

    def adjoint(self, g_bar):
        """dH/dV_l from dH/dG_{l+1}."""
        product = (self.tall @ g_bar).reshape(self.count, self.below, self.above)
        return self.wide_t @ product.transpose(0, 2, 1).reshape(-1, self.below)

    def factor(self, b):
        """A with G_{l+1} = A A^T from B with V_l = B B^T (r_l, n), which may have few columns: (r_{l+1}, M n)."""
        return (self.wide @ b).reshape(self.count, self.above, -1).transpose(1, 0, 2).reshape(self.above, -1)

    def factor_adjoint(self, a_bar):
        """dH/dB from dH/dA."""
        stacked = a_bar.reshape(self.above, self.count, -1).transpose(1, 0, 2)
        return self.wide_t @ stacked.reshape(self.count * self.above, -1)


class SpanStep:
    """G = (g.g') o (F V F^T) at the spanning training gates, F (r_{l+1}, r_l) their features below; F None is I.

    gates (r_{l+1}, M): those gates, of unit length.
    """

    def __init__(self, gates, overlap, features):
        self.gates, self.overlap, self.features = gates, overlap, features

    def forward(self, v):
        """G_{l+1} (r_{l+1}, r_{l+1}) from V_l (r_l, r_l)."""
        return self.overlap * (v if self.features is None else self.features @ v @ self.features.T)

    def adjoint(self, g_bar):
        """dH/dV_l from dH/dG_{l+1}."""
        weighted = self.overlap * g_bar
        return weighted if self.features is None else self.features.T @ weighted @ self.features

    def factor(self, b):
        """A with G_{l+1} = A A^T from B with V_l = B B^T (r_l, n), which may have few columns: (r_{l+1}, M n)."""
        rows = b if self.features is None else self.features @ b
        return (self.gates[:, :, None] * rows[:, None, :]).reshape(len(rows), -1)

    def factor_adjoint(self, a_bar):
        """dH/dB from dH/dA."""
        rows = np.einsum("pm,pmj->pj", self.gates, a_bar.reshape(*self.gates.shape, -1))
        return rows if self.features is None else self.features.T @ rows


def _multinomial(exponents):
    result, total = 1, 0
    for e in exponents:
        total += int(e)
        result *= comb(total, int(e))
    return result


def spanning_points(overlap, degree):
    """Training gates whose features s_l span those of all, and all features in their terms.

    overlap: cosines of the D distinct gates. Returns indices (r,) and F (D, r) with s_l(a) = sum_p F[a, p] s_l(p);
    F is None if all D are needed.
    """
    gram = np.asfortranarray(overlap**degree)
    factor, pivots, rank, _ = lapack.dpstrf(gram, lower=1, tol=SPAN_TOLERANCE)
    if rank == len(overlap):
        return np.arange(rank), None
    order = pivots - 1
    factor = np.tril(factor)[:, :rank]
    features = np.empty((len(overlap), rank))
    features[order] = solve_triangular(factor[:rank], factor.T, lower=True, trans="T").T
    points = order[:rank]
    features[points] = np.eye(rank)
    return points, features


class GatePowers:
    """The chain of feature spaces of layers 1 ... L over the distinct training gates, for a number of outputs.

    gates: (D, M), the distinct ones of the live training gates. The first `explicit` layers are held in coordinates of
    this `kind`, by default as many as have fewer coordinates than there are distinct gates; the others as spans.
    Attributes: `kinds` and `sizes` of the layers, `first` (G_1, or None for the identity), `steps` between layers,
    `points` (the spanning gates of each layer in the span form) and `top`, the features of the D gates in layer L
    (D, r_L), or None if they are the basis itself. Features are those of unit gates g/|g|; lengths are kept outside.
    """

    def __init__(self, gates, depth, kind, explicit=None, outputs=1):
        self.depth, self.kind, self.outputs = depth, kind, outputs
        self.norms = np.linalg.norm(gates, axis=1)
        self.gates = gates
        self.unit = gates / self.norms[:, None]
        distinct, count = gates.shape
        if explicit is None:
            explicit = 0
            # Layer 1 stays in the gate basis on a tie; above it the span form is the cheaper one.
            while explicit < depth and Coordinates.count(kind, count, explicit + 1) < distinct + (explicit == 0):
                explicit += 1
        self.coordinates = [Coordinates(kind, count, level) for level in range(1, explicit + 1)]
        self.steps = [low.multiplication(high, outputs) for low, high in pairwise(self.coordinates)]
        self.sizes = [c.size * outputs for c in self.coordinates]
        self.kinds = [kind if level > 0 else "gates" for level in range(explicit)]
        self.points = [None] * explicit
        self.first = None
        features = self.coordinates[-1].features(gates, self.norms) if explicit else None
        if explicit < depth:
            features = self._add_spans(explicit, features)
        self.top = None if features is None else self.each(features)

    def _add_spans(self, explicit, features):
        """Hold the layers above `explicit` as spans; the features of all gates in the last one."""
        overlap = self.unit @ self.unit.T
        np.fill_diagonal(overlap, 1.0)
        for level in range(explicit + 1, self.depth + 1):
            if self.points and self.points[-1] is not None and len(self.points[-1]) == len(overlap):
                points, above = self.points[-1], None
            else:
                points, above = spanning_points(overlap, level)
            local = overlap[np.ix_(points, points)]
            if level == 1:
                self.first = self.each(local)
            else:
                gates = np.repeat(self.unit[points], self.outputs, axis=0)
                below = self.each(features[points]) if features is not None else None
                self.steps.append(SpanStep(gates, self.all(local), below))
            self.points.append(points)
            self.sizes.append(len(points) * self.outputs)
            self.kinds.append("span")
            features = above
        return features

    def each(self, matrix):
        """A matrix that acts on every output alike: its Kronecker product with the identity of C outputs."""
        return matrix if self.outputs == 1 else np.kron(matrix, np.eye(self.outputs))

    def all(self, matrix):
        """A matrix that is the same between any two outputs: its Kronecker product with ones."""
        return matrix if self.outputs == 1 else np.kron(matrix, np.ones((self.outputs, self.outputs)))

    def powers_of(self, directions):
        """s_l(a) of every layer in its basis, for gate directions a (k, M), for all outputs: (r_l, k) each.

        They stand for features (a.g)^l: those of a network behind a single gate a.g.
        """
        found = []
        for level in range(self.depth):
            if level >= len(self.coordinates):
                columns = (self.unit[self.points[level]] @ directions.T) ** (level + 1)
            else:
                columns = self.coordinates[level].powers_of(directions)
            found.append(self.each(columns))
        return found
