"""What the samplers share: chains started from the prior, draws of the predictor and of U, diagnostics."""

import json

import numpy as np
import torch
import xarray as xr

from ggdln.core import checks, seeds
from ggdln.networks.checkpoint import Checkpoint
from ggdln.networks.device import choose_device, choose_dtype, to_numpy
from ggdln.networks.diagnostics import rhat_and_ess
from ggdln.networks.network import GatedNetwork
from ggdln.networks.progress import Progress
from ggdln.core.errors import InputError

RHAT_LIMIT, ESS_LIMIT = 1.05, 100
STATUS = ("finished", "diverged")


class Streams:
    """One random stream for each chain, whatever it is grouped with."""

    def __init__(self, generators, device, dtype):
        self.generators, self.device, self.dtype = generators, device, dtype
        self.host = np.float32 if dtype == torch.float32 else np.float64

    def normal(self, *shape):
        """Standard normal numbers (R, *shape)."""
        result = np.empty((len(self.generators), *shape), dtype=self.host)
        for row, generator in zip(result, self.generators, strict=True):
            generator.standard_normal(out=row, dtype=self.host)
        return torch.from_numpy(result).to(self.device, self.dtype)

    def state(self):
        return np.array([json.dumps(generator.bit_generator.state) for generator in self.generators])

    def restore(self, state):
        for generator, text in zip(self.generators, state, strict=True):
            generator.bit_generator.state = json.loads(str(text))


def draw_chains(
    label, stepper, x, gates, y, x_test, gates_test, *, width, depth, sigma, temperature, chains, draws, warmup, thin,
    seed, first_chain, device, dtype, memory_mb, checkpoint, checkpoint_seconds, progress, options,
):  # fmt: skip
    """Run `stepper` from the prior, keep every `thin`-th state after `warmup` and judge the mixing.

    stepper(network, y, weights, streams, sigma, temperature, **options) has `sweep(warmed)`, told which share of the
    warm-up is behind (1 or more after it), `weights` (R, D) and `state_names`, the tensors that a restart needs.
    Returns the Dataset that `sample_posterior` and `langevin` describe.
    """
    x, gates, y = checks.training_set(x, gates, y)
    x_test, gates_test = checks.inputs(x_test, gates_test, prefix="test ")
    for name, test, train in (("x_test", x_test, x), ("gates_test", gates_test, gates)):
        if test.shape[1] != train.shape[1]:
            raise InputError(f"{name}: {test.shape[1]} columns, but training has {train.shape[1]}")
    width, depth = checks.integer("width", width, 1), checks.integer("depth", depth, 1)
    sigma = checks.number("sigma", sigma, 0, exclusive=True)
    temperature = checks.number("temperature", temperature, 0, exclusive=True)
    chains, draws = checks.integer("chains", chains, 1), checks.integer("draws", draws, 1)
    warmup, thin = checks.integer("warmup", warmup, 0), checks.integer("thin", thin, 1)
    first_chain, seed = checks.integer("first_chain", first_chain, 0), int(seed)
    memory_mb = checks.number("memory_mb", memory_mb, 0, exclusive=True)
    device, dtype = choose_device(device), choose_dtype(dtype)

    network = GatedNetwork(x, gates, width=width, depth=depth, device=device, dtype=dtype)
    test_network = GatedNetwork(x_test, gates_test, width=width, depth=depth, device=device, dtype=dtype)
    labels = torch.tensor(y, device=device, dtype=dtype)
    group = max(1, int(memory_mb * 1e6 / (network.floats_per_run() * dtype.itemsize)))
    host = np.float32 if dtype == torch.float32 else np.float64
    settings = dict(
        width=width, depth=depth, sigma=sigma, temperature=temperature, warmup=warmup, thin=thin, seed=seed, **options
    )
    data = dict(x=x, gates=gates, y=y, x_test=x_test, gates_test=gates_test)
    extent = dict(label=label, chains=chains, draws=draws, first_chain=first_chain, group=group)
    place = dict(device=device.type, dtype=str(dtype))
    store = Checkpoint(checkpoint, data | settings | extent | place, seconds=checkpoint_seconds)
    results = dict(
        prediction=np.full((chains, draws, len(x_test)), np.nan, dtype=host),
        U_trace=np.full((chains, draws), np.nan),
        train_mse=np.full((chains, draws), np.nan),
        U=np.zeros((chains, gates.shape[1], gates.shape[1])),
    )
    saved = store.load()
    if saved is not None:
        results = {name: saved[name] for name in results}
    total = warmup + draws * thin
    begin = 0 if saved is None else int(saved["chain"])
    sweep = 0 if saved is None else int(saved["sweep"])
    done = begin * total + sweep * min(group, chains - begin)
    report = Progress(label, "sweeps", chains * total, progress, done=done)

    while begin < chains:
        members = range(begin, min(begin + group, chains))
        streams = Streams([seeds.rng(seed, label, "chain", first_chain + k) for k in members], device, dtype)
        weights = sigma * streams.normal(network.size)
        chain = stepper(network, labels, weights, streams, sigma, temperature, **options)
        if sweep:
            streams.restore(saved["streams"])
            for name in stepper.state_names:
                value = torch.tensor(saved[f"state_{name}"], device=device)
                setattr(chain, name, value.to(dtype) if value.is_floating_point() else value)
        rows = slice(members.start, members.stop)
        while sweep < total:
            chain.sweep(sweep / warmup if warmup else 1)
            sweep += 1
            kept, rest = divmod(sweep - warmup, thin)
            if kept >= 1 and not rest:
                overlap = to_numpy(network.readout_statistics(chain.weights))
                results["prediction"][rows, kept - 1] = to_numpy(test_network.predict(chain.weights))
                residual = network.predict(chain.weights) - labels
                results["train_mse"][rows, kept - 1] = to_numpy(residual.square().mean(-1))
                results["U_trace"][rows, kept - 1] = np.trace(overlap, axis1=1, axis2=2)
                results["U"][rows] += overlap / draws
            report.update(begin * total + sweep * len(members))
            if store.due():
                state = {f"state_{name}": to_numpy(getattr(chain, name)) for name in stepper.state_names}
                state |= dict(chain=np.array(begin), sweep=np.array(sweep), streams=streams.state())
                store.save(results | state)
        begin, sweep = members.stop, 0
    store.save(results | dict(chain=np.array(begin), sweep=np.array(0)))
    return _dataset(results, first_chain, settings)


def _dataset(results, first_chain, attributes):
    diverged = ~(np.isfinite(results["prediction"]).all((1, 2)) & np.isfinite(results["U"]).all((1, 2)))
    rhat, ess = rhat_and_ess(results["prediction"])
    rhat_u, ess_u = rhat_and_ess(results["U_trace"])
    # an input without an active gate is predicted 0 for ever: nothing to mix
    largest, least = np.max(np.append(rhat, rhat_u)), np.min(np.append(ess, ess_u))
    mixed = bool(largest <= RHAT_LIMIT and least >= ESS_LIMIT)
    flags = dict(flag_values=list(range(len(STATUS))), flag_meanings=" ".join(STATUS))
    return xr.Dataset(
        {
            "prediction": (("chain", "draw", "test"), results["prediction"]),
            "train_mse": (("chain", "draw"), results["train_mse"]),
            "U": (("chain", "m", "n"), results["U"]),
            "U_trace": (("chain", "draw"), results["U_trace"]),
            "rhat": ("test", rhat),
            "ess": ("test", ess),
            "rhat_U": ((), rhat_u),
            "ess_U": ((), ess_u),
            "status": ("chain", diverged.astype(np.int8), flags),
        },
        coords={"chain": np.arange(first_chain, first_chain + len(diverged))},
        attrs=attributes
        | dict(mixed=int(mixed), largest_rhat=float(largest), least_ess=float(least), failed=int(diverged.sum())),
    )
