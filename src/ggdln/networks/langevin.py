"""Langevin dynamics as the paper defines it.

    w <- w - eps dE/dw + sqrt(2 eps T) eta,    E = 1/2 sum (f - y)^2 + sum_l T / (2 sigma_l^2) |w_l|^2.

The directions of w that the data leave free relax at the rate eps T / sigma_l^2 per step only, so the chains start from
the prior, where those directions already are in equilibrium. With `averaged` noise eta is the mean of those of two steps.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, Unpack

import torch
import xarray as xr

from ggdln.core import checks
from ggdln.core.types import Gatings, Inputs, Labels, NetworkKeywords, OtherGatings, OtherInputs
from ggdln.networks.data import Data
from ggdln.networks.descent import power_iteration, start_vector
from ggdln.networks.sampling import Chains
from ggdln.networks.settings import Runtime, Sampling, Step, group_of, network_of
from ggdln.networks.state import State

START_ITERATIONS, TRACK_EVERY = 30, 20


def langevin(
    x: Inputs,
    gates: Gatings,
    y: Labels,
    x_test: OtherInputs,
    gates_test: OtherGatings,
    *,
    temperature: float,
    seed: int,
    step: float | Step = 0.2,
    sampling: Sampling | None = None,
    runtime: Runtime | None = None,
    **network: Unpack[NetworkKeywords],
) -> xr.Dataset:
    """Langevin chains of gated networks, at any depth: `warmup` steps, then `draws` states, one every `thin` steps.

    eps = step / (largest tangent eigenvalue). The eigenvalue is followed during warm-up and then held at the largest
    value of the second half of it, since a step that follows the state would change the stationary distribution. The
    discrete step itself widens the stiffest direction by about a factor 1 / (1 - step / 2), unless its noise is averaged:
    step=Step(0.2, "averaged").

    Arguments and result as for `sample_posterior`; the defaults of `sampling` are 16 chains, 500 draws, warmup 2000, thin 20.
    A chain whose weights overflow has status diverged, and its draws are NaN from there on.
    """
    data = Data.checked(x, gates, y, x_test, gates_test)
    shape = network_of(langevin, **network)
    sampling = group_of("sampling", sampling).filled(Langevin.defaults)
    step = step if isinstance(step, Step) else Step(checks.number("step", step, 0, exclusive=True))
    sampler = Langevin(step.size, step.noise, checks.integer("warmup", sampling.warmup, 1))
    return Chains("langevin", sampler, data, shape, temperature, seed, sampling, runtime).draw()


@dataclass(frozen=True, eq=False)
class LangevinState(State):
    """Also the estimate of the largest eigenvalue (R,) of Theta and of its eigenvector (R, P C); eta_{t-1} (R, D) if used."""

    vector: torch.Tensor
    largest: torch.Tensor
    noise: torch.Tensor


@dataclass(frozen=True)
class Langevin:
    """The sampler: eps times the largest eigenvalue, the kind of noise, and the steps during which the former is followed."""

    step: float
    noise: str
    warmup: int
    State = LangevinState
    defaults: ClassVar = Sampling(chains=16, draws=500, warmup=2000, thin=20)
    dtype: ClassVar = "float32"

    def start(self, posterior, weights):
        """The state of chains that begin at weights (R, D)."""
        vector = start_vector(len(weights), posterior.y)
        vector, largest = power_iteration(posterior.network.linearize(weights), vector, START_ITERATIONS)
        return LangevinState(weights, vector, largest, torch.zeros_like(weights if self.averages else weights[:, :0]))

    @property
    def averages(self):
        return self.noise == "averaged"

    def advance(self, posterior, state, streams, sweep):
        """One step, after `sweep` earlier ones."""
        network, temperature, decay = posterior.network, posterior.temperature, posterior.decay
        vector, largest = state.vector, state.largest
        local = network.linearize(state.weights)
        if sweep < self.warmup and sweep % TRACK_EVERY == 0:
            vector, current = power_iteration(local, vector, 1)
            largest = current if sweep < self.warmup / 2 else torch.maximum(largest, current)
        epsilon = (self.step / (largest + posterior.largest_decay))[:, None]
        fresh = streams.normal(network.size)
        size = torch.sqrt(2 * temperature * epsilon)
        noise, size, kept = (state.noise + fresh, size / 2, fresh) if self.averages else (fresh, size, state.noise)
        gradient = local.vjp(local.f - posterior.y)
        weights = state.weights * (1 - epsilon * decay)
        weights.addcmul_(gradient, -epsilon).addcmul_(noise, size)
        # overflow to NaN at once, so that a chain that has diverged cannot look finite later
        largest_weight = torch.linalg.vector_norm(weights, math.inf, dim=1, keepdim=True)
        weights.mul_(torch.where(largest_weight < 1e6, 1.0, math.nan))
        return LangevinState(weights, vector, largest, kept)
