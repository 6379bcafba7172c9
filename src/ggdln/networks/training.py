"""Many networks trained from Gaussian initial weights on the squared error, each until its training error is small.

Every run has its own random stream, named by the seed and the number of the run. On the CPU runs are advanced one at a
time, so run k has the same bits however a set of runs is split into calls; on CUDA they are batched within the memory
budget and equal up to rounding.
"""

from dataclasses import dataclass, replace
from typing import Any, Unpack

import numpy as np
import torch
import xarray as xr

from ggdln.core import checks, seeds
from ggdln.core.progress import Progress
from ggdln.core.types import Gatings, Inputs, Labels, NetworkKeywords, OtherGatings, OtherInputs
from ggdln.core.variables import described
from ggdln.networks.checkpoint import Checkpoint
from ggdln.networks.data import Data
from ggdln.networks.descent import Descent
from ggdln.networks.device import Place, group_size, to_numpy
from ggdln.networks.flow import Flow
from ggdln.networks.network import GatedNetwork, ReluNetwork
from ggdln.networks.settings import FLOW_VECTORS, Network, Runtime, Training, floats_per_run, group_of, network_of
from ggdln.networks.state import TrainingState
from ggdln.networks.status import CONVERGED, DIVERGED, FLOOR, STATUS, UNFINISHED
from ggdln.networks.variables import RUNS

EXPLODED = 1e6


def train_ensemble(
    x: Inputs,
    gates: Gatings,
    y: Labels,
    x_test: OtherInputs,
    gates_test: OtherGatings,
    *,
    runs: int,
    seed: int,
    training: Training | None = None,
    runtime: Runtime | None = None,
    **network: Unpack[NetworkKeywords],
) -> xr.Dataset:
    """Gated networks trained from `runs` initial weights of std sigma, numbered first_run, first_run + 1, ...

    x (P, N0), gates (P, M), y (P,) or, for C outputs that share the hidden layers, (P, C); x_test (P_t, N0), gates_test (P_t,
    M). The loss is 1/2 sum (f - y)^2 without regularization; a run stops when its mean squared training error, over inputs and
    outputs, is at most `tolerance`.

    network: width, depth=1 and sigma=1.0, as keywords; width and sigma also one for each layer, see `Network`. training: a
    `Training`, how they are integrated and when they stop. runtime: a `Runtime`, where they run.

    Returns a Dataset with prediction(run, test), train_mse(run), steps(run), U(run, m, n) = sum_i a_{m,i} a_{n,i} / N_L; with
    labels (P, C), also with C = 1, prediction(run, test, output) and U(run, m, output, n, output2) = sum_i a^c_{m,i} a^d_{n,i}
    / N_L. And status(run):

    - converged: training error at most `tolerance`;
    - floor: no weights can get below `tolerance` because some labels lie outside the span of the features (inputs without an
      active gate, more data than the capacity). The attribute `floor` is the least training error of a linear readout
      of those features, and the run stops at floor + tolerance;
    - diverged: the error exploded or the integration broke down; its predictions are NaN;
    - unfinished: `max_steps` were not enough; its predictions are those of the last step.

    The attribute `failed` counts the last two, `dead_inputs` the training inputs without an active gate.
    """
    data = Data.checked(x, gates, y, x_test, gates_test)
    shape = network_of(train_ensemble, **network)
    ensemble = _Ensemble("train_ensemble", GatedNetwork, data, shape, runs, seed, training, runtime)
    return ensemble.train().assign_attrs(floor=ensemble.floor, dead_inputs=int((data.gates == 0).all(1).sum()))


def train_relu(
    x: Inputs,
    y: Labels,
    x_test: OtherInputs,
    *,
    width: int,
    sigma: float | tuple[float, ...] = 1.0,
    runs: int,
    seed: int,
    training: Training | None = None,
    runtime: Runtime | None = None,
) -> xr.Dataset:
    """Fully trained ReLU networks f = a . relu(W x / sqrt(N0)) / sqrt(N): a baseline with the same prior and stop rule.

    Arguments and result as for `train_ensemble`, without gates, so that m and n have one value; sigma may be one for W and one
    for a. No floor is known for them.
    """
    data = Data.without_gates(x, y, x_test)
    network = Network(width, sigma=sigma)
    return _Ensemble("train_relu", ReluNetwork, data, network, runs, seed, training, runtime).train()


@dataclass(frozen=True, eq=False)
class Objective:
    """Labels y (P C,) for a network, and the mean squared training error `target` () at which a run is done."""

    network: Any
    y: torch.Tensor
    target: torch.Tensor

    def at(self, weights):
        """The `Position` at weights (R, D)."""
        local = self.network.linearize(weights)
        residual = local.f - self.y
        return Position(weights, local, residual, residual.square().mean(-1))


@dataclass(frozen=True, eq=False)
class Position:
    """Weights (R, D), the network linearized there, the residual f - y (R, P C) and the training error (R,)."""

    weights: torch.Tensor
    local: Any
    residual: torch.Tensor
    mse: torch.Tensor


@dataclass(frozen=True, eq=False)
class _Group:
    """Runs that are trained together: their numbers within the call, initial weights (R, D), and where they are."""

    members: np.ndarray
    initial: torch.Tensor
    objective: Objective
    state: TrainingState
    position: Position


class _Ensemble:
    """Networks of one architecture, trained group after group. Runs that are done are collected in `results`."""

    def __init__(self, label, architecture, data, network, runs, seed, training, runtime):
        training, runtime = group_of("training", training), group_of("runtime", runtime)
        self.label, self.seed, self.runs = label, int(seed), checks.integer("runs", runs, 1)
        self.shape, self.first_run = network, training.first_run
        self.place = Place.of(runtime, "float32")
        self.network = architecture.of(data.x, data.gates, network, self.place, data.outputs)
        self.test_network = architecture.of(data.x_test, data.gates_test, network, self.place, data.outputs)
        self.y = self.place.tensor(data.y).flatten()
        self.floor = architecture.floor(data, network)
        self.stop = _Stop.at(self.floor, data.y, training)
        accuracy = architecture.accuracy if training.accuracy is None else training.accuracy
        self.integrator = {"flow": Flow(accuracy), "descent": Descent(training.step)}[training.integrator]
        per_run = floats_per_run(*data.shape, network, data.outputs, vectors=FLOW_VECTORS)
        self.group = group_size(self.place, per_run, runtime.memory_mb)

        shape = {name: getattr(network, name) for name in architecture.parameters}
        self.attributes = dict(method=training.integrator, **shape, tolerance=training.tolerance, seed=self.seed)
        control = dict(step=training.step, accuracy=accuracy, max_steps=training.step_limit)
        extent = dict(label=label, runs=self.runs, first_run=self.first_run, group=self.group)
        arguments = data._asdict() | self.attributes | control | extent | self.place.names
        self.store = Checkpoint(runtime.checkpoint, arguments, seconds=runtime.checkpoint_seconds)
        self.layout = data.layout
        self.results = dict(
            prediction=np.full((self.runs, *self.layout.prediction.values()), np.nan),
            U=np.full((self.runs, *self.layout.readout.values()), np.nan),
            train_mse=np.full(self.runs, np.nan),
            steps=np.zeros(self.runs, dtype=np.int64),
            status=np.full(self.runs, -1, dtype=np.int8),
        )
        self.progress = runtime.progress

    def train(self):
        """The Dataset of all runs."""
        group = self.resume()
        report = Progress(self.label, "runs", self.runs, self.progress, done=self.done)
        while group := group or self.next_group():
            status = self.stop.judge(group)
            if (status >= 0).any():
                self.collect(group, status)
                report.update(self.done)
                group = self.remaining(group, status < 0)
            if group is not None:
                state = self.integrator.advance(group.objective, group.state, group.position)
                group = replace(group, state=state, position=group.objective.at(state.weights))
                if self.store.due():
                    self.store.save(self.results | group.state.arrays() | dict(members=group.members))
        self.store.save(self.results | dict(members=np.zeros(0, dtype=np.int64)))
        return self.dataset()

    @property
    def done(self):
        """Number of runs that have ended."""
        return int((self.results["status"] >= 0).sum())

    def resume(self):
        """What a checkpoint holds: results, and the group that was being trained, or None."""
        saved = self.store.load()
        if saved is None:
            return None
        self.results = {name: saved[name] for name in self.results}
        if not len(saved["members"]):
            return None
        return self.begin(saved["members"], self.integrator.State.of(saved, self.place))

    def next_group(self):
        """The first runs that wait, at their initial weights, or None."""
        waiting = np.flatnonzero(self.results["status"] < 0)
        return self.begin(waiting[: self.group]) if len(waiting) else None

    def begin(self, members, state=None):
        """The group of some runs, at their initial weights or at a given state."""
        initial = torch.stack([self.initial(k) for k in members]).to(*self.place)
        network, weights = self.network.dual(initial) if self.network.dual_pays else (self.network, initial)
        objective = Objective(network, self.y, self.place.tensor(self.stop.target))
        position = objective.at(weights if state is None else state.weights)
        state = self.integrator.start(objective, position) if state is None else state
        return _Group(members, initial, objective, state, position)

    def initial(self, member):
        """Initial weights of one run, the same on every device and in every precision: (D,) in float64."""
        stream = seeds.rng(self.seed, self.label, "initial weights", self.first_run + int(member))
        return self.network.scaled(torch.from_numpy(stream.standard_normal(self.network.size)), self.shape.sigmas)

    def remaining(self, group, kept):
        """The group with the runs that go on, (R,) booleans; None if there is none."""
        rows = torch.from_numpy(kept).to(self.place.device)
        return self.begin(group.members[kept], group.state.rows(rows)) if kept.any() else None

    def collect(self, group, status):
        """Store the results of the runs that have a status."""
        ended = torch.from_numpy(status >= 0).to(self.place.device)
        rows, status = group.members[status >= 0], status[status >= 0]
        weights = group.state.weights[ended]
        if self.network.dual_pays:
            weights = self.network.direct(weights, group.initial[ended])
        predicted, overlap = self.test_network.predict(weights), self.network.readout_statistics(weights)
        self.results["prediction"][rows] = to_numpy(predicted).reshape(-1, *self.layout.prediction.values())
        self.results["U"][rows] = to_numpy(overlap).reshape(-1, *self.layout.readout.values())
        self.results["train_mse"][rows] = to_numpy(group.position.mse[ended])
        self.results["steps"][rows] = to_numpy(group.state.steps[ended])
        self.results["status"][rows] = status
        for name in ("prediction", "U"):
            self.results[name][rows[status == DIVERGED]] = np.nan

    def dataset(self):
        results = self.results
        flags = dict(flag_values=list(range(len(STATUS))), flag_meanings=" ".join(STATUS))
        failed = int(np.isin(results["status"], (DIVERGED, UNFINISHED)).sum())
        found = xr.Dataset(
            {
                "prediction": (("run", *self.layout.prediction), results["prediction"]),
                "train_mse": ("run", results["train_mse"]),
                "steps": ("run", results["steps"]),
                "status": ("run", results["status"], flags),
                "U": (("run", *self.layout.readout), results["U"]),
            },
            coords={"run": np.arange(self.first_run, self.first_run + self.runs)},
            attrs=self.attributes | dict(failed=failed),
        )
        return described(found, RUNS)


@dataclass(frozen=True)
class _Stop:
    """When a run ends: training errors that are reached or have exploded, and a number of steps."""

    target: float
    reached: int  # the status of a run that has come to the target
    exploded: float
    max_steps: int

    @classmethod
    def at(cls, floor, y, training):
        # where the floor is the tolerance itself, only infinite time would do
        high = floor >= 0.999 * training.tolerance
        target = floor + training.tolerance if high else training.tolerance
        exploded = EXPLODED * max(np.mean(y**2), training.tolerance)
        return cls(target, FLOOR if high else CONVERGED, exploded, training.step_limit)

    def judge(self, group):
        """The status of each run, -1 while it goes on: (R,)."""
        mse, state = group.position.mse, group.state
        reached = mse <= group.objective.target
        lost = ~mse.isfinite() | (mse > self.exploded) | (state.stuck & ~reached)
        status = torch.where(state.steps >= self.max_steps, UNFINISHED, -1)
        status = torch.where(lost, DIVERGED, torch.where(reached, self.reached, status))
        # the one look at the device that every step needs
        return to_numpy(status.to(torch.int8))
