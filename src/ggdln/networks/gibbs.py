"""Exact draws from the posterior of the weights, layer by layer.

f is linear in the weights of any one layer, so that layer given the others is Gaussian. A draw w0 from the prior,
conditioned on the data by Matheron's rule, is a draw from it: with features Phi (P C, D_l) of the pairs of input and output

    w = w0 + sigma_l^2 Phi^T alpha,    (sigma_l^2 Phi Phi^T + T) alpha = y - Phi w0 - sqrt(T) xi,

and Phi Phi^T is a Hadamard product of matrices over pairs and over inputs. A sweep visits all layers from the inputs up. There
is no step size.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, Unpack

import torch
import xarray as xr

from ggdln.core.errors import ConvergenceError
from ggdln.core.types import Gatings, Inputs, Labels, NetworkKeywords, OtherGatings, OtherInputs
from ggdln.networks import pairs
from ggdln.networks.data import Data
from ggdln.networks.device import hosted
from ggdln.networks.sampling import Chains
from ggdln.networks.settings import Runtime, Sampling, group_of, network_of
from ggdln.networks.state import State


def sample_posterior(
    x: Inputs,
    gates: Gatings,
    y: Labels,
    x_test: OtherInputs,
    gates_test: OtherGatings,
    *,
    temperature: float,
    seed: int,
    sampling: Sampling | None = None,
    runtime: Runtime | None = None,
    **network: Unpack[NetworkKeywords],
) -> xr.Dataset:
    """Draws from p(w) ~ exp(-1/(2T) sum (f - y)^2 - sum_l |w_l|^2 / (2 sigma_l^2)) by blocked Gibbs sweeps, at any depth.

    x (P, N0), gates (P, M), y (P,) or, for C outputs that share the hidden layers, (P, C); x_test (P_t, N0), gates_test (P_t,
    M). Temperatures down to 1e-8 are fine in float64.

    network: width, depth=1 and sigma=1.0, as keywords; width and sigma also one for each layer, see `Network`. sampling: a
    `Sampling`; each of its chains (4) starts from the prior, makes `warmup` (100) sweeps and then keeps `draws` (500) states,
    one every `thin` (1) sweeps. runtime: a `Runtime`.

    Returns a Dataset with prediction(chain, draw, test), U(chain, m, n) = <a_m.a_n>/N_L averaged over the draws of a chain,
    U_trace(chain, draw), train_mse(chain, draw); R-hat and bulk effective sample size of each test prediction (rhat,
    ess) and of tr U (rhat_U, ess_U); status(chain), finished or diverged. The attribute `mixed` is 1 if every R-hat is
    at most 1.05 and every effective sample size at least 100; `largest_rhat` and `least_ess` say by how much, `failed`
    counts diverged chains. With labels (P, C), also with C = 1, prediction, rhat and ess have a last dimension "output",
    U(chain, m, output, n, output2) = <a^c_m.a^d_n>/N_L, and train_mse is the mean over outputs too.
    """
    data = Data.checked(x, gates, y, x_test, gates_test)
    shape = network_of(sample_posterior, **network)
    sampling = group_of("sampling", sampling).filled(Gibbs.defaults)
    return Chains("sample_posterior", Gibbs(), data, shape, temperature, seed, sampling, runtime).draw()


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
        network, (*sigmas, last) = posterior.network, posterior.sigmas
        _, *hidden, readout = network.layers(state.weights)
        drawn, inputs, gram = [], network.inputs.x, network.inputs.gram
        for b, sigma, shape in zip(network.cotangents(hidden, readout), sigmas, network.shapes, strict=False):
            layer = sigma * streams.normal(*shape)
            h = inputs @ layer.mT
            features = sigma**2 * pairs.mul_(b @ b.mT, gram)
            alpha = _condition(posterior, streams, features, pairs.dot(h, b)[..., None])
            pull = pairs.over_outputs(sigma**2 * alpha[..., 0], b, network.outputs)
            drawn.append(layer + pull.mT @ inputs)
            h = h + gram @ pull
            gram = network.gram(h)
            if len(drawn) < len(sigmas):
                inputs = network.gated(h)
        layer = last * streams.normal(*network.shapes[-1])
        # given h_L the outputs are independent: one matrix over inputs serves all
        f = pairs.dot(h, network.readout(layer)).unflatten(1, (-1, network.outputs))
        alpha = _condition(posterior, streams, last**2 * gram, f)
        drawn.append(layer + network.pull_readout(last**2 * alpha.flatten(1), h))
        return State(torch.cat([layer.flatten(1) for layer in drawn], dim=1))


def _condition(posterior, streams, matrix, f):
    """alpha for a layer whose prior draw gives f.

    f (R, P C, 1) with the matrix sigma_l^2 Phi Phi^T (R, P C, P C), or (R, P, C) where one matrix (R, P, P) serves all outputs.
    The temperature is added to the matrix in place.
    """
    temperature = posterior.temperature
    noise = math.sqrt(temperature) * streams.normal(*f.shape[1:])
    matrix.diagonal(dim1=-2, dim2=-1).add_(temperature)
    factor, info = hosted(torch.linalg.cholesky_ex, matrix)
    if info.any():
        raise ConvergenceError(
            f"temperature: {temperature:g} is below the rounding error of the kernel in {matrix.dtype}, whose "
            f"largest diagonal entry is {matrix.diagonal(dim1=-2, dim2=-1).max():.3g}; raise it or use float64"
        )
    return hosted(torch.cholesky_solve, posterior.y.view(f.shape[1:]) - f - noise, factor)
