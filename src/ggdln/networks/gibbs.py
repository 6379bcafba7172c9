"""Exact draws from the posterior of the weights, layer by layer.

f is linear in the weights of any one layer, so that layer given the others is Gaussian. A draw w0 from the prior,
conditioned on the data by Matheron's rule, is a draw from it: with features Phi (P, D_l)

    w = w0 + sigma^2 Phi^T alpha,    (sigma^2 Phi Phi^T + T) alpha = y - Phi w0 - sqrt(T) xi,

and Phi Phi^T is a Hadamard product of (P, P) matrices. A sweep visits all layers from the inputs up. There is no step
size.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch

from ggdln.core.errors import ConvergenceError
from ggdln.networks.data import Data
from ggdln.networks.sampling import Chains
from ggdln.networks.settings import Sampling, group_of, network_of
from ggdln.networks.state import State


def sample_posterior(x, gates, y, x_test, gates_test, *, temperature, seed, sampling=None, runtime=None, **network):
    """Draws from p(w) ~ exp(-1/(2T) sum (f - y)^2 - |w|^2 / (2 sigma^2)) by blocked Gibbs sweeps, at any depth.

    x (P, N0), gates (P, M), y (P,); x_test (P_t, N0), gates_test (P_t, M). Temperatures down to 1e-8 are fine in float64.

    network: width, depth=1 and sigma=1.0, as keywords. sampling: a `Sampling`; each of its chains (4) starts from the prior,
    makes `warmup` (100) sweeps and then keeps `draws` (500) states, one every `thin` (1) sweeps. runtime: a `Runtime`.

    Returns a Dataset with prediction(chain, draw, test), U(chain, m, n) = <a a^T>/N averaged over the draws of a chain,
    U_trace(chain, draw), train_mse(chain, draw); R-hat and bulk effective sample size of each test prediction (rhat,
    ess) and of tr U (rhat_U, ess_U); status(chain), finished or diverged. The attribute `mixed` is 1 if every R-hat is
    at most 1.05 and every effective sample size at least 100; `largest_rhat` and `least_ess` say by how much, `failed`
    counts diverged chains.
    """
    data = Data.checked(x, gates, y, x_test, gates_test)
    network = network_of(sample_posterior, network)
    sampling = group_of("sampling", sampling).filled(Gibbs.defaults)
    return Chains("sample_posterior", Gibbs(), data, network, temperature, seed, sampling, runtime).draw()


@dataclass(frozen=True)
class Gibbs:
    """The sampler; its state is the weights alone."""

    State = State
    defaults: ClassVar = Sampling(chains=4, draws=500, warmup=100, thin=1)
    dtype: ClassVar = "float64"

    def start(self, posterior, weights):
        """The state of chains that begin at weights (R, D)."""
        return State(weights)

    def advance(self, posterior, state, streams, sweep):
        """Draw every layer given the others."""
        network, sigma, variance = posterior.network, posterior.sigma, posterior.sigma**2
        _, *hidden, readout = network.layers(state.weights)
        cotangents = [network.g @ readout]
        for layer in reversed(hidden):
            cotangents.insert(0, network.backward(cotangents[0], layer))
        drawn, inputs, gram = [], network.inputs.x, network.inputs.gram
        for b, shape in zip(cotangents, network.shapes, strict=False):
            layer = sigma * streams.normal(*shape)
            h = inputs @ layer.mT
            alpha = _condition(posterior, streams, gram * (b @ b.mT), (h * b).sum(-1))
            pull = variance * alpha[:, :, None] * b
            drawn.append(layer + pull.mT @ inputs)
            h = h + gram @ pull
            gram = network.gate_gram * (h @ h.mT)
            if len(drawn) < network.depth:
                inputs = network.gated(h)
        layer = sigma * streams.normal(*network.shapes[-1])
        alpha = _condition(posterior, streams, gram, ((network.g @ layer) * h).sum(-1))
        drawn.append(layer + network.g.mT @ (variance * alpha[:, :, None] * h))
        return State(torch.cat([layer.flatten(1) for layer in drawn], dim=1))


def _condition(posterior, streams, gram, f):
    """alpha (R, P) for a layer with Phi Phi^T = `gram` (R, P, P), whose prior draw gives f (R, P)."""
    temperature = posterior.temperature
    noise = math.sqrt(temperature) * streams.normal(f.shape[1])
    matrix = posterior.sigma**2 * gram
    matrix.diagonal(dim1=-2, dim2=-1).add_(temperature)
    factor, info = torch.linalg.cholesky_ex(matrix)
    if info.any():
        raise ConvergenceError(
            f"temperature: {temperature:g} is below the rounding error of the kernel in {matrix.dtype}, whose "
            f"largest diagonal entry is {matrix.diagonal(dim1=-2, dim2=-1).max():.3g}; raise it or use float64"
        )
    return torch.cholesky_solve((posterior.y - f - noise)[..., None], factor)[..., 0]
