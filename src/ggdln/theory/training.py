"""A training set made ready for the theory: its live part, the features of its gates, and the form of the data term.

Inputs that are zero or have no active gate are dead, f = 0 for all weights: they are left out and counted. Of the two forms
of `likelihood` the cheaper one is taken. Samples may also come in blocks, of which only sums are kept.
"""

import math
import warnings
from functools import cached_property

import numpy as np
from scipy.linalg.lapack import dpstrf

from ggdln.core import checks
from ggdln.core.blas import threads_for
from ggdln.core.errors import InputError, RankError
from ggdln.core.memory import available_bytes
from ggdln.theory.likelihood import FeatureForm, KernelForm
from ggdln.theory.regression import RANK_TOLERANCE
from ggdln.theory.symmetric import Coordinates, GatePowers

EVALUATIONS, OPERATIONS_PER_SECOND = 15, 1e10
"""Factorizations that a solve usually takes, and how fast they are, for predictions."""
LONG_SECONDS = 300.0
BYTES_PER_SAMPLE_PAIR, BYTES_PER_FEATURE_PAIR = 44, 60
"""Five matrices of the side of the samples are held at once; of that of the features, between seven and seven and a half."""


class Training:
    """A training set for a network of this depth, from `of` or `of_blocks`.

    shape: N0 and M. outputs: C, None for labels without a second dimension. dead: number of dead inputs, and `dead_square` the
    sum of their squared labels. mean_square: of all labels. count: live samples, one for each input and output. powers:
    `GatePowers`. overlaps (M, M): second moment of the unit gates.
    """

    def __init__(self, depth, shape, outputs):
        self.depth, self.shape, self.outputs, self.sides = checks.integer("depth", depth, 1), shape, outputs, outputs or 1
        self.dead, self.dead_square, self.count = 0, 0.0, 0
        self.overlaps = np.zeros((shape[1], shape[1]))
        self._labels, self._square = 0, 0.0

    @classmethod
    def of(cls, x, gates, y, *, depth, basis="auto", form="auto"):
        """From inputs x (P, N0), gates (P, M) and labels y (P,) or (P, C), or from blocks of such as x alone."""
        if gates is None and y is None:
            return BlockTraining.read(x, depth, basis)
        x, gates = checks.inputs(x, gates)
        y = checks.labels("y", y, len(x))
        with threads_for(len(x)):
            return ArrayTraining(x, gates, y, depth, basis, form)

    def _take(self, x, gates, y):
        """Count the samples of a set: its live ones, labels (p, C), with the distinct gates and which each input has."""
        live = (gates != 0).any(axis=1) & (x != 0).any(axis=1)
        self.dead += int(len(y) - live.sum())
        self.dead_square += float(np.sum(y[~live] ** 2))
        self.count += int(live.sum()) * self.sides
        self._labels, self._square = self._labels + y.size, self._square + float(np.sum(y**2))
        distinct, group = np.unique(gates[live], axis=0, return_inverse=True)
        unit = distinct / np.linalg.norm(distinct, axis=1)[:, None]
        self.overlaps += unit.T @ unit
        return x[live], gates[live], y[live].reshape(-1, self.sides), distinct, group.ravel()

    @property
    def mean_square(self):
        return self._square / self._labels

    @property
    def features(self):
        """Number D = r_L N0 of features."""
        return self.powers.sizes[-1] // self.sides * self.shape[0]

    def likelihood(self, sigma, temperature):
        """The data term for the product `sigma` of the prior standard deviations of all layers."""
        return self.form(temperature).likelihood(sigma, temperature)

    def form(self, temperature):
        """The form of the data term for solves at this temperature."""
        raise NotImplementedError

    def rank_error(self, sigma, temperature):
        """What to say where the kernel can't be factorized at this temperature."""
        raise NotImplementedError


class ArrayTraining(Training):
    """A training set that is held in memory."""

    def __init__(self, x, gates, y, depth, basis, form):
        super().__init__(depth, (x.shape[1], gates.shape[1]), None if y.ndim == 1 else y.shape[1])
        self.basis, self.wanted = basis, form
        self.x, self.gates, self.y, distinct, self.group = self._take(x, gates, y)
        if not self.count:
            raise InputError(f"gates: none of the {len(x)} training inputs has an active gate and a non-zero input")
        kind = basis_kind(basis, self.gates, self.depth)
        self.powers = GatePowers(distinct, self.depth, kind, {"auto": None, "span": 0}.get(basis, self.depth), self.sides)

    def form(self, temperature):
        if self.wanted == "features" and not temperature > 0:
            raise InputError(f"temperature: the form of features needs one above 0, got {temperature}")
        rank, inputs = self.features // self.shape[0], self.count // self.sides
        pays = temperature > 0 and _operations(self.features, rank) < _operations(inputs, rank)
        return self._features if self.wanted == "features" or (self.wanted == "auto" and pays) else self._kernel

    @cached_property
    def _kernel(self):
        """The `KernelForm`: samples sorted by gates and output."""
        require_memory(self.count, BYTES_PER_SAMPLE_PAIR, f"P = {self.count} samples (and {self.features} features)")
        group = (self.group[:, None] * self.sides + np.arange(self.sides)).ravel()
        order = np.argsort(group, kind="stable")
        row = order // self.sides
        lengths = prior_lengths(self.x, self.gates, self.depth)
        with threads_for(self.count):
            return KernelForm(self.x[row], self.powers, group[order], self.y.ravel()[order], lengths[row])

    @cached_property
    def _features(self):
        """The `FeatureForm`."""
        told = f"{self.features} features (and P = {self.count} samples)"
        require_memory(self.features * self.sides, BYTES_PER_FEATURE_PAIR, told)
        form, top = FeatureForm(self.powers, self.shape[0]), self.powers.top
        rows = np.eye(len(self.powers.unit)) if top is None else top[:: self.sides, :: self.sides]
        form.add(along(self.x, self.gates, self.depth), rows[self.group], self.y)
        return form.finished()

    def rank_error(self, sigma, temperature):
        form, g = self._kernel, np.eye(self.powers.sizes[0]) if self.powers.first is None else self.powers.first
        for step in self.powers.steps:
            g = step.forward(g)
        kernel = form.kernel(form.expanded(g))
        rank = dpstrf(kernel, lower=1, tol=RANK_TOLERANCE, overwrite_a=1)[2]
        start = 1e-6 * sigma**2 * float(np.mean(form.lengths**2))
        return RankError(
            f"temperature: the kernel of the {form.count} live training samples has rank {rank}, not full rank; that needs "
            f"inputs that differ, no more of them than the capacity, {self.features * self.sides}. It must be well above 0, "
            f"for instance {start:.0e}, got {temperature}"
        )


class BlockTraining(Training):
    """A training set of which only sums over samples are kept."""

    @classmethod
    def read(cls, blocks, depth, basis):
        """From an iterable of blocks (x, gates, y), read once."""
        training = None
        for number, block in enumerate(_iterator(blocks)):
            x, gates, y = _checked_block(number, block)
            if training is None:
                training = cls(x, gates, y, depth, basis)
            training._add(number, x, gates, y)
        if training is None or not training.count:
            raise InputError("x: expected blocks (x, gates, y) with an active gate and a non-zero input, got none")
        training._form.finished()
        return training

    @classmethod
    def of_sums(cls, shape, outputs, depth, basis, sums):
        """From sums over samples as the form of another training set has them: gram, overlap, count and square."""
        y = np.zeros((0,) if outputs is None else (0, outputs))
        training = cls(np.zeros((0, shape[0])), np.zeros((0, shape[1])), y, depth, basis)
        for name, value in sums.items():
            setattr(training._form, name, value)
        training.count = training._form.count
        return training

    def __init__(self, x, gates, y, depth, basis):
        super().__init__(depth, (x.shape[1], gates.shape[1]), None if y.ndim == 1 else y.shape[1])
        if basis == "span":
            raise InputError("basis: 'span' needs all samples at once; accepted for blocks: auto, monomial, subset")
        # Whether all gates are 0 or 1 is not known before the last block.
        self.basis = "monomial" if basis == "auto" else basis
        kind, count = basis_kind(self.basis, gates, self.depth), self.shape[1]
        size = Coordinates.count(kind, count, self.depth) * self.shape[0]
        require_memory(size * self.sides, BYTES_PER_FEATURE_PAIR, f"{size} features of {count} gates at depth {self.depth}")
        self.powers = GatePowers(np.zeros((0, count)), self.depth, kind, self.depth, self.sides)
        self._form = FeatureForm(self.powers, self.shape[0])

    def _add(self, number, x, gates, y):
        if (x.shape[1], gates.shape[1], None if y.ndim == 1 else y.shape[1]) != (*self.shape, self.outputs):
            raise InputError(f"block {number}: shapes {x.shape}, {gates.shape} and {y.shape} do not fit those before it")
        basis_kind(self.basis, gates, self.depth)
        x, gates, y, distinct, group = self._take(x, gates, y)
        if len(x):
            features = self.powers.coordinates[-1].features(distinct, np.linalg.norm(distinct, axis=1))
            self._form.add(along(x, gates, self.depth), features[group], y)

    def form(self, temperature):
        if not temperature > 0:
            raise InputError(f"temperature: samples in blocks need one above 0, got {temperature}")
        return self._form

    def rank_error(self, sigma, temperature):
        return RankError(f"temperature: the features are dependent to working precision; it must be larger, got {temperature}")


def _iterator(blocks):
    if isinstance(blocks, np.ndarray) or not hasattr(blocks, "__iter__"):
        raise InputError("gates, y: expected both, or x as an iterable of blocks (x, gates, y)")
    return iter(blocks)


def _checked_block(number, block):
    try:
        x, gates, y = block
    except (TypeError, ValueError):
        raise InputError(f"block {number}: expected (x, gates, y), got {type(block).__name__}") from None
    x, gates = checks.inputs(x, gates, prefix=f"block {number}: ")
    return x, gates, checks.labels(f"block {number}: y", y, len(x))


def _operations(side, rank):
    return side**3 + 8 * rank * side**2


def basis_kind(basis, gates, depth):
    """The kind of explicit coordinates for these gates."""
    binary = bool(np.isin(gates, (0.0, 1.0)).all())
    if basis == "subset" and not binary:
        raise InputError("basis: 'subset' needs gates that are 0 or 1")
    return "subset" if basis == "subset" or (basis == "auto" and binary and depth >= 3) else "monomial"


def require_memory(side, each, told):
    """Refuse matrices of a side, `each` bytes per entry in all, that can't fit into memory; warn of those that take long."""
    needed, seconds = each * side**2, EVALUATIONS * side**3 / OPERATIONS_PER_SECOND
    if needed > available_bytes():
        raise InputError(
            f"x: {told} need matrices of side {side}, {needed / 1e9:.2g} GB in all; there are "
            f"{available_bytes() / 1e9:.2g} GB. Accepted: fewer samples, or at T > 0 fewer features"
        )
    if seconds > LONG_SECONDS:
        text = f"{told}: matrices of side {side}, about {seconds / 60:.0f} minutes on one core, {needed / 1e9:.1f} GB"
        warnings.warn(text, RuntimeWarning, stacklevel=6)


def prior_lengths(x, gates, depth):
    """sqrt K_GP(x, x) at sigma = 1: (|g|^2/M)^(L/2) |x| / sqrt(N0)."""
    overlap = np.linalg.norm(gates, axis=1) / math.sqrt(gates.shape[1])
    return overlap**depth * np.linalg.norm(x, axis=1) / math.sqrt(x.shape[1])


def along(x, gates, depth):
    """Inputs with the lengths of `prior_lengths`: (P, N0)."""
    return (np.linalg.norm(gates, axis=1) ** depth / math.sqrt(gates.shape[1] ** depth * x.shape[1]))[:, None] * x
