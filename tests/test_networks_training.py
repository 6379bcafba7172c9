"""Trained ensembles: flow against descent and an ODE solver, the stop rule, and runs that cannot meet it."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from ggdln.core.errors import InputError
from ggdln.core.seeds import rng as stream
from ggdln.networks.data import training_floor
from ggdln.networks.device import Place
from ggdln.networks.flow import phi
from ggdln.networks.settings import Network, Runtime, Training
from ggdln.networks.status import CONVERGED, DIVERGED, FLOOR, UNFINISHED
from ggdln.networks.training import train_ensemble, train_relu


def task(points=40, inputs=30, gate_count=4, tests=25, seed=0, dead=0):
    """Clustered inputs (a wide kernel spectrum), random 0/1 gates, labels of a teacher; the first `dead` lack gates."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((6, inputs))
    x = centres[rng.integers(6, size=points + tests)] + 0.4 * rng.standard_normal((points + tests, inputs))
    g = (x @ rng.standard_normal((inputs, gate_count)) > 0).astype(float)
    g[(g == 0).all(1), 0] = 1
    g[:dead] = 0
    y = np.sign(np.maximum(x @ rng.standard_normal((inputs, 20)), 0) @ rng.standard_normal(20))
    return x[:points], g[:points], y[:points], x[points:], g[points:]


def distance(a, b):
    return np.linalg.norm(a - b) / np.linalg.norm(b)


@pytest.mark.parametrize(("depth", "sigma"), [(1, 0.4), (1, 1.5), (2, 1.0), (3, 1.0)])
def test_flow_agrees_with_small_step_descent(depth, sigma):
    """At equal training error the default flow and descent with step 0.1/lambda_max predict the same within 1 %."""
    arguments = dict(width=30, depth=depth, sigma=sigma, runs=2, seed=3)
    flow = train_ensemble(*task(), **arguments)
    descent = train_ensemble(*task(), training=Training("descent", step=0.1), **arguments)
    assert (flow.status == CONVERGED).all()
    assert (descent.status == CONVERGED).all()
    assert flow.steps.max() < descent.steps.min() / 20
    assert distance(flow.train_mse, descent.train_mse) < 0.1
    assert distance(flow.prediction.values, descent.prediction.values) < 0.01
    assert distance(flow.U.values, descent.U.values) < 0.01


def test_flow_converges_to_an_independent_ode_solver():
    """With small `accuracy` the flow meets scipy's Radau on dw/dt = -grad, written from the definition, to 1e-4."""
    x, g, y, x_test, g_test = task(points=12, inputs=8, gate_count=2, tests=6)
    width, sigma = 6, 0.5
    inputs, count = x.shape[1], g.shape[1]
    start = sigma * stream(5, "train_ensemble", "initial weights", 0).standard_normal(width * (inputs + count))

    def output(w, x, g):
        h = x @ w[: width * inputs].reshape(width, inputs).T / np.sqrt(inputs)
        return h, g @ w[width * inputs :].reshape(count, width) / np.sqrt(width * count)

    def velocity(_, w):
        h, c = output(w, x, g)
        e = (c * h).sum(1) - y
        readout = g.T @ (e[:, None] * h) / np.sqrt(width * count)
        return -np.concatenate([((e[:, None] * c).T @ x / np.sqrt(inputs)).ravel(), readout.ravel()])

    def exact(mse):
        """Test predictions of the ODE solver when it reaches the training error at which the flow stopped."""

        def excess(_, w):
            h, c = output(w, x, g)
            return np.mean(((c * h).sum(1) - y) ** 2) - mse

        excess.terminal = True
        solution = solve_ivp(velocity, (0, 1e4), start, method="Radau", rtol=1e-8, atol=1e-10, events=excess)
        h, c = output(solution.y[:, -1], x_test, g_test)
        return (c * h).sum(1)

    arguments = dict(width=width, sigma=sigma, runs=1, seed=5, runtime=Runtime(dtype="float64"))
    for accuracy, allowed in ((0.02, 1e-2), (1e-4, 1e-4)):
        training = Training(tolerance=0.05, accuracy=accuracy)
        flow = train_ensemble(x, g, y, x_test, g_test, training=training, **arguments)
        assert 0.045 < flow.train_mse.item() <= 0.05
        assert distance(flow.prediction.values[0], exact(flow.train_mse.item())) < allowed


def test_phi_functions_are_their_integrals():
    """phi_k(z) = int_0^1 e^{(1-s) z} s^{k-1}/(k-1)! ds, on both sides of the switch between series and recursion."""
    import torch

    z = -np.array([0.0, 1e-9, 0.3, 0.999, 1.001, 7.0, 300.0])
    nodes, weights = np.polynomial.legendre.leggauss(400)
    s, w = (nodes + 1) / 2, weights / 2
    for k, value in enumerate(phi(torch.tensor(z)), start=1):
        factorial = float(np.prod(range(1, k)))
        integral = (np.exp(np.outer(z, 1 - s)) * s ** (k - 1) / factorial * w).sum(1)
        np.testing.assert_allclose(value.numpy(), integral, rtol=1e-10)


@pytest.mark.parametrize("integrator", ["flow", "descent"])
def test_a_run_does_not_depend_on_its_company(integrator):
    """Run 3 of runs 0..3 has the same bits as the only run of a call that starts at run 3."""

    def train(runs, first_run=0):
        training = Training(integrator, first_run=first_run)
        return train_ensemble(*task(), width=20, sigma=0.7, runs=runs, seed=9, training=training)

    together, alone = train(4).sel(run=3), train(1, first_run=3).sel(run=3)
    assert together.drop_attrs().equals(alone.drop_attrs())
    assert not np.array_equal(together.prediction, train(1).prediction[0])


def test_a_batch_of_runs_equals_runs_one_at_a_time(monkeypatch):
    """The batched code of the GPU path gives the predictions of the one-run path, up to rounding."""
    from ggdln.networks import training

    for integrator in ("flow", "descent"):
        arguments = dict(width=20, sigma=0.7, seed=9, runs=3, training=Training(integrator), runtime=Runtime(dtype="float64"))
        single = train_ensemble(*task(), **arguments)
        monkeypatch.setattr(training, "group_size", lambda *_: 2)
        batched = train_ensemble(*task(), **arguments)
        monkeypatch.undo()
        np.testing.assert_array_equal(batched.steps, single.steps)
        np.testing.assert_allclose(batched.prediction, single.prediction, rtol=1e-6, atol=1e-9)


def test_precision_does_not_matter():
    """float32 and float64 start from the same weights and end within 0.1 %."""
    single, double = (
        train_ensemble(*task(), width=20, runs=2, seed=1, training=Training(accuracy=0.01), runtime=Runtime(dtype=dtype))
        for dtype in ("float32", "float64")
    )
    assert 0 < distance(single.prediction.values, double.prediction.values) < 1e-3


@pytest.mark.parametrize("integrator", ["flow", "descent"])
def test_inputs_without_gates_set_a_floor(integrator):
    """Two of forty inputs have no active gate: the floor is 2/40, runs stop 1e-3 above it and say so."""
    data = task(dead=2)
    result = train_ensemble(*data, width=20, runs=2, seed=0, training=Training(integrator))
    assert result.dead_inputs == 2
    assert result.floor == pytest.approx(2 / 40)
    assert (result.status == FLOOR).all()
    assert ((result.train_mse > result.floor) & (result.train_mse <= result.floor + 1e-3)).all()


@pytest.mark.parametrize(("depth", "gate_count", "real"), [(1, 2, False), (2, 3, False), (2, 2, True)])
def test_floor_is_the_least_squares_error_in_feature_space(depth, gate_count, real):
    """Above capacity the floor equals lstsq on explicit features g_m g_n x_j, and training gets to it."""
    x, g, y, x_test, g_test = task(points=40, inputs=3, gate_count=gate_count)
    if real:
        g, g_test = g + x[:, :2], g_test + x_test[:, :2]
    products = g if depth == 1 else np.einsum("pm,pn->pmn", g, g).reshape(len(g), -1)
    features = np.einsum("pk,pj->pkj", products, x).reshape(len(x), -1)
    fit = features @ np.linalg.lstsq(features, y, rcond=None)[0]
    floor = training_floor(x, g, y, depth)
    assert floor > 0.01
    assert floor == pytest.approx(np.mean((fit - y) ** 2), rel=1e-9)
    result = train_ensemble(x, g, y, x_test, g_test, width=20, depth=depth, runs=1, seed=0)
    assert (result.status == FLOOR).all()
    assert floor < result.train_mse.item() <= floor + 1.001e-3


def test_diverging_and_unfinished_runs_are_told_apart():
    """Descent beyond the edge of stability is `diverged` with NaN predictions; too few steps is `unfinished`."""
    arguments = dict(width=20, runs=2, seed=0)
    diverged = train_ensemble(*task(), training=Training("descent", step=3.0), **arguments)
    assert (diverged.status == DIVERGED).all()
    assert diverged.failed == 2
    assert diverged.prediction.isnull().all()
    assert diverged.U.isnull().all()
    short = train_ensemble(*task(), training=Training("descent", max_steps=5), **arguments)
    assert (short.status == UNFINISHED).all()
    assert short.failed == 2
    assert (short.train_mse > 1e-3).all()
    assert (short.steps == 5).all()


def test_a_network_too_narrow_for_the_labels_is_unfinished():
    """One hidden unit is a product a_m W_j of rank one: the flow rests above its target and says so."""
    result = train_ensemble(*task(), width=1, runs=2, seed=0, training=Training(max_steps=120))
    assert result.floor == 0
    assert (result.status == UNFINISHED).all()
    assert (result.train_mse > 0.01).all()


def test_relu_flow_agrees_with_small_step_descent():
    """The ReLU baseline: same initial weights, flow and small-step descent within 2 %, both at the stop rule."""
    x, _, y, x_test, _ = task()
    arguments = dict(width=50, sigma=0.5, runs=2, seed=2)
    flow = train_relu(x, y, x_test, **arguments)
    descent = train_relu(x, y, x_test, training=Training("descent", step=0.1), **arguments)
    assert (flow.status == CONVERGED).all()
    assert (descent.status == CONVERGED).all()
    assert (flow.train_mse <= 1e-3).all()
    assert (flow.train_mse > 0.8e-3).all()
    assert distance(flow.prediction.values, descent.prediction.values) < 0.02


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(sigma=0), r"sigma: expected a number in \(0, inf\), got 0"),
        (dict(width=2.5), "width: expected a whole number >= 1, got 2.5"),
        (dict(runs=0), "runs"),
        (dict(training="flow"), r"training: expected Training\(...\), got 'flow'"),
        (dict(tolerance=0.1), r"tolerance: .*did you mean training=Training\(tolerance=0.1\)"),
        (dict(device="cpu"), r"device: .*did you mean runtime=Runtime\(device='cpu'\)"),
        (dict(run=3), "run: .*accepted: width, depth, sigma, runs, seed, training, runtime; did you mean 'runs'"),
    ],
)
def test_wrong_arguments_are_named(change, message):
    """An argument out of range, or out of place, is refused with its name and what is accepted."""
    with pytest.raises(InputError, match=message):
        train_ensemble(*task(), **(dict(width=5, runs=1, seed=0) | change))


@pytest.mark.parametrize(
    ("group", "change", "message"),
    [
        (Training, dict(integrator="gd"), "integrator: expected 'flow' or 'descent', got 'gd'"),
        (Training, dict(accuracy=0), "accuracy"),
        (Training, dict(max_steps=0), "max_steps: expected a whole number >= 1, got 0"),
        (Runtime, dict(device="tpu"), "device: expected 'auto' or 'cpu' or 'cuda' or 'cuda:N' or 'mps', got 'tpu'"),
        (Runtime, dict(device="cuda:N"), "device: .*got 'cuda:N'"),
        (Runtime, dict(device="cuda:-1"), "device: .*got 'cuda:-1'"),
        (Runtime, dict(device=0), "device: .*got 0"),
        (Runtime, dict(dtype="float16"), "dtype: expected 'float32' or 'float64', got 'float16'"),
        (Runtime, dict(progress=3), r"progress: expected True or a function of \(done, total, rate, seconds_left\), got 3"),
        (Network, dict(width=True), "width"),
    ],
)
def test_settings_check_themselves(group, change, message):
    """A value out of range is refused where it is written."""
    with pytest.raises(InputError, match=message):
        group(**change)


@pytest.mark.parametrize(
    ("runtime", "count", "mps", "message"),
    [
        (dict(device="cuda"), 0, False, "device: 'cuda' was asked for, but torch finds only 'cpu' here"),
        (dict(device="cuda:1"), 1, False, "device: 'cuda:1' was asked for, but torch finds only 'cpu', 'cuda', 'cuda:0' here"),
        (dict(device="mps"), 0, False, "device: 'mps' was asked for, but torch finds only 'cpu' here"),
        (dict(device="mps", dtype="float64"), 0, True, "dtype: 'float64' doesn't exist on the device 'mps'"),
        (dict(device="cuda:1"), 2, False, "cuda:1"),
        (dict(device="auto"), 1, True, "cuda"),
        (dict(device="auto"), 0, True, "cpu"),
        (dict(device="mps"), 0, True, "mps"),
    ],
)
def test_a_device_is_taken_if_torch_has_it(runtime, count, mps, message, monkeypatch):
    """Names of devices on machines with so many CUDA devices, with or without mps: taken, or refused with what is there."""
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: count > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)
    if ": " in message:
        with pytest.raises(InputError, match=message):
            Place.of(Runtime(**runtime), "float32")
    else:
        assert str(Place.of(Runtime(**runtime), "float32").device) == message
