"""Langevin dynamics as the paper defines it.

    w <- w - eps dE/dw + sqrt(2 eps T) eta,    E = 1/2 sum (f - y)^2 + T / (2 sigma^2) |w|^2.

The directions of w that the data leave free relax at the rate eps T / sigma^2 per step only, so the chains start from
the prior, where those directions already are in equilibrium.
"""

import math

import torch

from ggdln.core import checks
from ggdln.networks.descent import power_iteration, start_vector
from ggdln.networks.sampling import draw_chains

START_ITERATIONS, TRACK_EVERY = 30, 20


def langevin(
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
    chains=16,
    draws=500,
    warmup=2000,
    thin=20,
    step=0.2,
    seed,
    first_chain=0,
    device="auto",
    dtype="float32",
    memory_mb=4096,
    checkpoint=None,
    checkpoint_seconds=60.0,
    progress=None,
):
    """Langevin chains of gated networks, at any depth: `warmup` steps, then `draws` states, one every `thin` steps.

    eps = step / (largest tangent eigenvalue). The eigenvalue is followed during warm-up and then held at the largest
    value of the second half of it, since a step that follows the state would change the stationary distribution. The
    discrete step itself widens the stiffest direction by about a factor 1 / (1 - step / 2).

    A chain whose weights overflow has status diverged, and its draws are NaN from there on.
    """
    step = checks.number("step", step, 0, exclusive=True)
    warmup = checks.integer("warmup", warmup, 1)
    return draw_chains(
        "langevin", Langevin, x, gates, y, x_test, gates_test, width=width, depth=depth, sigma=sigma,
        temperature=temperature, chains=chains, draws=draws, warmup=warmup, thin=thin, seed=seed,
        first_chain=first_chain, device=device, dtype=dtype, memory_mb=memory_mb, checkpoint=checkpoint,
        checkpoint_seconds=checkpoint_seconds, progress=progress, options=dict(step=step),
    )  # fmt: skip


class Langevin:
    """The state of R chains."""

    state_names = ("weights", "vector", "largest", "count")

    def __init__(self, network, y, weights, streams, sigma, temperature, *, step):
        self.network, self.y, self.weights, self.streams = network, y, weights, streams
        self.temperature, self.decay, self.step = temperature, temperature / sigma**2, step
        self.count = torch.zeros((), dtype=torch.int64)
        local = network.linearize(weights)
        self.vector, self.largest = power_iteration(local, start_vector(len(weights), y), START_ITERATIONS)

    def sweep(self, warmed):
        """One step."""
        local = self.network.linearize(self.weights)
        if warmed < 1 and self.count % TRACK_EVERY == 0:
            self.vector, current = power_iteration(local, self.vector, 1)
            self.largest = current if warmed < 0.5 else torch.maximum(self.largest, current)
        epsilon = (self.step / (self.largest + self.decay))[:, None]
        noise = torch.sqrt(2 * self.temperature * epsilon) * self.streams.normal(self.network.size)
        gradient = local.vjp(local.f - self.y)
        self.weights = self.weights * (1 - epsilon * self.decay) - epsilon * gradient + noise
        # overflow to NaN at once, so that a chain that has diverged cannot look finite later
        norm = self.weights.abs().amax(1, keepdim=True)
        self.weights = torch.where(norm < 1e6, self.weights, math.nan)
        self.count += 1
