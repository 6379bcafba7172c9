"""The exact sampler and Langevin dynamics against closed forms, each other, and an independent sampler."""

import warnings

import numpy as np
import pytest

from ggdln.networks.gibbs import sample_posterior
from ggdln.networks.langevin import langevin
from ggdln.core.errors import ConvergenceError
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
    result = sample_posterior(
        x, g, y, x_test, g_test, width=40, depth=2, sigma=0.8, temperature=1e9, chains=4, draws=2000, warmup=2, seed=0
    )
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
    result = sample_posterior(
        x, np.ones((points, 1)), y, x_test, np.ones((5, 1)), width=width, sigma=sigma, temperature=1e-8, chains=4,
        draws=150, warmup=30, seed=0,
    )  # fmt: skip
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
    result = sample_posterior(
        x,
        np.ones((6, 1)),
        y,
        x_test,
        np.ones((4, 1)),
        width=5,
        depth=depth,
        temperature=1e-8,
        chains=8,
        draws=1000,
        seed=0,
    )
    means = result.prediction.mean("draw").values
    error = means.std(0, ddof=1) / np.sqrt(len(means))
    assert (error < 0.1).all()
    assert (np.abs(means.mean(0) - x_test @ np.linalg.lstsq(x, y, rcond=None)[0]) < 5 * error).all()


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_langevin_and_gibbs_sample_the_same_posterior(depth):
    """Means, variances, tr U agree to 4.5 standard errors, plus 2 % for Langevin's step; the prior's do not."""
    x, g, y, x_test, g_test = task(points=5)
    arguments = dict(width=5, depth=depth, sigma=0.8, temperature=0.3, seed=4)
    exact = sample_posterior(x, g, y, x_test, g_test, chains=16, draws=1000, warmup=50, **arguments)
    descent = langevin(x, g, y, x_test, g_test, chains=48, draws=200, thin=40, warmup=1000, step=0.1, **arguments)
    assert exact.mixed
    assert descent.mixed
    prior = sample_posterior(x, g, y, x_test, g_test, chains=16, draws=200, **(arguments | dict(temperature=1e9)))
    assert deviations(prior, exact).max() > 20
    assert (deviations(descent, exact, allowed=0.02) < 4.5).all()


@pytest.mark.slow
@pytest.mark.parametrize("depth", [1, 2])
def test_gibbs_agrees_with_nuts(depth):
    """NumPyro's NUTS on the network written from its definition, at temperature 0.1, samples the same posterior."""
    x, g, y, x_test, g_test = task()
    width, sigma, temperature = 5, 0.9, 0.1
    exact = sample_posterior(
        x,
        g,
        y,
        x_test,
        g_test,
        width=width,
        depth=depth,
        sigma=sigma,
        temperature=temperature,
        chains=8,
        draws=1500,
        seed=0,
    )
    draws = nuts(x, g, y, x_test, g_test, width, depth, sigma, temperature, chains=8, draws=700, seed=0)
    exact_moments = moments(exact)
    mean = exact.prediction.mean(("chain", "draw")).values
    nuts_moments = np.column_stack([draws.mean(1), np.square(draws - mean).mean(1)])
    exact_moments = exact_moments[:, : nuts_moments.shape[1]]
    error = np.sqrt(nuts_moments.var(0, ddof=1) / 8 + exact_moments.var(0, ddof=1) / 8)
    assert (error / np.sqrt(exact.prediction.var()).item() < 0.2).all()
    assert (np.abs(nuts_moments.mean(0) - exact_moments.mean(0)) < 5 * error).all()


def nuts(x, g, y, x_test, g_test, width, depth, sigma, temperature, *, chains, draws, seed):
    """Test predictions (chain, draw, test) by NumPyro."""
    import jax
    import jax.numpy as jnp
    import numpyro
    import numpyro.distributions as dist

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
    result = langevin(*task(), width=10, temperature=1e-3, chains=4, draws=10, thin=1, warmup=10, seed=0)
    assert not result.mixed
    assert result.failed == 0
    assert result.largest_rhat > 1.05
    assert result.least_ess < 100


def test_a_diverging_chain_is_reported():
    """Beyond the edge of stability Langevin overflows: status diverged, draws NaN, never `mixed`."""
    result = langevin(*task(), width=10, temperature=0.1, chains=3, draws=20, thin=10, warmup=100, step=5.0, seed=0)
    assert (result.status == 1).all()
    assert result.failed == 3
    assert not result.mixed
    assert result.prediction[:, -1].isnull().all()


@pytest.mark.parametrize("sampler", [sample_posterior, langevin])
def test_a_chain_does_not_depend_on_its_company(sampler):
    """Chain 2 of 0..3 equals chain 2 alone, to rounding: its stream is its own."""
    arguments = dict(width=6, temperature=0.2, draws=5, warmup=5, seed=3, dtype="float64")
    together = sampler(*task(), chains=4, **arguments).prediction.sel(chain=2)
    alone = sampler(*task(), chains=1, first_chain=2, **arguments).prediction.sel(chain=2)
    np.testing.assert_allclose(together, alone, rtol=1e-8)
    assert not np.allclose(together, sampler(*task(), chains=1, **arguments).prediction[0])


def test_single_precision_refuses_a_temperature_below_its_rounding():
    """Above capacity at T = 1e-12 in float32 the kernel is not positive definite: an error names the temperature."""
    data = task(points=40, inputs=4)
    with pytest.raises(ConvergenceError, match="temperature"):
        sample_posterior(*data, width=10, temperature=1e-12, chains=1, draws=5, seed=0, dtype="float32")
