"""Samples of the posterior against the finite-width theory, which is exact up to 1/N."""

import numpy as np
import pytest

from ggdln.networks.gibbs import sample_posterior
from ggdln.networks.langevin import langevin
from ggdln.networks.settings import Sampling
from ggdln.theory.solution import solve

SIGMA, TEMPERATURE = 0.8, 0.1


def task():
    """12 Gaussian inputs with gates 1/2 or 3/2 and random labels, and 6 test inputs."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((18, 8))
    g = 0.5 + (x @ rng.standard_normal((8, 2)) > 0)
    return x[:12], g[:12], np.sign(rng.standard_normal(12)), x[12:], g[12:]


def gaps(sampler, depth, width, sampling, **step):
    """Distances (with standard errors) between sampler and theory of <f>, var f and U, and of U from its prior sigma^2."""
    x, g, y, x_test, g_test = task()
    theory = solve(x, g, y, width, depth, SIGMA, TEMPERATURE)
    network = dict(width=width, depth=depth, sigma=SIGMA)
    chains = sampler(x, g, y, x_test, g_test, **network, temperature=TEMPERATURE, seed=0, sampling=sampling, **step)
    f = chains.prediction.values.astype(float)
    expected = dict(zip(("mean", "variance"), theory.predict(x_test, g_test), strict=True))
    expected["U"] = theory.order_parameters[0]
    sampled = {"mean": f.mean(1), "variance": np.square(f - f.mean((0, 1))).mean(1), "U": chains.U.values}
    result = {
        name: (
            np.linalg.norm(values.mean(0) - expected[name]),
            np.sqrt(np.sum(values.var(0, ddof=1)) / len(values)),
        )
        for name, values in sampled.items()
    }
    return result | {"prior": np.linalg.norm(SIGMA**2 * np.eye(2) - expected["U"])}


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_the_exact_posterior_approaches_the_theory_like_one_over_width(depth):
    """From N = 8 to 32 the distance of var f falls by 4, those of <f> and of U = <a a^T>/N by 4 or more; N d is constant."""
    sampling = Sampling(chains=32, draws=400, warmup=60)
    narrow, wide = (gaps(sample_posterior, depth, width, sampling) for width in (8, 32))
    for name in ("mean", "variance", "U"):
        assert wide[name][0] < narrow[name][0] / 4 + 3 * wide[name][1]
    (small, small_error), (large, large_error) = narrow["variance"], wide["variance"]
    assert small > 6 * small_error
    assert large > 3 * large_error
    assert abs(32 * large - 8 * small) < 3.5 * np.hypot(32 * large_error, 8 * small_error)
    assert wide["U"][0] < 0.1 * wide["prior"] + 3 * wide["U"][1] < 0.5 * wide["prior"]


def test_langevin_agrees_with_the_theory():
    """At N = 32 <f>, var f and U are within their errors and 1/N of the theory, while U is far from its prior."""
    gap = gaps(langevin, 1, 32, Sampling(chains=48, draws=200, thin=20, warmup=1000), step=0.1)
    for name in ("mean", "variance", "U"):
        distance, error = gap[name]
        assert distance < 3 * error + 0.8 / 32
    assert 3 * gap["U"][1] + 0.8 / 32 < gap["prior"]
