"""Networks as functions of their weights, many weight vectors at once, with their tangent map at hand.

A network holds its inputs. Its weights are one flat row per run, (R, D), so that an integrator or a sampler never needs
to know the layers. With C outputs, which share all layers but the readout, f is one row over the P C pairs of an input and an
output. `linearize` gives f (R, P C), the tangent map J v (`jvp`), its transpose J^T u (`vjp`) and the tangent kernel
Theta = J J^T (`kernel`), whose Hadamard form costs products of (P C, N) matrices instead of (P C, D) ones.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import ClassVar

import torch

from ggdln.networks import pairs
from ggdln.networks.data import training_floor
from ggdln.networks.settings import Network, products_pay


@dataclass(frozen=True, eq=False)
class DirectInputs:
    """First-layer weights W_1 (N_1, N0) as they are, on inputs x (P, N0) already divided by sqrt(N0): h_1 = x W_1^T."""

    x: torch.Tensor
    width: int

    @property
    def shape(self):
        return self.width, self.x.shape[1]

    @cached_property
    def gram(self):
        """X = x.x'/N0 between the inputs: (P, P)."""
        return self.x @ self.x.mT

    def forward(self, layer):
        return self.x @ layer.mT

    push = forward

    def pull(self, cotangent):
        return cotangent.mT @ self.x


@dataclass(frozen=True, eq=False)
class DualInputs:
    """First-layer weights as W_1 = W_1(0) + B^T x / sqrt(N0), with B (P, N_1) in their place; `start` is h_1(0) (R, P, N_1).

    Gradient descent moves W_1 in the span of the training inputs only. In these coordinates h_1 = h_1(0) + X B with
    X = x.x'/N0, and the gradient by W_1 needs no matrix product: B changes by u o b. The tangent map followed by its
    transpose is the same as before, so an integrator written with `jvp` and `vjp` runs unchanged, on fewer products.
    """

    gram: torch.Tensor
    start: torch.Tensor

    @property
    def shape(self):
        return tuple(self.start.shape[1:])

    def forward(self, layer):
        return self.start + self.gram @ layer

    def push(self, layer):
        return self.gram @ layer

    def pull(self, cotangent):
        return cotangent


@dataclass(frozen=True, eq=False)
class _Network:
    """What the two architectures share: inputs, widths N_1 .. N_L, C outputs, weights in flat rows whose end is the readout."""

    inputs: DirectInputs | DualInputs
    widths: tuple
    outputs: int

    @cached_property
    def lengths(self):
        """Number of weights of each layer."""
        return [rows * columns for rows, columns in self.shapes]

    @cached_property
    def size(self):
        return sum(self.lengths)

    def layers(self, weights):
        """Views of flat weights (R, D), one (R, rows, columns) per layer."""
        parts = torch.split(weights, self.lengths, dim=-1)
        return [part.unflatten(-1, shape) for part, shape in zip(parts, self.shapes, strict=True)]

    def scaled(self, numbers, factors):
        """Numbers (..., D) for the weights, those of each layer times its own factor."""
        parts = torch.split(numbers, self.lengths, dim=-1)
        return torch.cat([factor * part for factor, part in zip(factors, parts, strict=True)], dim=-1)

    @property
    def dual_pays(self):
        """Whether products with X (P, P) cost less than the two or more with x (P, N0) that they replace."""
        return self.inputs.x.shape[0] < 1.8 * self.inputs.x.shape[1]

    def dual(self, weights):
        """This network in dual coordinates around `weights` (R, D), and the coordinates of `weights` there."""
        first = self.layers(weights)[0]
        network = replace(self, inputs=DualInputs(self.inputs.gram, self.inputs.forward(first)))
        zeros = weights.new_zeros(len(weights), network.lengths[0])
        return network, torch.cat([zeros, weights[:, self.lengths[0] :]], dim=1)

    def direct(self, coordinates, start):
        """Weights (R, D) from dual coordinates and the weights `start` (R, D) that they were centred on."""
        x = self.inputs.x
        size = len(x) * self.widths[0]
        first = coordinates[:, :size].unflatten(-1, (len(x), self.widths[0])).mT @ x
        first = self.layers(start)[0] + first
        return torch.cat([first.flatten(1), coordinates[:, size:]], dim=1)

    def readout_statistics(self, weights):
        """U[m C + c, n C + d] = sum_i a^c_{m,i} a^d_{n,i} / N_L: (R, M C, M C), with M = 1 in a network without gates."""
        readout = self.layers(weights)[-1].flatten(1).unflatten(1, (-1, self.widths[-1]))
        return readout @ readout.mT / self.widths[-1]


def _direct_inputs(x, network, place):
    return DirectInputs(place.tensor(x / math.sqrt(x.shape[1])), network.widths[0])


@dataclass(frozen=True, eq=False)
class GatedNetwork(_Network):
    """Gated deep linear network of depth L on inputs x (P, N0) with gates (P, M).

        h_1 = W_1 x / sqrt(N0),   h_l = sum_m W_l^m g_m h_{l-1} / sqrt(N_{l-1} M),
        f_c = sum_{m,i} a^c_{m,i} g_m h_{L,i} / sqrt(N_L M).

    Weights in flat order: W_1 (N_1, N0), W_l (N_l, M N_{l-1}) with column m N_{l-1} + j, a (M, C N_L) with column c N_L + i.
    `g` holds the gates divided by sqrt(N M), (P, M), for each width N.
    """

    g: dict
    parameters: ClassVar = ("width", "depth", "sigma")
    accuracy: ClassVar = 0.05

    @classmethod
    def of(cls, x, gates, network, place, outputs=1):
        """From arrays x (P, N0) and gates (P, M)."""
        scaled = {width: place.tensor(gates / math.sqrt(width * gates.shape[1])) for width in set(network.widths)}
        return cls(_direct_inputs(x, network, place), network.widths, outputs, scaled)

    @staticmethod
    def floor(data, network):
        """The least training error that any weights can reach."""
        return training_floor(data.x, data.gates, data.y, network.depth)

    @cached_property
    def gate_count(self):
        return self.g[self.widths[0]].shape[1]

    @cached_property
    def shapes(self):
        hidden = [(above, self.gate_count * below) for below, above in pairwise(self.widths)]
        return [self.inputs.shape, *hidden, (self.gate_count, self.outputs * self.widths[-1])]

    @cached_property
    def gate_gram(self):
        """g.g'/(N M) between the inputs, for each width N: (P, P)."""
        return {width: g @ g.mT for width, g in self.g.items()}

    def gated(self, h):
        """g (x) h / sqrt(N M) of a layer h (R, P, N): (R, P, M N)."""
        return (self.g[h.shape[-1]][:, :, None] * h[:, :, None, :]).flatten(-2)

    def gram(self, h):
        """(g.g'/M) (h.h'/N) between the inputs, of a layer h (R, P, N): (R, P, P)."""
        return (h @ h.mT).mul_(self.gate_gram[h.shape[-1]])

    def readout(self, layer):
        """Derivatives of f by h_L, (R, P C, N_L), from the readout weights."""
        return (self.g[self.widths[-1]] @ layer).view(len(layer), -1, self.widths[-1])

    def pull_readout(self, u, h):
        """J^T u for the readout weights, from u (R, P C) and h_L: (R, M, C N_L)."""
        return self.g[self.widths[-1]].mT @ pairs.outer(u, h)

    def cotangents(self, hidden, readout):
        """Derivatives of f by h_1 .. h_L, (R, P C, N_l) each, from W_2 .. W_L and the readout weights."""
        result = [self.readout(readout)]
        for layer in reversed(hidden):
            below = (result[0] @ layer).unflatten(-1, (self.gate_count, -1))
            gates = pairs.repeated(self.g[below.shape[-1]], self.outputs)
            result.insert(0, (below * gates[:, :, None]).sum(-2))
        return result

    def predict(self, weights):
        """f (R, P C)."""
        first, *hidden, readout = self.layers(weights)
        if self.products_pay:
            return self.predict_by_products(self.by_unit(readout) @ first)
        h = self.inputs.forward(first)
        for layer in hidden:
            h = self.gated(h) @ layer.mT
        return pairs.dot(h, self.readout(readout))

    def by_unit(self, readout):
        """Readout weights (R, M, C N) with a column for each unit: (R, M C, N)."""
        return readout.reshape(len(readout), -1, self.widths[-1])

    def predict_by_products(self, products):
        """f (R, P C) of one hidden layer from a^c_m W_1, (R, M C, N0)."""
        each = (self.inputs.x @ products.mT).unflatten(-1, (self.gate_count, -1))
        return (each * self.g[self.widths[0]][:, :, None]).sum(-2).flatten(1)

    @cached_property
    def products_pay(self):
        """Whether the layers of these inputs are better multiplied with each other first."""
        if isinstance(self.inputs, DualInputs):
            return False
        shape = Network(self.widths, len(self.widths))
        return products_pay(*self.inputs.x.shape, self.gate_count, shape, self.outputs)

    @property
    def dual_pays(self):
        return not self.products_pay and super().dual_pays

    def linearize(self, weights):
        layers = self.layers(weights)
        return ShallowLinearization(self, *layers) if self.products_pay else GatedLinearization(self, layers)


class GatedLinearization:
    """A gated network near given weights: f(w + v) = f + J v + ..."""

    def __init__(self, network, layers):
        self.network = network
        first, *hidden, readout = layers
        self.h = [network.inputs.forward(first)]
        self.z = []
        for layer in hidden:
            self.z.append(network.gated(self.h[-1]))
            self.h.append(self.z[-1] @ layer.mT)
        self.b = network.cotangents(hidden, readout)
        self.f = pairs.dot(self.h[-1], self.b[-1])

    def jvp(self, tangent):
        """J v for v (R, D): (R, P C)."""
        first, *hidden, readout = self.network.layers(tangent)
        result = pairs.dot(self.network.inputs.push(first), self.b[0])
        for layer, z, b in zip(hidden, self.z, self.b[1:], strict=True):
            result = result + pairs.dot(z @ layer.mT, b)
        return result + pairs.dot(self.h[-1], self.network.readout(readout))

    def vjp(self, u):
        """J^T u for u (R, P C): (R, D)."""
        first, *hidden = (pairs.over_outputs(u, b, self.network.outputs) for b in self.b)
        parts = [self.network.inputs.pull(first)]
        parts += [cotangent.mT @ z for cotangent, z in zip(hidden, self.z, strict=True)]
        parts.append(self.network.pull_readout(u, self.h[-1]))
        return torch.cat([part.flatten(1) for part in parts], dim=1)

    def kernel(self):
        """Theta = J J^T: (R, P C, P C)."""
        result = pairs.mul_(self.b[0] @ self.b[0].mT, self.network.inputs.gram)
        for h, b in zip(self.h, self.b[1:], strict=False):
            result += pairs.mul_(b @ b.mT, self.network.gram(h))
        return pairs.add_(result, self.network.gram(self.h[-1]))


class ShallowLinearization:
    """A gated network of one hidden layer near given weights, by the products a^c_m W_1 of its layers."""

    def __init__(self, network, first, readout):
        self.network, self.first, self.a = network, first, network.by_unit(readout)
        self.f = network.predict_by_products(self.a @ first)

    def jvp(self, tangent):
        """J v for v (R, D): (R, P C)."""
        first, readout = self.network.layers(tangent)
        return self.network.predict_by_products(self.a @ first + self.network.by_unit(readout) @ self.first)

    def vjp(self, u):
        """J^T u for u (R, P C): (R, D)."""
        network = self.network
        weighed = network.g[network.widths[0]][:, :, None] * u.unflatten(1, (-1, 1, network.outputs))
        products = network.inputs.pull(weighed.flatten(-2))
        return torch.cat([(self.a.mT @ products).flatten(1), (products @ self.first.mT).flatten(1)], dim=1)

    def kernel(self):
        """Theta = J J^T: (R, P C, P C)."""
        network, x, first = self.network, self.network.inputs.x, self.first
        (P, N0), (N,) = x.shape, network.widths
        g, shape = network.g[N], (network.gate_count, network.outputs)
        # b.b' between pairs, from a.a' between gates and outputs
        overlap = (self.a @ self.a.mT).unflatten(1, shape).unflatten(-1, shape)
        left = (g @ overlap.flatten(2)).unflatten(-1, overlap.shape[2:])
        result = (left.movedim(3, -1) @ g.mT).movedim(-1, 3).reshape(-1, *[P * network.outputs] * 2)
        if N0**2 * (N + P) + P**2 * N0 < P * N * (N0 + P):
            gram = x @ (first.mT @ first) @ x.mT
        else:
            h = network.inputs.forward(first)
            gram = h @ h.mT
        return pairs.add_(pairs.mul_(result, network.inputs.gram), gram * network.gate_gram[N])


@dataclass(frozen=True, eq=False)
class ReluNetwork(_Network):
    """ReLU network with one hidden layer: f_c = a^c . relu(W x / sqrt(N0)) / sqrt(N). Weights: W (N, N0), a (C, N).

    Its kinks lower the order of the integrator, hence the smaller `accuracy`.
    """

    parameters: ClassVar = ("width", "sigma")
    accuracy: ClassVar = 0.03

    @classmethod
    def of(cls, x, gates, network, place, outputs=1):
        """From an array x (P, N0); there are no gates."""
        return cls(_direct_inputs(x, network, place), network.widths, outputs)

    @staticmethod
    def floor(data, network):
        """No floor is known."""
        return 0.0

    @cached_property
    def shapes(self):
        return [self.inputs.shape, (self.outputs, self.widths[0])]

    def predict(self, weights):
        """f (R, P C)."""
        first, readout = self.layers(weights)
        return _each_output(torch.relu(self.inputs.forward(first)), readout).sum(-1) / math.sqrt(self.widths[0])

    def linearize(self, weights):
        return ReluLinearization(self, *self.layers(weights))


class ReluLinearization:
    """A ReLU network near given weights; the derivative at a kink is taken from the side where the unit is off."""

    def __init__(self, network, first, readout):
        self.network = network
        h = network.inputs.forward(first)
        scale = 1 / math.sqrt(network.widths[0])
        self.phi = torch.relu(h) * scale
        self.b = _each_output(h > 0, readout * scale)
        self.f = _each_output(self.phi, readout).sum(-1)

    def jvp(self, tangent):
        """J v for v (R, D): (R, P C)."""
        first, readout = self.network.layers(tangent)
        return pairs.dot(self.network.inputs.push(first), self.b) + _each_output(self.phi, readout).sum(-1)

    def vjp(self, u):
        """J^T u for u (R, P C): (R, D)."""
        outputs = self.network.outputs
        first = self.network.inputs.pull(pairs.over_outputs(u, self.b, outputs))
        readout = u.unflatten(1, (-1, outputs)).mT @ self.phi
        return torch.cat([first.flatten(1), readout.flatten(1)], dim=1)

    def kernel(self):
        """Theta = J J^T: (R, P C, P C)."""
        result = pairs.mul_(self.b @ self.b.mT, self.network.inputs.gram)
        return pairs.add_(result, self.phi @ self.phi.mT)


def _each_output(h, readout):
    """Units h (R, P, N) times the readout weights (R, C, N) of each output: (R, P C, N)."""
    return (h[:, :, None] * readout[:, None]).flatten(1, 2)
