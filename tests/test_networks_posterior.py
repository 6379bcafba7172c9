"""The exact sampler and Langevin dynamics against closed forms, each other, and an independent sampler."""

import math
import warnings

import numpy as np
import pytest
import xarray as xr
from arviz_stats.base import array_stats

from ggdln.core.diagnostics import rhat_and_ess
from ggdln.core.errors import ConvergenceError, InputError
from ggdln.networks.gibbs import sample_posterior
from ggdln.networks.langevin import langevin
from ggdln.networks.settings import Runtime, Sampling, Step
from ggdln.theory.kernels import gp_variance, input_kernel


def task(points=8, inputs=5, gate_count=3, tests=6, seed=0):
    """Gaussian inputs, gates 1/2 or 3/2, random labels."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((points + tests, inputs))
    g = 0.5 + (x @ rng.standard_normal((inputs, gate_count)) > 0)
    y = np.sign(rng.standard_normal(points))
    return x[:points], g[:points], y, x[points:], g[points:]


def moments(dataset):
    """Posterior mean, variance and tr U by chain, (chain, 2 P_t + 1)."""
    f = dataset.prediction.astype(float)
    squares = (f - f.mean(("chain", "draw"))) ** 2
    return np.column_stack([f.mean("draw"), squares.mean("draw"), dataset.U_trace.mean("draw")])


def deviations(first, second, allowed=0.0):
    """Differences of the moments of two sets of chains, less a share `allowed` for a known bias, in standard errors."""
    a, b = moments(first), moments(second)
    error = np.sqrt(a.var(0, ddof=1) / len(a) + b.var(0, ddof=1) / len(b))
    gap = np.abs(a.mean(0) - b.mean(0))
    return np.maximum(gap - allowed * np.abs(b.mean(0)), 0) / error


def test_hot_posterior_is_the_prior():
    """At T -> infinity <f> = 0, var f = K_GP(x, x) and <U> = sigma^2 I, at depth 2."""
    x, g, y, x_test, g_test = task()
    sampling = Sampling(chains=4, draws=2000, warmup=2)
    result = sample_posterior(x, g, y, x_test, g_test, width=40, depth=2, sigma=0.8, temperature=1e9, seed=0, sampling=sampling)
    f = result.prediction.values.reshape(-1, len(x_test))
    spread = gp_variance(x_test, g_test, depth=2, sigma=0.8)
    assert (np.abs(f.mean(0)) < 5 * np.sqrt(spread / len(f))).all()
    np.testing.assert_allclose(f.var(0), spread, rtol=0.12)
    np.testing.assert_allclose(result.U.mean("chain"), 0.64 * np.eye(3), atol=0.01)


def test_linear_network_has_the_closed_form_order_parameter():
    """M = 1, g = 1, T -> 0: U is the positive root of N u^2/sigma^2 + (P - N) u - y K0^-1 y = 0 up to its own 1/N."""
    rng = np.random.default_rng(1)
    points, inputs, width, sigma = 30, 60, 300, 0.6
    x, x_test = rng.standard_normal((points, inputs)), rng.standard_normal((5, inputs))
    y = 2 * np.sign(rng.standard_normal(points))
    data = x, np.ones((points, 1)), y, x_test, np.ones((5, 1))
    sampling = Sampling(chains=4, draws=150, warmup=30)
    result = sample_posterior(*data, width=width, sigma=sigma, temperature=1e-8, seed=0, sampling=sampling)
    power = y @ np.linalg.solve(input_kernel(x, sigma=sigma), y)
    root = max(np.roots([width / sigma**2, points - width, -power]))
    assert abs(root / sigma**2 - 1) > 0.5
    assert result.mixed
    assert result.U.mean().item() == pytest.approx(root, rel=0.02)
    assert result.train_mse.max() < 1e-6


@pytest.mark.parametrize("depth", [1, 2])
def test_linear_network_predicts_the_least_norm_interpolation(depth):
    """M = 1, T -> 0: at any width the prior is isotropic in x, so <f> is exactly the least-norm interpolation."""
    rng = np.random.default_rng(2)
    x, x_test, y = rng.standard_normal((6, 10)), rng.standard_normal((4, 10)), rng.standard_normal(6)
    data = x, np.ones((6, 1)), y, x_test, np.ones((4, 1))
    sampling = Sampling(chains=8, draws=1000)
    result = sample_posterior(*data, width=5, depth=depth, temperature=1e-8, seed=0, sampling=sampling)
    means = result.prediction.mean("draw").values
    error = means.std(0, ddof=1) / np.sqrt(len(means))
    assert (error < 0.1).all()
    assert (np.abs(means.mean(0) - x_test @ np.linalg.lstsq(x, y, rcond=None)[0]) < 5 * error).all()


@pytest.mark.parametrize("depth", [1, 2, pytest.param(3, marks=pytest.mark.slow)])
def test_langevin_and_gibbs_sample_the_same_posterior(depth):
    """Means, variances, tr U agree to 4.5 standard errors, plus 2 % for Langevin's step; the prior's do not."""
    data = task(points=5)
    arguments = dict(width=5, depth=depth, sigma=0.8, temperature=0.3, seed=4)
    exact = sample_posterior(*data, sampling=Sampling(chains=16, draws=1000, warmup=50), **arguments)
    sampling = Sampling(chains=48, draws=200, thin=40, warmup=1000)
    descent = langevin(*data, step=0.1, sampling=sampling, **arguments)
    assert exact.mixed
    assert descent.mixed
    prior = sample_posterior(*data, sampling=Sampling(chains=16, draws=200), **(arguments | dict(temperature=1e9)))
    assert deviations(prior, exact).max() > 20
    assert (deviations(descent, exact, allowed=0.02) < 4.5).all()


def test_averaged_noise_takes_the_bias_of_a_long_step_away():
    """At a quarter of the stable step the training error is that of the posterior; with fresh noise it is 6 % larger."""
    data, sampling = task(points=5), Sampling(chains=48, draws=300, thin=10, warmup=300)
    arguments = dict(width=5, sigma=0.8, temperature=0.3, seed=4)
    exact = sample_posterior(*data, sampling=Sampling(chains=16, draws=1000, warmup=50), **arguments).train_mse
    averaged, fresh = (
        langevin(*data, step=Step(0.5, noise), sampling=sampling, **arguments).train_mse for noise in ("averaged", "fresh")
    )
    error = math.hypot(
        *(found.mean("draw").std("chain", ddof=1) / math.sqrt(found.sizes["chain"]) for found in (exact, averaged))
    )
    assert error < 0.02 * exact.mean()
    assert abs(averaged.mean() - exact.mean()) < min(4.5 * error, 0.03 * exact.mean())
    assert fresh.mean() > 1.04 * exact.mean()


@pytest.mark.slow
@pytest.mark.parametrize("depth", [1, 2])
def test_gibbs_agrees_with_nuts(depth):
    """NumPyro's NUTS on the network written from its definition, at temperature 0.1, samples the same posterior."""
    data = task()
    network, temperature = dict(width=5, depth=depth, sigma=0.9), 0.1
    exact = sample_posterior(*data, **network, temperature=temperature, seed=0, sampling=Sampling(chains=8, draws=1500))
    draws = nuts(data, temperature, chains=8, draws=700, seed=0, **network)
    exact_moments = moments(exact)
    mean = exact.prediction.mean(("chain", "draw")).values
    nuts_moments = np.column_stack([draws.mean(1), np.square(draws - mean).mean(1)])
    exact_moments = exact_moments[:, : nuts_moments.shape[1]]
    error = np.sqrt(nuts_moments.var(0, ddof=1) / 8 + exact_moments.var(0, ddof=1) / 8)
    assert (error / np.sqrt(exact.prediction.var()).item() < 0.2).all()
    assert (np.abs(nuts_moments.mean(0) - exact_moments.mean(0)) < 5 * error).all()


def nuts(data, temperature, *, width, depth, sigma, chains, draws, seed):
    """Test predictions (chain, draw, test) by NumPyro."""
    import jax
    import jax.numpy as jnp
    import numpyro
    import numpyro.distributions as dist

    x, g, y, x_test, g_test = data
    count, inputs = g.shape[1], x.shape[1]

    def output(first, hidden, readout, x, g):
        h = x @ first.T / np.sqrt(inputs)
        for layer in hidden:
            h = jnp.einsum("pm,mij,pj->pi", g, layer, h) / np.sqrt(width * count)
        return jnp.einsum("pm,mi,pi->p", g, readout, h) / np.sqrt(width * count)

    def model():
        first = numpyro.sample("first", dist.Normal(0, sigma).expand([width, inputs]).to_event(2))
        hidden = numpyro.sample("hidden", dist.Normal(0, sigma).expand([depth - 1, count, width, width]).to_event(4))
        readout = numpyro.sample("readout", dist.Normal(0, sigma).expand([count, width]).to_event(2))
        numpyro.deterministic("f", output(first, hidden, readout, x_test, g_test))
        numpyro.sample("y", dist.Normal(output(first, hidden, readout, x, g), np.sqrt(temperature)).to_event(1), obs=y)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sampler = numpyro.infer.MCMC(
            numpyro.infer.NUTS(model), num_warmup=300, num_samples=draws, num_chains=chains, chain_method="vectorized",
            progress_bar=False,
        )  # fmt: skip
        sampler.run(jax.random.PRNGKey(seed))
    return np.asarray(sampler.get_samples(group_by_chain=True)["f"])


def test_chains_that_have_not_mixed_say_so():
    """Twenty Langevin steps from the prior at low temperature: R-hat or sample size fails, and `mixed` is 0."""
    sampling = Sampling(chains=4, draws=10, thin=1, warmup=10)
    result = langevin(*task(), width=10, temperature=1e-3, seed=0, sampling=sampling)
    assert not result.mixed
    assert result.failed == 0
    assert result.largest_rhat > 1.05
    assert result.least_ess < 100


@pytest.mark.parametrize("sampler", [sample_posterior, langevin])
@pytest.mark.parametrize("memory_mb", [0.01, 4096], ids=["chain by chain", "together"])
def test_chains_that_have_not_mixed_go_on(sampler, memory_mb):
    """Three rounds of 6 draws are 18 draws, bit by bit; one round is enough once chains have mixed, or if one has diverged."""
    arguments = dict(width=10, temperature=0.1, seed=0, runtime=Runtime(memory_mb=memory_mb))
    rounds = sampler(*task(), **arguments, sampling=Sampling(chains=3, draws=6, warmup=8, thin=2, rounds=3))
    at_once = sampler(*task(), **arguments, sampling=Sampling(chains=3, draws=18, warmup=8, thin=2))
    assert (rounds.attrs.pop("rounds"), at_once.attrs.pop("rounds")) == (3, 1)
    xr.testing.assert_identical(rounds, at_once)


def test_rounds_end_with_mixing():
    """Chains go on until they have mixed and not longer; a chain that has diverged doesn't get better by going on."""
    arguments = dict(width=10, temperature=0.5, seed=0)
    mixed = sample_posterior(*task(), **arguments, sampling=Sampling(chains=4, draws=10, warmup=20, rounds=50))
    before = sample_posterior(*task(), **arguments, sampling=Sampling(4, 10, 20, rounds=mixed.rounds - 1))
    assert 1 < mixed.rounds < 50
    assert mixed.mixed
    assert not before.mixed
    assert langevin(*task(), **arguments, step=5.0, sampling=Sampling(3, 20, 100, 10, rounds=9)).rounds == 1


def test_a_diverging_chain_is_reported():
    """Beyond the edge of stability Langevin overflows: status diverged, draws NaN, never `mixed`."""
    sampling = Sampling(chains=3, draws=20, thin=10, warmup=100)
    result = langevin(*task(), width=10, temperature=0.1, step=5.0, seed=0, sampling=sampling)
    assert (result.status == 1).all()
    assert result.failed == 3
    assert not result.mixed
    assert result.prediction[:, -1].isnull().all()


@pytest.mark.parametrize("sampler", [sample_posterior, langevin])
def test_a_chain_does_not_depend_on_its_company(sampler):
    """Chain 2 of 0..3 equals chain 2 alone, to rounding: its stream is its own."""
    arguments = dict(width=6, temperature=0.2, seed=3, runtime=Runtime(dtype="float64"))

    def chains(**which):
        return sampler(*task(), **arguments, sampling=Sampling(draws=5, warmup=5, **which)).prediction

    together, alone = chains(chains=4).sel(chain=2), chains(chains=1, first_chain=2).sel(chain=2)
    np.testing.assert_allclose(together, alone, rtol=1e-8)
    assert not np.allclose(together, chains(chains=1)[0])


def test_single_precision_refuses_a_temperature_below_its_rounding():
    """Above capacity at T = 1e-12 in float32 the kernel is not positive definite: an error names the temperature."""
    data = task(points=40, inputs=4)
    with pytest.raises(ConvergenceError, match="temperature"):
        sample_posterior(
            *data, width=10, temperature=1e-12, seed=0, sampling=Sampling(chains=1, draws=5), runtime=Runtime(dtype="float32")
        )


@pytest.mark.parametrize(
    ("sampler", "change", "message"),
    [
        (langevin, dict(chains=4), r"chains: langevin has no such keyword.*did you mean sampling=Sampling\(chains=4\)"),
        (sample_posterior, dict(dept=2), "dept: .*accepted: width, depth, sigma, temperature.*did you mean 'depth'"),
        (sample_posterior, dict(step=0.1), "step: sample_posterior has no such keyword"),
        (sample_posterior, dict(sampling=dict(chains=4)), r"sampling: expected Sampling\(...\), got"),
        (sample_posterior, dict(temperature=0), "temperature: expected a number"),
        (langevin, dict(sampling=Sampling(warmup=0)), "warmup: expected a whole number >= 1, got 0"),
    ],
)
def test_wrong_keywords_are_named_with_what_is_accepted(sampler, change, message):
    """A keyword that isn't known, or belongs to a group of settings, is refused with its place."""
    with pytest.raises(InputError, match=message):
        sampler(*task(), **(dict(width=5, temperature=0.1, seed=0) | change))


@pytest.mark.parametrize(("chains", "draws"), [(1, 4), (2, 5), (1, 20), (4, 7), (4, 100), (3, 101), (8, 50)])
def test_diagnostics_are_those_of_arviz(chains, draws):
    """For chains of all persistences, also alternating and drifting ones, with ties, and with one chain apart."""
    rng = np.random.default_rng(draws)
    values, memory = rng.standard_normal((chains, draws, 40)), np.linspace(-0.99, 0.99, 40)
    for t in range(1, draws):
        values[:, t] += memory * values[:, t - 1]
    values[0, :, ::3] += 3
    values[:, :, 1] = np.round(values[:, :, 1])
    values[:, :, 2] += 3 * np.arange(draws)
    rhat, ess = rhat_and_ess(values)
    np.testing.assert_allclose(ess, array_stats.ess(values, chain_axis=0, draw_axis=1), rtol=1e-9)
    if chains > 1:
        np.testing.assert_allclose(rhat, array_stats.rhat(values, chain_axis=0, draw_axis=1), rtol=1e-9)


def test_diagnostics_of_special_series():
    """A constant has R-hat 1 and all draws; one NaN makes NaN; one chain has no R-hat; fewer than 4 draws tell nothing."""
    values = np.random.default_rng(0).standard_normal((3, 50, 3))
    values[:, :, 1], values[1, 7, 2] = 0.1, np.nan
    rhat, ess = rhat_and_ess(values)
    assert rhat[0] == pytest.approx(1, abs=0.1)
    assert 75 < ess[0] < 300
    assert (rhat[1], ess[1]) == (1, 150)
    assert np.isnan([rhat[2], ess[2]]).all()
    rhat, ess = rhat_and_ess(values[:1, :, 0])
    assert np.isnan(rhat)
    assert 25 < ess < 100
    assert np.isnan(rhat_and_ess(values[:, :3])).all()
