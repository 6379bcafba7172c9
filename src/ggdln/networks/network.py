"""Networks as functions of their weights, many weight vectors at once, with their tangent map at hand.

A network holds its inputs. Its weights are one flat row per run, (R, D), so that an integrator or a sampler never needs
to know the layers. `linearize` gives the outputs f (R, P), the tangent map J v (`jvp`), its transpose J^T u (`vjp`) and
the tangent kernel Theta = J J^T (`kernel`), whose Hadamard form costs products of (P, N) matrices instead of (P, D)
ones.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import torch

from ggdln.networks.data import training_floor


@dataclass(frozen=True, eq=False)
class DirectInputs:
    """First-layer weights W_1 (N, N0) as they are, on inputs x (P, N0) already divided by sqrt(N0): h_1 = x W_1^T."""

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
    """First-layer weights as W_1 = W_1(0) + C^T x / sqrt(N0), with C (P, N) in their place; `start` is h_1(0) (R, P, N).

    Gradient descent moves W_1 in the span of the training inputs only. In these coordinates h_1 = h_1(0) + X C with
    X = x.x'/N0, and the gradient by W_1 needs no matrix product: C changes by u o b. The tangent map followed by its
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
    """What the two architectures share: inputs, and weights in flat rows whose last layer is the readout."""

    inputs: DirectInputs | DualInputs
    width: int

    @property
    def lengths(self):
        """Number of weights of each layer."""
        return [rows * columns for rows, columns in self.shapes]

    @property
    def size(self):
        return sum(self.lengths)

    def layers(self, weights):
        """Views of flat weights (R, D), one (R, rows, columns) per layer."""
        parts = torch.split(weights, self.lengths, dim=-1)
        return [part.unflatten(-1, shape) for part, shape in zip(parts, self.shapes, strict=True)]

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
        size = len(x) * self.width
        first = coordinates[:, :size].unflatten(-1, (len(x), self.width)).mT @ x
        first = self.layers(start)[0] + first
        return torch.cat([first.flatten(1), coordinates[:, size:]], dim=1)

    def readout_statistics(self, weights):
        """U[m, n] = sum_i a_{m,i} a_{n,i} / N: (R, M, M), with M = 1 in a network without gates."""
        readout = self.layers(weights)[-1]
        return readout @ readout.mT / self.width


def _direct_inputs(x, network, place):
    return DirectInputs(place.tensor(x / math.sqrt(x.shape[1])), network.width)


@dataclass(frozen=True, eq=False)
class GatedNetwork(_Network):
    """Gated deep linear network of width N and depth L on inputs x (P, N0) with gates (P, M), kept as g / sqrt(N M).

        h_1 = W_1 x / sqrt(N0),   h_l = sum_m W_l^m g_m h_{l-1} / sqrt(N M),
        f = sum_{m,i} a_{m,i} g_m h_{L,i} / sqrt(N M).

    Weights in flat order: W_1 (N, N0), W_2 .. W_L (N, M N) with column m N + j, a (M, N).
    """

    g: torch.Tensor
    depth: int
    parameters: ClassVar = ("width", "depth", "sigma")
    accuracy: ClassVar = 0.05

    @classmethod
    def of(cls, x, gates, network, place):
        """From arrays x (P, N0) and gates (P, M)."""
        gates = place.tensor(gates / math.sqrt(network.width * gates.shape[1]))
        return cls(_direct_inputs(x, network, place), network.width, gates, network.depth)

    @staticmethod
    def floor(data, network):
        """The least training error that any weights can reach."""
        return training_floor(data.x, data.gates, data.y, network.depth)

    @property
    def gate_count(self):
        return self.g.shape[1]

    @property
    def shapes(self):
        hidden = [(self.width, self.gate_count * self.width)] * (self.depth - 1)
        return [self.inputs.shape, *hidden, (self.gate_count, self.width)]

    @cached_property
    def gate_gram(self):
        """g.g'/(N M) between the inputs: (P, P)."""
        return self.g @ self.g.mT

    def gated(self, h):
        """g (x) h / sqrt(N M): (R, P, M N)."""
        return (self.g[:, :, None] * h[:, :, None, :]).flatten(-2)

    def backward(self, cotangent, layer):
        """Derivatives of f by h_{l-1}, (R, P, N), from those by h_l and W_l."""
        return ((cotangent @ layer).unflatten(-1, (self.gate_count, self.width)) * self.g[:, :, None]).sum(-2)

    def predict(self, weights):
        """f (R, P)."""
        first, *hidden, readout = self.layers(weights)
        h = self.inputs.forward(first)
        for layer in hidden:
            h = self.gated(h) @ layer.mT
        return ((self.g @ readout) * h).sum(-1)

    def linearize(self, weights):
        return GatedLinearization(self, self.layers(weights))


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
        self.b = [network.g @ readout]
        for layer in reversed(hidden):
            self.b.insert(0, network.backward(self.b[0], layer))
        self.f = (self.b[-1] * self.h[-1]).sum(-1)

    def jvp(self, tangent):
        """J v for v (R, D): (R, P)."""
        first, *hidden, readout = self.network.layers(tangent)
        result = (self.network.inputs.push(first) * self.b[0]).sum(-1)
        for layer, z, b in zip(hidden, self.z, self.b[1:], strict=True):
            result = result + ((z @ layer.mT) * b).sum(-1)
        return result + ((self.network.g @ readout) * self.h[-1]).sum(-1)

    def vjp(self, u):
        """J^T u for u (R, P): (R, D)."""
        u = u[:, :, None]
        parts = [self.network.inputs.pull(u * self.b[0])]
        parts += [(u * b).mT @ z for z, b in zip(self.z, self.b[1:], strict=True)]
        parts.append(self.network.g.mT @ (u * self.h[-1]))
        return torch.cat([part.flatten(1) for part in parts], dim=1)

    def kernel(self):
        """Theta = J J^T: (R, P, P)."""
        gates = self.network.gate_gram
        result = (self.b[0] @ self.b[0].mT).mul_(self.network.inputs.gram)
        for h, b in zip(self.h, self.b[1:], strict=False):
            result += (h @ h.mT).mul_(gates).mul_(b @ b.mT)
        return result.add_((self.h[-1] @ self.h[-1].mT).mul_(gates))


@dataclass(frozen=True, eq=False)
class ReluNetwork(_Network):
    """ReLU network with one hidden layer: f = a . relu(W x / sqrt(N0)) / sqrt(N). Weights: W (N, N0), a (1, N).

    Its kinks lower the order of the integrator, hence the smaller `accuracy`.
    """

    parameters: ClassVar = ("width", "sigma")
    accuracy: ClassVar = 0.03

    @classmethod
    def of(cls, x, gates, network, place):
        """From an array x (P, N0); there are no gates."""
        return cls(_direct_inputs(x, network, place), network.width)

    @staticmethod
    def floor(data, network):
        """No floor is known."""
        return 0.0

    @property
    def shapes(self):
        return [self.inputs.shape, (1, self.width)]

    def predict(self, weights):
        """f (R, P)."""
        first, readout = self.layers(weights)
        return (torch.relu(self.inputs.forward(first)) * readout).sum(-1) / math.sqrt(self.width)

    def linearize(self, weights):
        return ReluLinearization(self, *self.layers(weights))


class ReluLinearization:
    """A ReLU network near given weights; the derivative at a kink is taken from the side where the unit is off."""

    def __init__(self, network, first, readout):
        self.network = network
        h = network.inputs.forward(first)
        scale = 1 / math.sqrt(network.width)
        self.phi = torch.relu(h) * scale
        self.b = (h > 0) * (readout * scale)
        self.f = (self.phi * readout).sum(-1)

    def jvp(self, tangent):
        """J v for v (R, D): (R, P)."""
        first, readout = self.network.layers(tangent)
        return (self.network.inputs.push(first) * self.b).sum(-1) + (self.phi * readout).sum(-1)

    def vjp(self, u):
        """J^T u for u (R, P): (R, D)."""
        u = u[:, :, None]
        first, readout = self.network.inputs.pull(u * self.b), u.mT @ self.phi
        return torch.cat([first.flatten(1), readout.flatten(1)], dim=1)

    def kernel(self):
        """Theta = J J^T: (R, P, P)."""
        return (self.b @ self.b.mT).mul_(self.network.inputs.gram).add_(self.phi @ self.phi.mT)
