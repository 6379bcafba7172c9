"""Exact draws from the posterior of the weights, layer by layer.

f is linear in the weights of any one layer, so that layer given the others is Gaussian. A draw w0 from the prior,
conditioned on the data by Matheron's rule, is a draw from it: with features Phi (P, D_l)

    w = w0 + sigma^2 Phi^T alpha,    (sigma^2 Phi Phi^T + T) alpha = y - Phi w0 - sqrt(T) xi,

and Phi Phi^T is a Hadamard product of (P, P) matrices. A sweep visits all layers from the inputs up. There is no step
size.
"""

import math

import torch

from ggdln.networks.sampling import draw_chains
from ggdln.core.errors import ConvergenceError


def sample_posterior(
    x,
    gates,
    y,
    x_test,
    gates_test,
    *,
    width,
    depth=1,
    sigma=1.0,
    temperature,
    chains=4,
    draws=500,
    warmup=100,
    thin=1,
    seed,
    first_chain=0,
    device="auto",
    dtype="float64",
    memory_mb=4096,
    checkpoint=None,
    checkpoint_seconds=60.0,
    progress=None,
):
    """Draws from p(w) ~ exp(-1/(2T) sum (f - y)^2 - |w|^2 / (2 sigma^2)) by blocked Gibbs sweeps, at any depth.

    x (P, N0), gates (P, M), y (P,); x_test (P_t, N0), gates_test (P_t, M). Each of `chains` starts from the prior,
    makes `warmup` sweeps and then keeps `draws` states, one every `thin` sweeps. Temperatures down to 1e-8 are fine in
    float64.

    Returns a Dataset with prediction(chain, draw, test), U(chain, m, n) = <a a^T>/N averaged over the draws of a chain,
    U_trace(chain, draw), train_mse(chain, draw); R-hat and bulk effective sample size of each test prediction (rhat,
    ess) and of tr U (rhat_U, ess_U); status(chain), finished or diverged. The attribute `mixed` is 1 if every R-hat is
    at most 1.05 and every effective sample size at least 100; `largest_rhat` and `least_ess` say by how much, `failed`
    counts diverged chains.
    """
    return draw_chains(
        "sample_posterior", Gibbs, x, gates, y, x_test, gates_test, width=width, depth=depth, sigma=sigma,
        temperature=temperature, chains=chains, draws=draws, warmup=warmup, thin=thin, seed=seed,
        first_chain=first_chain, device=device, dtype=dtype, memory_mb=memory_mb, checkpoint=checkpoint,
        checkpoint_seconds=checkpoint_seconds, progress=progress, options={},
    )  # fmt: skip


class Gibbs:
    """The state of R chains."""

    state_names = ("weights",)

    def __init__(self, network, y, weights, streams, sigma, temperature):
        self.network, self.y, self.weights, self.streams = network, y, weights, streams
        self.sigma, self.temperature = sigma, temperature

    def sweep(self, warmed):
        """Draw every layer given the others."""
        network, variance = self.network, self.sigma**2
        _, *hidden, readout = network.layers(self.weights)
        cotangents = [network.g @ readout]
        for layer in reversed(hidden):
            cotangents.insert(0, network.backward(cotangents[0], layer))
        drawn, inputs, gram = [], network.x, network.gram
        for b, shape in zip(cotangents, network.shapes, strict=False):
            layer = self.sigma * self.streams.normal(*shape)
            h = inputs @ layer.mT
            alpha = self._condition(gram * (b @ b.mT), (h * b).sum(-1))
            pull = variance * alpha[:, :, None] * b
            drawn.append(layer + pull.mT @ inputs)
            h = h + gram @ pull
            gram = network.gate_gram * (h @ h.mT)
            if len(drawn) < network.depth:
                inputs = network.gated(h)
        layer = self.sigma * self.streams.normal(*network.shapes[-1])
        alpha = self._condition(gram, ((network.g @ layer) * h).sum(-1))
        drawn.append(layer + network.g.mT @ (variance * alpha[:, :, None] * h))
        self.weights = torch.cat([layer.flatten(1) for layer in drawn], dim=1)

    def _condition(self, gram, f):
        """alpha (R, P) for a layer with Phi Phi^T = `gram` (R, P, P), whose prior draw gives f (R, P)."""
        noise = math.sqrt(self.temperature) * self.streams.normal(f.shape[1])
        matrix = self.sigma**2 * gram
        matrix.diagonal(dim1=-2, dim2=-1).add_(self.temperature)
        factor, info = torch.linalg.cholesky_ex(matrix)
        if info.any():
            raise ConvergenceError(
                f"temperature: {self.temperature:g} is below the rounding error of the kernel in {matrix.dtype}, whose "
                f"largest diagonal entry is {matrix.diagonal(dim1=-2, dim2=-1).max():.3g}; raise it or use float64"
            )
        return torch.cholesky_solve((self.y - f - noise)[..., None], factor)[..., 0]
