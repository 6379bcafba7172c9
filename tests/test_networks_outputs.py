"""Networks with several outputs, and with widths and priors that differ from layer to layer."""

import math
import warnings
from itertools import pairwise

import numpy as np
import pytest
import torch

from ggdln.core.diagnostics import rhat_and_ess
from ggdln.core.errors import InputError
from ggdln.core.seeds import rng as stream
from ggdln.networks.checkpoint import Checkpoint
from ggdln.networks.data import training_floor
from ggdln.networks.device import Place
from ggdln.networks.gibbs import sample_posterior
from ggdln.networks.langevin import langevin
from ggdln.networks.network import GatedNetwork, ReluNetwork
from ggdln.networks.settings import Network, Runtime, Sampling, Training, floats_per_run, weight_count
from ggdln.networks.status import CONVERGED, FLOOR
from ggdln.networks.training import train_ensemble, train_relu
from ggdln.theory.gp import gp_limit
from ggdln.theory.kernels import input_kernel

PLACE = Place(torch.device("cpu"), torch.float64)
DOUBLE = Runtime(dtype="float64")
WIDTHS = {1: (4,), 2: (4, 6), 3: (4, 6, 3)}


def task(points=8, inputs=5, gate_count=3, tests=6, outputs=2, seed=0):
    """Gaussian inputs, gates 1/2 or 3/2, random labels (P, C)."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((points + tests, inputs))
    g = 0.5 + (x @ rng.standard_normal((inputs, gate_count)) > 0)
    return x[:points], g[:points], np.sign(rng.standard_normal((points, outputs))), x[points:], g[points:]


def by_definition(layers, x, g):
    """f (P, C) of a gated network, from W_1 (N_1, N0), W_l (N_l, M, N_{l-1}) and a (M, C, N_L), one gate at a time."""
    first, *hidden, readout = layers
    M = g.shape[1]
    h = x @ first.T / math.sqrt(x.shape[1])
    for layer in hidden:
        h = sum(g[:, m : m + 1] * (h @ layer[:, m].T) for m in range(M)) / math.sqrt(h.shape[1] * M)
    return sum(g[:, m : m + 1] * (h @ readout[m].T) for m in range(M)) / math.sqrt(h.shape[1] * M)


def shapes(inputs, gate_count, widths, outputs):
    """Shapes of the layers as `by_definition` takes them, in the order of the flat weights."""
    hidden = [(above, gate_count, below) for below, above in pairwise(widths)]
    return [(widths[0], inputs), *hidden, (gate_count, outputs, widths[-1])]


def split(weights, sizes):
    """Layers of flat weights (..., D)."""
    ends = np.cumsum([math.prod(size) for size in sizes])
    starts = [0, *ends[:-1]]
    return [weights[..., a:b].reshape(*weights.shape[:-1], *size) for a, b, size in zip(starts, ends, sizes, strict=True)]


def cases():
    """Networks of two outputs with layers of different widths, and what they are by definition, flat over pairs."""
    x, g, *_ = task()
    tx, tg = torch.tensor(x), torch.tensor(g)
    for depth, widths in [*WIDTHS.items(), (1, (60,))]:
        sizes = shapes(5, 3, widths, 2)
        network = GatedNetwork.of(x, g, Network(widths, depth), PLACE, 2)
        assert network.products_pay == (widths == (60,))
        yield f"gated-{depth}-{widths[0]}", network, lambda w, s=sizes: by_definition(split(w, s), tx, tg).flatten()

    def relu(w):
        first, readout = split(w, [(7, 5), (2, 7)])
        return (torch.relu(tx @ first.T / math.sqrt(5)) @ readout.T / math.sqrt(7)).flatten()

    yield "relu", ReluNetwork.of(x, None, Network(7), PLACE, 2), relu


@pytest.mark.parametrize(("network", "definition"), [pytest.param(n, d, id=i) for i, n, d in cases()])
def test_tangent_map_of_two_outputs_is_that_of_autograd(network, definition):
    """f, J v, J^T u and J J^T over pairs of input and output, in direct and dual coordinates, are those of autograd."""
    generator = torch.Generator().manual_seed(1)
    weights, v = (torch.randn(3, network.size, generator=generator, dtype=torch.float64) for _ in range(2))
    u = torch.randn(3, 16, generator=generator, dtype=torch.float64)
    jacobian = torch.stack([torch.autograd.functional.jacobian(definition, w) for w in weights])
    local = network.linearize(weights)
    torch.testing.assert_close(local.f, torch.stack([definition(w) for w in weights]))
    torch.testing.assert_close(network.predict(weights), local.f)
    torch.testing.assert_close(local.jvp(v), torch.einsum("rpd,rd->rp", jacobian, v))
    torch.testing.assert_close(local.vjp(u), torch.einsum("rpd,rp->rd", jacobian, u))
    torch.testing.assert_close(local.kernel(), jacobian @ jacobian.mT)
    view, coordinates = network.dual(weights)
    dual = view.linearize(coordinates)
    torch.testing.assert_close(dual.kernel(), local.kernel())
    torch.testing.assert_close(dual.jvp(dual.vjp(u)), local.jvp(local.vjp(u)))
    torch.testing.assert_close(network.direct(coordinates - dual.vjp(u), weights), weights - local.vjp(u))


@pytest.mark.parametrize("depth", WIDTHS)
def test_weights_are_counted_without_making_them(depth):
    """The count is the size of the network, and one of (P, P) matrices knows that they are over pairs."""
    x, g, *_ = task()
    shape = Network(WIDTHS[depth], depth)
    assert weight_count(5, 3, shape, 2) == GatedNetwork.of(x, g, shape, PLACE, 2).size
    assert floats_per_run(8, 5, 3, shape, 2) > 6 * weight_count(5, 3, shape, 2) + 5 * 16**2


CALLS = {
    "flow": lambda x, g, y, x_test, g_test, **network: train_ensemble(
        x, g, y, x_test, g_test, **network, runs=2, seed=3, training=Training(tolerance=0.05)
    ),
    "descent": lambda x, g, y, x_test, g_test, **network: train_ensemble(
        x, g, y, x_test, g_test, **network, runs=2, seed=3, training=Training("descent", tolerance=0.05), runtime=DOUBLE
    ),
    "relu": lambda x, g, y, x_test, g_test, **network: train_relu(x, y, x_test, width=30, runs=2, seed=3),
    "gibbs": lambda *data, **network: sample_posterior(
        *data, **network, temperature=0.1, seed=3, sampling=Sampling(chains=3, draws=12, warmup=3)
    ),
    "langevin": lambda *data, **network: langevin(
        *data, **network, temperature=0.1, seed=3, sampling=Sampling(chains=3, draws=12, warmup=40, thin=3), runtime=DOUBLE
    ),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("depth", [1, 2])
def test_one_column_of_labels_is_labels_without_columns(call, depth):
    """y (P, 1) gives every bit of y (P,), with dimensions for its one output."""
    x, g, y, x_test, g_test = task(outputs=1)
    network = dict(width=8, depth=depth, sigma=0.9)
    flat = CALLS[call](x, g, y[:, 0], x_test, g_test, **network)
    column = CALLS[call](x, g, y, x_test, g_test, **network)
    first = flat.prediction.dims[:-1]
    assert column.prediction.dims == (*first, "test", "output")
    assert column.U.dims == (first[0], "m", "output", "n", "output2")
    assert column.squeeze(["output", "output2"]).identical(flat)


def pairs(x, g, outputs):
    """Inputs repeated for each output, and gates g (x) e_c, scaled for the number of them: one sample for each pair."""
    return np.repeat(x, outputs, axis=0), math.sqrt(outputs) * np.kron(g, np.eye(outputs))


@pytest.mark.parametrize("call", ["flow", "descent", "gibbs", "langevin"])
def test_outputs_are_gates_of_a_network_with_one(call):
    """At depth 1, C outputs with gates g are one output with gates g (x) e_c: from the same random numbers, the same results."""
    x, g, y, x_test, g_test = task(outputs=3)
    network = dict(width=8, sigma=(0.9, 1.2))
    several = CALLS[call](x, g, y, x_test, g_test, **network)
    one = CALLS[call](*pairs(x, g, 3), y.ravel(), *pairs(x_test, g_test, 3), **network)
    allowed = dict(rtol=1e-3, atol=1e-4) if call == "flow" else dict(rtol=1e-7, atol=1e-9)  # flow is in float32 here
    np.testing.assert_allclose(several.prediction, one.prediction.values.reshape(several.prediction.shape), **allowed)
    np.testing.assert_allclose(several.U, one.U.values.reshape(several.U.shape), **allowed)
    np.testing.assert_allclose(several.train_mse, one.train_mse, **allowed)
    np.testing.assert_array_equal(several.status, one.status)
    if "rhat" in several:
        assert several.rhat.dims == several.ess.dims == ("test", "output")
        rhat, ess = rhat_and_ess(several.prediction.sel(output=1))
        np.testing.assert_array_equal(several.rhat.sel(output=1), rhat)
        np.testing.assert_array_equal(several.ess.sel(output=1), ess)


DEEP = dict(width=(3, 5), depth=2, sigma=(1.1, 0.7, 1.4))


def moments(chains):
    """<f>, <f f'> between the outputs and <U>, by chain: (chain, ...)."""
    f = chains.prediction.values.astype(float)
    products = np.einsum("kdtc,kdte->ktce", f, f) / f.shape[1]
    return np.concatenate([part.reshape(len(f), -1) for part in (f.mean(1), products, chains.U.values)], axis=1)


def test_the_exact_sampler_agrees_with_importance_sampling():
    """Two outputs, unequal widths and priors: a million draws from the prior, weighted by the likelihood, give its moments."""
    x, g, y, x_test, g_test = task(points=2, inputs=2, gate_count=2, tests=2)
    temperature = 0.4
    sampling = Sampling(chains=40, draws=600, warmup=20)
    chains = sample_posterior(x, g, y, x_test, g_test, **DEEP, temperature=temperature, seed=0, sampling=sampling)
    every_x, every_g = np.concatenate([x, x_test]) / math.sqrt(2), np.concatenate([g, g_test])

    rng, batches = np.random.default_rng(1), []
    for _ in range(20):
        sizes = shapes(2, 2, DEEP["width"], 2)
        first, hidden, readout = (
            s * rng.standard_normal((10_000, *size)) for s, size in zip(DEEP["sigma"], sizes, strict=True)
        )
        h = np.einsum("rij,pj->rpi", first, every_x)
        z = (every_g[:, :, None] * h[:, :, None]).reshape(len(h), 4, -1)
        h = z @ hidden.reshape(len(h), 5, -1).swapaxes(1, 2) / math.sqrt(3 * 2)
        f = np.einsum("pm,rmci,rpi->rpc", every_g, readout, h, optimize=True) / math.sqrt(5 * 2)
        likelihood = np.exp(-np.square(f[:, :2] - y).sum((1, 2)) / (2 * temperature))
        f = f[:, 2:]
        products, U = np.einsum("rtc,rte->rtce", f, f), np.einsum("rmci,rndi->rmcnd", readout, readout) / 5
        values = np.concatenate([part.reshape(len(f), -1) for part in (f, products, U)], axis=1)
        batches.append(np.append(likelihood @ values, likelihood.sum()))
    batches = np.array(batches)
    expected = batches[:, :-1].sum(0) / batches[:, -1].sum()
    spread = (batches[:, :-1] - expected * batches[:, -1:]) / batches[:, -1].mean()
    sampled = moments(chains)
    error = np.hypot(sampled.std(0, ddof=1) / math.sqrt(40), spread.std(0, ddof=1) / math.sqrt(20))
    assert (error < 0.1).all()
    assert (np.abs(sampled.mean(0) - expected) < 5 * error).all()


def test_langevin_agrees_with_the_exact_sampler():
    """Two outputs, unequal widths and priors: both have the same moments, within errors and the step's 2 %; not with one prior."""
    data = task(points=5, inputs=4, gate_count=2, tests=3)
    arguments, chains = dict(**DEEP, temperature=1.0, seed=0), 96

    def distances(**change):
        other = moments(sample_posterior(*data, **(arguments | change), sampling=Sampling(chains=chains, draws=300, warmup=50)))
        gap = np.abs(moved.mean(0) - other.mean(0)) - 0.02 * np.abs(other.mean(0))
        return gap / np.sqrt((moved.var(0, ddof=1) + other.var(0, ddof=1)) / chains)

    moved = moments(langevin(*data, **arguments, step=0.1, sampling=Sampling(chains=chains, draws=150, warmup=600, thin=20)))
    assert distances().max() < 4.5
    assert distances(sigma=1.1).max() > 10


def test_outputs_of_a_wide_network_are_separate_regressions():
    """At N = 2000 each output is the Gaussian process of its own labels: <f> to 0.05, var f to 15 %, no correlation of two."""
    data = x, g, y, x_test, g_test = task(points=10, inputs=8)
    y[:, 1] = y[:, 0] * np.where(np.arange(10) < 2, -1, 1)  # two outputs with much in common
    sampling = Sampling(chains=4, draws=150, warmup=20)

    def predictions(width):
        chains = sample_posterior(*data, width=width, sigma=0.8, temperature=0.05, seed=0, sampling=sampling)
        return chains.prediction.values.reshape(-1, len(x_test), 2), chains.U.mean("chain").values

    f, U = predictions(2000)
    for c in range(2):
        mean, variance = gp_limit(x, g, y[:, c], sigma=0.8, temperature=0.05).predict(x_test, g_test)
        np.testing.assert_allclose(f[..., c].mean(0), mean, atol=0.05)
        np.testing.assert_allclose(f[..., c].var(0), variance, rtol=0.15)
    correlation = [np.corrcoef(f[:, t, 0], f[:, t, 1])[0, 1] for t in range(len(x_test))]
    assert np.abs(correlation).max() < 5 / math.sqrt(len(f))
    assert np.abs(U[:, 0, :, 1]).max() < 0.03
    _, U = predictions(10)
    assert np.abs(U[:, 0, :, 1]).max() > 0.3


def test_each_layer_has_its_own_prior():
    """M = 1, g = 1, T -> 0: U is the root of N u^2/sigma_2^2 + (P - N) u - y K0^-1 y = 0 with sigma_1 in K0, not the reverse."""
    rng = np.random.default_rng(1)
    points, inputs, width = 30, 60, 300
    x, x_test = rng.standard_normal((points, inputs)), rng.standard_normal((2, inputs))
    y = 2 * np.sign(rng.standard_normal(points))
    data = x, np.ones((points, 1)), y, x_test, np.ones((2, 1))

    def root(first, last):
        power = y @ np.linalg.solve(input_kernel(x, sigma=first), y)
        return max(np.roots([width / last**2, points - width, -power]))

    sampling = Sampling(chains=4, draws=100, warmup=30)
    for sigma in ((0.9, 0.4), (0.4, 0.9)):
        result = sample_posterior(*data, width=width, sigma=sigma, temperature=1e-8, seed=0, sampling=sampling)
        assert result.U.mean().item() == pytest.approx(root(*sigma), rel=0.02)
        assert abs(root(*sigma) / root(*sigma[::-1]) - 1) > 0.5


def test_layers_of_a_hot_linear_network():
    """M = 1, g = 1, T -> infinity: <f^2> = prod sigma_l^2 |x|^2/N0, <f^4>/<f^2>^2 = 3 (1 + 2/N_1)(1 + 2/N_2)."""
    x = np.random.default_rng(3).standard_normal((3, 4))
    sampling = Sampling(chains=200, draws=250, warmup=1)
    data = x[:2], np.ones((2, 1)), np.ones(2), x[2:], np.ones((1, 1))
    network = dict(width=(20, 5), depth=2, sigma=(0.5, 2.0, 1.5))
    f = sample_posterior(*data, **network, temperature=1e12, seed=0, sampling=sampling).prediction.values.ravel()
    assert np.mean(f**2) == pytest.approx((0.5 * 2.0 * 1.5) ** 2 * np.sum(x[2] ** 2) / 4, rel=0.05)
    assert np.mean(f**4) / np.mean(f**2) ** 2 == pytest.approx(3 * 1.1 * 1.4, rel=0.1)


def test_training_starts_from_the_standard_deviation_of_each_layer():
    """A run that needn't train predicts what the network is by definition, at the stream's numbers times sigma_l."""
    x, g, y, x_test, g_test = task()
    sizes = shapes(5, 3, DEEP["width"], 2)
    numbers = stream(4, "train_ensemble", "initial weights", 1).standard_normal(sum(math.prod(size) for size in sizes))
    layers = [sigma * layer for sigma, layer in zip(DEEP["sigma"], split(numbers, sizes), strict=True)]
    training = Training(tolerance=1e6, first_run=1)
    result = train_ensemble(x, g, y, x_test, g_test, **DEEP, runs=1, seed=4, training=training, runtime=DOUBLE)
    assert result.steps == 0
    np.testing.assert_allclose(result.prediction[0], by_definition(layers, x_test, g_test), rtol=1e-12)
    np.testing.assert_allclose(result.U[0], np.einsum("mci,ndi->mcnd", layers[2], layers[2]) / 5, rtol=1e-12)


def test_chains_start_from_the_prior_of_each_layer():
    """Langevin chains that hardly move have U = sigma_3^2 I on average, and predict with the variance of the prior."""
    x, g, y, x_test, g_test = task()
    sampling = Sampling(chains=4000, draws=1, warmup=1, thin=1)
    result = langevin(x, g, y, x_test, g_test, **DEEP, temperature=1e-9, seed=0, step=1e-9, sampling=sampling)
    expected = np.multiply.outer(np.eye(3), np.eye(2)).swapaxes(1, 2) * DEEP["sigma"][2] ** 2
    np.testing.assert_allclose(result.U.mean("chain"), expected, atol=0.08)
    variance = np.prod(DEEP["sigma"]) ** 2 * np.square(g_test).mean(1) ** 2 * np.square(x_test).mean(1)
    np.testing.assert_allclose(result.prediction.var(("chain", "draw", "output")), variance, rtol=0.12)


@pytest.mark.parametrize("inputs", [11, 30])
def test_flow_of_two_outputs_agrees_with_small_step_descent(inputs):
    """In direct (N0 = 11) and dual (N0 = 30) coordinates, at equal training error: the same predictions within 1 %."""
    data = task(points=20, inputs=inputs)
    arguments = dict(width=(20, 12), depth=2, sigma=(1.0, 0.8, 1.2), runs=2, seed=1)
    flow = train_ensemble(*data, **arguments, training=Training(tolerance=0.05, accuracy=0.01))
    descent = train_ensemble(*data, **arguments, training=Training("descent", tolerance=0.05, step=0.2))
    assert (flow.status == CONVERGED).all()
    assert (descent.status == CONVERGED).all()
    for name in ("prediction", "U"):
        assert np.linalg.norm(flow[name] - descent[name]) < 0.01 * np.linalg.norm(descent[name])


def test_the_floor_is_the_mean_of_those_of_the_outputs():
    """More inputs than features, one of them without gates: training of all outputs ends at the mean of their least errors."""
    x, g, y, x_test, g_test = task(points=30, inputs=4, gate_count=2)
    g[0] = 0
    floors = [training_floor(x, g, y[:, c], 1) for c in range(2)]
    assert min(floors) > 0.1
    assert training_floor(x, g, y, 1) == pytest.approx(np.mean(floors), rel=1e-12)
    result = train_ensemble(x, g, y, x_test, g_test, width=20, runs=1, seed=0)
    assert (result.status == FLOOR).all()
    assert np.mean(floors) < result.train_mse.item() <= np.mean(floors) + 1.001e-3
    assert result.dead_inputs == 1


@pytest.mark.parametrize("call", ["flow", "descent", "gibbs", "langevin"])
def test_a_checkpoint_half_way_gives_the_same_bits(call, tmp_path, monkeypatch):
    """Two outputs and unequal widths and priors: a call that was broken off goes on to the same result."""
    function, settings = {
        "flow": (train_ensemble, dict(runs=2, training=Training(tolerance=0.05))),
        "descent": (train_ensemble, dict(runs=2, training=Training("descent", tolerance=0.5))),
        "gibbs": (sample_posterior, dict(temperature=0.1, sampling=Sampling(chains=2, draws=12, warmup=3))),
        "langevin": (langevin, dict(temperature=0.1, sampling=Sampling(chains=2, draws=12, warmup=40, thin=3))),
    }[call]
    saves, save, limit = 0, Checkpoint.save, math.inf

    def run(name):
        runtime = Runtime(checkpoint=tmp_path / name, checkpoint_seconds=0.0)
        return function(*task(points=10), **DEEP, **settings, seed=3, runtime=runtime)

    def counted(self, state):
        nonlocal saves
        saves += 1
        if saves > limit:
            raise KeyboardInterrupt
        save(self, state)

    monkeypatch.setattr(Checkpoint, "save", counted)
    unbroken, total = run("unbroken"), saves
    saves, limit = 0, total // 2
    with pytest.raises(KeyboardInterrupt):
        run("broken")
    saves, limit = 0, math.inf
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)  # an ignored checkpoint would warn
        resumed = run("broken")
    assert 4 < saves == total - total // 2
    assert resumed.identical(unbroken)
    assert np.isfinite(unbroken.prediction).all()


def test_attributes_hold_what_was_given():
    """A scalar stays one; numbers of layers are a tuple."""
    call = dict(temperature=0.1, seed=0, sampling=Sampling(chains=1, draws=4, warmup=1))
    result = sample_posterior(*task(), width=[3, np.int64(5)], depth=2, sigma=1, **call)
    assert (result.width, result.depth, result.sigma) == ((3, 5), 2, 1.0)
    result = sample_posterior(*task(), width=4, depth=1, sigma=np.array([1, 0.5]), **call)
    assert (result.width, result.sigma) == (4, (1.0, 0.5))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(width=(5, 6)), r"width: expected a whole number >= 1 or one for each of the 3 hidden layers, got \(5, 6\)"),
        (dict(width=[5, 6, 0]), r"width: .* one for each of the 3 hidden layers, got \[5, 6, 0\]"),
        (dict(width=(5, 6, "7")), "width: .* one for each of the 3 hidden layers, got"),
        (dict(width=(5, (6, 7), 8)), "width: .* one for each of the 3 hidden layers, got"),
        (dict(width=()), r"width: .* one for each of the 3 hidden layers, got \(\)"),
        (dict(width="567"), "width: expected a whole number >= 1, got '567'"),
        (
            dict(sigma=(1, 2, 3)),
            r"sigma: expected a number in \(0, inf\) or one for each of the 4 layers of weights, got \(1, 2",
        ),
        (dict(sigma=np.zeros(4)), r"sigma: .* one for each of the 4 layers of weights, got array\(\[0., 0., 0., 0.\]\)"),
        (dict(sigma=(1, math.nan, 1, 1)), "sigma: .* one for each of the 4 layers of weights, got"),
        (dict(sigma=0), r"sigma: expected a number in \(0, inf\), got 0"),
    ],
)
def test_wrong_numbers_of_layers_are_named(change, message):
    """Too few, zero, text or nested: refused with the name, the value and what is accepted, before anything runs."""
    for function, more in (
        (train_ensemble, dict(runs=1)),
        (langevin, dict(temperature=1)),
        (sample_posterior, dict(temperature=1)),
    ):
        with pytest.raises(InputError, match=message):
            function(*task(), **(dict(width=5, depth=3, seed=0) | more | change))


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.ones((8, 2, 1)), r"y: expected 1 or 2 dimension\(s\), got shape \(8, 2, 1\)"),
        (np.ones((2, 8)), "y: 2 labels for 8 rows of x"),
        (np.ones((8, 0)), r"y: shape \(8, 0\) is empty"),
        ([["a", "b"]] * 8, "y: expected numbers"),
    ],
)
def test_wrong_labels_are_named(y, message):
    """Labels must be (P,) or (P, C)."""
    x, g, _, x_test, g_test = task()
    with pytest.raises(InputError, match=message):
        sample_posterior(x, g, y, x_test, g_test, width=5, temperature=1, seed=0)
    with pytest.raises(InputError, match=message):
        train_relu(x, y, x_test, width=5, runs=1, seed=0)
