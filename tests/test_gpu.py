"""Simulations on a CUDA device that isn't there (card.py): no step mixes devices, and all numbers are those of the CPU."""

import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from card import Card
from torch._subclasses.fake_tensor import FakeTensorDeviceMismatchError

from ggdln.core.errors import InputError
from ggdln.networks import device, network, training
from ggdln.networks.device import Place, group_size
from ggdln.networks.gibbs import sample_posterior
from ggdln.networks.langevin import langevin
from ggdln.networks.settings import Network, Runtime, Sampling, Training, floats_per_run
from ggdln.networks.training import train_ensemble, train_relu

SIMULATIONS = ("flow", "descent", "relu flow", "relu descent", "langevin", "gibbs")
"""All that moves weights."""


@pytest.fixture
def card(monkeypatch):
    """Makes a card that `Runtime(device=...)` finds by name."""

    def insert(name="cuda"):
        monkeypatch.setattr(device, "devices", lambda: ["cpu", "cuda", "cuda:0", "cuda:1", "mps"])
        return Card(name)

    return insert


def task(points=12, inputs=10, gate_count=3, tests=5, outputs=None, seed=0):
    """Inputs, 0/1 gates, labels (P,) or (P, C), test inputs and their gates."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((points + tests, inputs))
    g = (x @ rng.standard_normal((inputs, gate_count)) > 0).astype(float)
    g[:, 0] = 1
    y = rng.standard_normal((points, outputs) if outputs else points)
    return x[:points], g[:points], y, x[points:], g[points:]


def simulate(what, *, where="cpu", runs=3, steps=6, depth=1, width=6, sigma=0.8, dtype="float64", data=None, **runtime):
    """So many steps of some runs or chains."""
    data, where = data or task(), Runtime(device=where, dtype=dtype, **runtime)
    shape, kept = dict(width=width, depth=depth, sigma=sigma), Sampling(chains=runs, draws=4, warmup=steps, thin=1)
    x, _, y, x_test, _ = data
    if what == "langevin":
        return langevin(*data, temperature=0.1, seed=1, sampling=kept, runtime=where, **shape)
    if what == "gibbs":
        return sample_posterior(*data, temperature=0.1, seed=1, sampling=kept, runtime=where, **shape)
    how = Training(what.split()[-1], max_steps=steps, tolerance=1e-6)
    if what.startswith("relu"):
        return train_relu(x, y, x_test, width=width, sigma=sigma, runs=runs, seed=1, training=how, runtime=where)
    return train_ensemble(*data, runs=runs, seed=1, training=how, runtime=where, **shape)


def cases():
    for what in SIMULATIONS:
        for depth in (1,) if "relu" in what else (1, 2, 3):
            yield pytest.param(what, dict(depth=depth), id=f"{what}, depth {depth}")
        yield pytest.param(what, dict(data=task(outputs=2)), id=f"{what}, two outputs")
        # more inputs than dimensions: W_1 is kept as it is
        yield pytest.param(what, dict(data=task(points=20, inputs=4)), id=f"{what}, many inputs")
        if what in ("flow", "descent", "langevin"):
            # many units: layers are multiplied with each other first
            yield pytest.param(what, dict(data=task(points=20, inputs=4, outputs=2), width=60), id=f"{what}, by products")
        if "relu" not in what:
            yield pytest.param(what, dict(depth=2, width=(6, 4), sigma=(0.5, 1.0, 0.8)), id=f"{what}, layers that differ")


def same(found, expected):
    for name in expected.data_vars:
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-6, atol=1e-9, err_msg=name)


@pytest.mark.parametrize(("what", "change"), cases())
def test_a_batch_on_the_device_has_the_numbers_of_single_runs_on_the_cpu(what, change, card):
    with card() as used:
        found = simulate(what, where="cuda", **change)
    same(found, simulate(what, **change))
    assert used.counts["to the device"]
    assert not used.bytes, "something stays on the device"


@pytest.mark.parametrize("what", SIMULATIONS)
@pytest.mark.parametrize("name", ["cuda:1", "mps"])
def test_other_devices_by_name(what, name, card):
    """The second card; and mps, where single precision is all there is and the CPU does part of the linear algebra."""
    with card(name):
        found = simulate(what, where=name, dtype="float32")
    for variable in ("prediction", "U"):
        np.testing.assert_allclose(found[variable], simulate(what, dtype="float32")[variable], rtol=2e-3, atol=2e-3)


def test_mps_refuses_the_precision_it_lacks(card):
    with card("mps"), pytest.raises(InputError, match="'float64' doesn't exist on the device 'mps'"):
        simulate("gibbs", where="mps", dtype=None)


@pytest.mark.parametrize("what", SIMULATIONS)
def test_a_tensor_left_on_the_host_is_noticed(what, card, monkeypatch):
    """Labels that never went to the device meet there what did."""
    place = Place.tensor
    monkeypatch.setattr(Place, "tensor", lambda self, x: torch.tensor(x) if np.shape(x) == (12,) else place(self, x))
    with card(), pytest.raises(FakeTensorDeviceMismatchError, match="two devices"):
        simulate(what, where="cuda")


NEEDED = {
    # what the host asks in one step: (tensors sent to the device, tensors fetched, values looked at)
    "descent": (0, 1, 1),
    "relu descent": (0, 1, 1),
    "langevin": (1, 0, 0),
    "gibbs": (4, 0, 2),
}


@pytest.mark.parametrize("what", NEEDED)
def test_the_host_waits_no_more_often_than_a_step_needs(what, card):
    """Langevin and Gibbs steps get their random numbers from the host, the same on every device."""

    def counts(steps):
        with card() as used:
            simulate(what, where="cuda", steps=steps)
        return np.array([used.counts[name] for name in ("to the device", "to the host", "looks at a value")])

    assert tuple((counts(30) - counts(10)) / 20) == NEEDED[what]


@pytest.mark.parametrize("what", ["flow", "relu flow"])
def test_a_step_of_the_flow_looks_twice_at_each_trial(what, card, monkeypatch):
    """And once at its length, and in eigh; its end fetches one tensor. Steps and trials are counted as they are made."""
    steps, trials = [], []
    advance, trial = training.Flow.advance, training.Flow._trial
    monkeypatch.setattr(training.Flow, "advance", lambda *a: (steps.append(0), advance(*a))[1])
    monkeypatch.setattr(training.Flow, "_trial", lambda *a: (trials.append(0), trial(*a))[1])
    with card() as used:
        simulate(what, where="cuda", runs=1, steps=4)
    ended = 4  # looks at which runs have ended, once, when their results are fetched
    assert used.counts["eigh"] == len(steps) == 4
    assert used.counts["looks at a value"] == len(steps) + 2 * len(trials) + ended
    assert used.counts["to the host"] == len(steps) + 1 + 4


@pytest.mark.parametrize("depth", [1, pytest.param(2, marks=pytest.mark.slow), 3])
@pytest.mark.parametrize("what", ["flow", "descent", "relu flow", "langevin", "gibbs"])
@pytest.mark.parametrize("sizes", [(40, 30, 4, 30), (60, 12, 8, 6)], ids=["wide", "narrow"])
def test_what_is_simulated_at_once_stays_within_its_memory(what, depth, sizes, card):
    """Five runs where three fit: as many are batched as the budget says, and tensors never take more than it."""
    if "relu" in what and depth > 1:
        pytest.skip("ReLU networks have one hidden layer")
    P, N0, M, N = sizes
    vectors = {"vectors": training.FLOW_VECTORS} if what not in ("langevin", "gibbs") else {}
    floats = floats_per_run(P, N0, 1 if "relu" in what else M, Network(N, depth), **vectors)
    budget = 3.5 * 4 * floats / 1e6
    data = task(points=P, inputs=N0, gate_count=M)
    with card() as used:
        simulate(what, where="cuda", dtype="float32", runs=5, steps=3, depth=depth, width=N, data=data, memory_mb=budget)
    assert group_size(Place(torch.device("cuda"), torch.float32), floats, budget) == 3
    assert 0.05 < used.peak / (budget * 1e6) < 1


@pytest.mark.parametrize("what", SIMULATIONS)
def test_a_state_saved_on_the_device_goes_on_there(what, card, tmp_path, monkeypatch):
    """Broken off at half of its saves, it ends with the same bits, on the device and not on the host."""
    saves, save, limit = 0, training.Checkpoint.save, np.inf

    def counted(self, state):
        nonlocal saves
        saves += 1
        if saves > limit:
            raise KeyboardInterrupt
        assert not any(isinstance(value, torch.Tensor) for value in state.values())
        save(self, state)

    def run(name):
        with card():
            return simulate(what, where="cuda", steps=8, checkpoint=tmp_path / name, checkpoint_seconds=0.0)

    monkeypatch.setattr(training.Checkpoint, "save", counted)
    unbroken, total = run("unbroken"), saves
    saves, limit = 0, total // 2
    with pytest.raises(KeyboardInterrupt):
        run("broken")
    saves, limit = 0, np.inf
    assert run("broken").identical(unbroken)
    assert saves == total - total // 2


def functions_of(folder):
    """Names of all functions of the modules that import torch, from their code."""
    found = set()

    def add(code, file):
        for constant in code.co_consts:
            if hasattr(constant, "co_code"):
                found.add((file.stem, constant.co_qualname))
                add(constant, file)

    for file in folder.glob("*.py"):
        if "import torch" in file.read_text():
            add(compile(file.read_text(), file, "exec"), file)
    # Without what stands in brackets, such as <lambda>, and the bodies of classes.
    return {(file, name) for file, name in found if not name.endswith(">") and not name.split(".")[-1].strip("_")[0].isupper()}


def test_every_function_of_the_simulations_runs_on_the_device(card, tmp_path, monkeypatch):
    """All but the one that asks torch which devices there are."""
    folder = Path(network.__file__).parent
    reached = set()

    def note(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(str(folder)):
            reached.add((Path(frame.f_code.co_filename).stem, frame.f_code.co_qualname))

    save, before = training.Checkpoint.save, sys.getprofile()

    def once(self, state):
        save(self, state)
        raise KeyboardInterrupt

    with card() as used:
        sys.setprofile(note)
        try:
            for what in SIMULATIONS:
                depth = 1 if "relu" in what else 2
                run = partial(
                    simulate, what, where="cuda", depth=depth, steps=3, checkpoint=tmp_path / what, checkpoint_seconds=0.0
                )
                with monkeypatch.context() as patch:
                    patch.setattr(training.Checkpoint, "save", once)
                    with pytest.raises(KeyboardInterrupt):
                        run()
                run()
            simulate("langevin", where="cuda", sigma=(0.5, 1.0), steps=1)
            simulate("flow", where="cuda", data=task(outputs=2), steps=12)
            simulate("flow", where="cuda", width=60, steps=2)
        finally:
            sys.setprofile(before)
    found = functions_of(folder)
    assert found - reached == {("device", "devices")}
    print(
        f"{len(found & reached)} of {len(found)} functions, by {len(used.functions)} operations of torch"
    )  # pytest -rP shows it


def test_the_check_of_a_gpu_says_that_there_is_none(root, capsys, monkeypatch):
    monkeypatch.syspath_prepend(root / "benchmarks")
    import gpu

    monkeypatch.setattr(gpu, "devices", lambda: ["cpu"])
    assert gpu.main([]) == 0
    assert "finds no GPU here" in capsys.readouterr().out
