"""What the samplers share: chains started from the prior, draws of the predictor and of U, diagnostics."""

import json
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
import xarray as xr

from ggdln.core import checks, seeds
from ggdln.core.diagnostics import rhat_and_ess
from ggdln.core.progress import Progress
from ggdln.core.variables import described
from ggdln.networks.checkpoint import Checkpoint
from ggdln.networks.device import Place, runs_within, to_numpy
from ggdln.networks.network import GatedNetwork
from ggdln.networks.settings import floats_per_run, group_of
from ggdln.networks.state import State
from ggdln.networks.variables import CHAINS

RHAT_LIMIT, ESS_LIMIT = 1.05, 100
STATUS = ("finished", "diverged")


class Streams:
    """One random stream for each chain, whatever it is grouped with."""

    def __init__(self, generators, place):
        self.generators, self.place = generators, place

    def normal(self, *shape):
        """Standard normal numbers (R, *shape)."""
        host = self.place.host
        result = np.empty((len(self.generators), *shape), dtype=host)
        for row, generator in zip(result, self.generators, strict=True):
            generator.standard_normal(out=row, dtype=host)
        return torch.from_numpy(result).to(*self.place)

    def state(self):
        return np.array([json.dumps(generator.bit_generator.state) for generator in self.generators])

    def restore(self, state):
        for generator, text in zip(self.generators, state, strict=True):
            generator.bit_generator.state = json.loads(str(text))


@dataclass(frozen=True, eq=False)
class Posterior:
    """The distribution of a network's weights that is sampled: labels y (P C,), prior std of each layer, temperature."""

    network: Any
    y: torch.Tensor
    sigmas: tuple
    temperature: float

    @cached_property
    def decay(self):
        """T / sigma_l^2 for each weight, (D,), or one number if all layers have the same prior."""
        rates = [self.temperature / sigma**2 for sigma in self.sigmas]
        return rates[0] if len(set(rates)) == 1 else self.network.scaled(self.y.new_ones(self.network.size), rates)

    @property
    def largest_decay(self):
        """The largest T / sigma_l^2."""
        return self.temperature / min(self.sigmas) ** 2


@dataclass
class _Group:
    """Chains that are sampled together: their numbers within the call, random streams, state, and sweeps made."""

    members: range
    streams: Streams
    state: State
    sweep: int = 0

    def arrays(self):
        """Arrays by name of what each chain needs to go on; their first dimension is the chain."""
        return self.state.arrays() | {"streams": self.streams.state()}


class Chains:
    """Chains started from the prior and drawn group after group; what is kept of them is collected in `results`.

    In each round all chains are drawn on. There is another one if they haven't mixed and `rounds` allows it; `waiting` has what
    a chain needs to go on by its number, until there is no need.

    label: names the random streams. sampler: an object with its settings as fields; `start(posterior, weights)` and
    `advance(posterior, state, streams, sweep)` give its state, of class `State`; `dtype` is its usual precision. data: a
    `Data`. sampling: a `Sampling` without gaps: every `thin`-th state after `warmup` is kept.
    """

    def __init__(self, label, sampler, data, network, temperature, seed, sampling, runtime):
        runtime = group_of("runtime", runtime)
        temperature = checks.number("temperature", temperature, 0, exclusive=True)
        self.label, self.sampler, self.sampling, self.seed = label, sampler, sampling, int(seed)
        self.place = place = Place.of(runtime, sampler.dtype)
        gated = GatedNetwork.of(data.x, data.gates, network, place, data.outputs)
        self.posterior = Posterior(gated, place.tensor(data.y).flatten(), network.sigmas, temperature)
        self.test_network = GatedNetwork.of(data.x_test, data.gates_test, network, place, data.outputs)
        self.group = runs_within(place, floats_per_run(*data.shape, network, data.outputs), runtime.memory_mb)
        self.made, self.waiting = 0, {}

        rule = dict(temperature=temperature, warmup=sampling.warmup, thin=sampling.thin, seed=self.seed)
        self.attributes = asdict(network) | rule | asdict(sampler)
        arguments = data._asdict() | self.attributes | asdict(sampling) | dict(label=label, group=self.group) | place.names
        self.store = Checkpoint(runtime.checkpoint, arguments, seconds=runtime.checkpoint_seconds)
        self.layout, self.progress = data.layout, runtime.progress
        self.results = {"U": np.zeros((sampling.chains, *self.layout.readout.values()))} | self.no_draws()

    def sweeps(self, rounds):
        """Sweeps of a chain in the first so many rounds."""
        return self.sampling.warmup + rounds * self.sampling.draws * self.sampling.thin if rounds else 0

    def no_draws(self):
        """Places for the draws of a round."""
        kept = self.sampling.chains, self.sampling.draws
        prediction = np.full((*kept, *self.layout.prediction.values()), np.nan, dtype=self.place.host)
        return {"prediction": prediction, "U_trace": np.full(kept, np.nan), "train_mse": np.full(kept, np.nan)}

    def draw(self):
        """The Dataset that `sample_posterior` and `langevin` describe."""
        group = self.resume()
        while group.members:
            group = self.draw_round(group)
            self.made += 1
            if self.made < self.sampling.rounds and not (self.diagnosis()["attributes"]["mixed"] or self.diverged().any()):
                self.results |= {name: np.concatenate([self.results[name], new], 1) for name, new in self.no_draws().items()}
                group = self.begin(0)
        self.save(group)
        return self.dataset()

    def draw_round(self, group):
        """Draw the chains from those of `group` on to the end of a round; the group after the last, which is empty."""
        before, end, chains = self.sweeps(self.made), self.sweeps(self.made + 1), self.sampling.chains

        def done():
            return chains * before + group.members.start * (end - before) + (group.sweep - before) * len(group.members)

        report = Progress(self.label, "sweeps", chains * end, self.progress, done=done())
        while group.members:
            while group.sweep < end:
                group.state = self.sampler.advance(self.posterior, group.state, group.streams, group.sweep)
                group.sweep += 1
                self.keep(group)
                report.update(done())
                if self.store.due():
                    self.save(group)
            self.put_by(group, needed=self.made + 1 < self.sampling.rounds)
            group = self.begin(group.members.stop)
        return group

    def put_by(self, group, *, needed=True):
        """Remember the chains of a group as they are now, or forget them."""
        arrays = group.arrays()
        for row, number in enumerate(group.members):
            self.waiting.pop(number, None)
            if needed:
                self.waiting[number] = {name: array[row] for name, array in arrays.items()}

    def begin(self, first, sweep=None):
        """The group of chains from `first` on, at draws from the prior or, after so many sweeps, where they were put by;
        without members after the last chain."""
        sweep = self.sweeps(self.made) if sweep is None else sweep
        members = range(first, min(first + self.group, self.sampling.chains))
        numbers = [self.sampling.first_chain + k for k in members]
        streams = Streams([seeds.rng(self.seed, self.label, "chain", number) for number in numbers], self.place)
        if not members:
            return _Group(members, streams, None, sweep)
        if sweep:
            arrays = _stacked([self.waiting[number] for number in members])
            streams.restore(arrays["streams"])
            return _Group(members, streams, self.sampler.State.of(arrays, self.place), sweep)
        network = self.posterior.network
        weights = network.scaled(streams.normal(network.size), self.posterior.sigmas)
        return _Group(members, streams, self.sampler.start(self.posterior, weights))

    def resume(self):
        """The group that a checkpoint was saved in, with the results up to there, or the first."""
        saved = self.store.load()
        if saved is None:
            return self.begin(0)
        self.results, self.made = {name: saved[name] for name in self.results}, int(saved["made"])
        rows = {name.removeprefix("waiting_"): array for name, array in saved.items() if name.startswith("waiting_")}
        for row, number in enumerate(saved["waiting"]):
            self.waiting[int(number)] = {name: array[row] for name, array in rows.items()}
        return self.begin(int(saved["chain"]), int(saved["sweep"]))

    def save(self, group):
        if self.store.path is None:
            return
        if group.members:
            self.put_by(group)
        rows = {f"waiting_{name}": array for name, array in _stacked(list(self.waiting.values())).items()}
        where = dict(waiting=list(self.waiting), made=self.made, chain=group.members.start, sweep=group.sweep)
        self.store.save(self.results | rows | {name: np.array(value) for name, value in where.items()})

    def keep(self, group):
        """Store what the state of a group predicts, if it is one of those that are kept."""
        kept, rest = divmod(group.sweep - self.sampling.warmup, self.sampling.thin)
        if kept < 1 or rest:
            return
        network, weights, results = self.posterior.network, group.state.weights, self.results
        rows = slice(group.members.start, group.members.stop)
        overlap = to_numpy(network.readout_statistics(weights))
        residual = network.predict(weights) - self.posterior.y
        prediction = to_numpy(self.test_network.predict(weights))
        results["prediction"][rows, kept - 1] = prediction.reshape(-1, *self.layout.prediction.values())
        results["train_mse"][rows, kept - 1] = to_numpy(residual.square().mean(-1))
        results["U_trace"][rows, kept - 1] = np.trace(overlap, axis1=1, axis2=2)
        results["U"][rows] += overlap.reshape(-1, *self.layout.readout.values())

    def diverged(self):
        """Whether a chain (chain,) has left the numbers."""
        finite = (np.isfinite(self.results[name]).reshape(self.sampling.chains, -1).all(1) for name in ("prediction", "U"))
        return ~np.logical_and(*finite)

    def diagnosis(self):
        """R-hat and effective sample size of all predictions and of tr U, and what follows from them."""
        rhat, ess = rhat_and_ess(self.results["prediction"])
        rhat_u, ess_u = rhat_and_ess(self.results["U_trace"])
        # an input without an active gate is predicted 0 for ever: nothing to mix
        largest, least = float(np.max(np.append(rhat, rhat_u))), float(np.min(np.append(ess, ess_u)))
        mixed = int(largest <= RHAT_LIMIT and least >= ESS_LIMIT)
        found = {"rhat": (tuple(self.layout.prediction), rhat), "ess": (tuple(self.layout.prediction), ess)}
        found |= {"rhat_U": ((), rhat_u), "ess_U": ((), ess_u)}
        return {"variables": found, "attributes": dict(mixed=mixed, largest_rhat=largest, least_ess=least)}

    def dataset(self):
        results, diverged, diagnosis = self.results, self.diverged(), self.diagnosis()
        flags = dict(flag_values=list(range(len(STATUS))), flag_meanings=" ".join(STATUS))
        first = self.sampling.first_chain
        found = xr.Dataset(
            {
                "prediction": (("chain", "draw", *self.layout.prediction), results["prediction"]),
                "train_mse": (("chain", "draw"), results["train_mse"]),
                "U": (("chain", *self.layout.readout), results["U"] / results["U_trace"].shape[1]),
                "U_trace": (("chain", "draw"), results["U_trace"]),
                **diagnosis["variables"],
                "status": ("chain", diverged.astype(np.int8), flags),
            },
            coords={"chain": np.arange(first, first + self.sampling.chains)},
            attrs=self.attributes | dict(rounds=self.made) | diagnosis["attributes"] | dict(failed=int(diverged.sum())),
        )
        return described(found, CHAINS)


def _stacked(rows):
    """Arrays by name of several chains, of arrays by name of each."""
    return {name: np.stack([row[name] for row in rows]) for name in rows[0]} if rows else {}
