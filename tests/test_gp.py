"""The infinite-width limit against sampled networks, linear regression in the effective inputs, and its own limits."""

import itertools

import numpy as np
import pytest

from ggdln import gp_limit, predictor_statistics
from ggdln.core.errors import InputError, RankError
from ggdln.theory.capacity import capacity, gates_at_capacity
from ggdln.theory.kernels import gp_kernel, gp_variance
from ggdln.theory.statistics import sign_error

rng = np.random.default_rng(0)


def effective_inputs(x, g, depth):
    """g_m1 ... g_mL x_j for all m1 ... mL, j: (P, M^L N0)."""
    features = x
    for _ in range(depth):
        features = np.einsum("pm,pk->pmk", g, features).reshape(len(x), -1)
    return features


def binary(P, M, seed=0):
    g = (np.random.default_rng(seed).standard_normal((P, M)) > 0).astype(float)
    g[:, 0] = np.where(g.any(axis=1), g[:, 0], 1.0)
    return g


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_kernel_is_the_covariance_of_random_networks(depth):
    """K_GP(x, x') = <f f'> over Gaussian weights, exactly at any width."""
    N0, M, N, sigma, samples = 3, 2, 4, 0.8, 200_000
    x, g = rng.standard_normal((2, N0)), rng.uniform(0.2, 1, (2, M))
    stream = np.random.default_rng(1)
    h = sigma * np.einsum("sij,pj->spi", stream.standard_normal((samples, N, N0)), x) / np.sqrt(N0)
    for _ in range(depth - 1):
        W = sigma * stream.standard_normal((samples, M, N, N))
        h = np.einsum("smij,pm,spj->spi", W, g, h, optimize=True) / np.sqrt(N * M)
    f = np.einsum("smi,pm,spi->sp", sigma * stream.standard_normal((samples, M, N)), g, h, optimize=True) / np.sqrt(N * M)
    products = np.einsum("sp,sq->spq", f, f)
    error = products.std(axis=0) / np.sqrt(samples)
    kernel = gp_kernel(x, g, depth=depth, sigma=sigma)
    assert np.all(np.abs(products.mean(axis=0) - kernel) < 4 * error)
    assert np.allclose(kernel.diagonal(), gp_variance(x, g, depth=depth, sigma=sigma))


@pytest.mark.parametrize(("depth", "M", "P"), [(1, 3, 10), (1, 3, 40), (2, 3, 20), (2, 3, 60), (3, 2, 15), (3, 2, 60)])
@pytest.mark.parametrize("gates", ["real", "binary"])
def test_limit_is_minimum_norm_regression_in_the_effective_inputs(depth, M, P, gates):
    """Below capacity the mean interpolates with least norm; above it is the least-squares fit. Variance: what is left over."""
    x = rng.standard_normal((P + 20, 4))
    g = rng.uniform(0.1, 1, (P + 20, M)) if gates == "real" else binary(P + 20, M)
    y = rng.standard_normal(P)
    solution = gp_limit(x[:P], g[:P], y, depth=depth, sigma=0.7)
    mean, variance = solution.predict(x[P:], g[P:])
    phi = effective_inputs(x, g, depth) * np.sqrt(0.7 ** (2 * depth + 2) / 4 / M**depth)
    weights = np.linalg.lstsq(phi[:P], y, rcond=1e-10)[0]
    assert np.allclose(mean, phi[P:] @ weights, atol=1e-7)
    outside = phi[P:] - phi[P:] @ np.linalg.pinv(phi[:P], rcond=1e-10) @ phi[:P]
    assert np.allclose(variance, (outside**2).sum(axis=1), atol=1e-9)
    assert solution.rank == np.linalg.matrix_rank(phi[:P], rtol=1e-10)
    assert solution.train_error == pytest.approx(np.mean((phi[:P] @ weights - y) ** 2), abs=1e-12)


@pytest.mark.parametrize("temperature", [1e-3, 1.0])
def test_finite_temperature_is_ridge_regression(temperature):
    x, g, y = rng.standard_normal((40, 5)), rng.uniform(0, 1, (40, 2)), rng.standard_normal(40)
    solution = gp_limit(x[:30], g[:30], y[:30], temperature=temperature)
    mean, variance = solution.predict(x[30:], g[30:])
    K = gp_kernel(x, g)
    inverse = np.linalg.inv(K[:30, :30] + temperature * np.eye(30))
    assert np.allclose(mean, K[30:, :30] @ inverse @ y[:30])
    assert np.allclose(variance, np.diag(K[30:, 30:] - K[30:, :30] @ inverse @ K[:30, 30:]))
    assert np.allclose(solution.fitted, K[:30, :30] @ inverse @ y[:30])


@pytest.mark.parametrize("P", [20, 60])
def test_zero_temperature_is_the_limit_of_small_temperatures(P):
    """Below (P = 20) and above (P = 60) the capacity of 30."""
    x, g, y = rng.standard_normal((P + 10, 10)), rng.uniform(0, 1, (P + 10, 3)), rng.standard_normal(P)
    cold = gp_limit(x[:P], g[:P], y).predict(x[P:], g[P:])
    warm = gp_limit(x[:P], g[:P], y, temperature=1e-9).predict(x[P:], g[P:])
    assert np.allclose(cold, warm, atol=1e-5)


@pytest.mark.parametrize(("depth", "M"), [(1, 4), (2, 4), (3, 3), (3, 5), (4, 3)])
def test_capacity_counts_the_independent_effective_inputs(depth, M):
    N0, P = 3, 600
    x = rng.standard_normal((P, N0))
    for g, is_binary in ((rng.uniform(0, 1, (P, M)), False), (binary(P, M), True)):
        rank = np.linalg.matrix_rank(effective_inputs(x, g, depth), rtol=1e-9)
        assert rank == round(capacity(N0, M, depth, binary=is_binary))


def test_both_capacities_agree_up_to_depth_two():
    for M, depth in itertools.product(range(1, 9), (1, 2)):
        assert capacity(7, M, depth) == capacity(7, M, depth, binary=True)
    assert capacity(7, 5, 3, binary=True) < capacity(7, 5, 3)


@pytest.mark.parametrize("is_binary", [False, True])
def test_gates_at_capacity_inverts_capacity(is_binary):
    for depth in (1, 2, 3):
        M = gates_at_capacity(30, 2100, depth, binary=is_binary)
        assert capacity(30, M, depth, binary=is_binary) == pytest.approx(2100)


def test_training_error_vanishes_exactly_below_capacity():
    N0, P = 5, 60
    x, y = rng.standard_normal((P, N0)), rng.standard_normal(P)
    for M in range(2, 25):
        error = gp_limit(x, rng.uniform(0, 1, (P, M)), y).train_error
        assert (error < 1e-12) == (capacity(N0, M, 1) >= P)


def test_dead_inputs_are_left_out_and_predicted_zero():
    x, y = rng.standard_normal((30, 6)), rng.standard_normal(30)
    g = binary(30, 8)
    g[[3, 7]] = 0
    solution = gp_limit(x, g, y)
    alive = np.delete(np.arange(30), [3, 7])
    same = gp_limit(x[alive], g[alive], y[alive])
    assert solution.dead == 2
    assert solution.train_error == pytest.approx((y[3] ** 2 + y[7] ** 2) / 30)
    new, open_ = rng.standard_normal((2, 6)), np.array([np.ones(8), np.zeros(8)])
    assert np.allclose(solution.predict(new, open_), same.predict(new, open_))
    assert np.array_equal(np.array(solution.predict(new, open_))[:, 1], [0, 0])


@pytest.mark.parametrize(("change", "message"), [
    ({"y": np.ones(4)}, "4 labels for 5 rows"),
    ({"gates": np.ones((4, 2))}, "4 rows for 5 rows"),
    ({"gates": np.ones(5)}, "gates: expected 2 dimension"),
    ({"x": np.full((5, 3), np.nan)}, "x: 15 entries are NaN"),
    ({"sigma": 0.0}, "sigma: expected a number"),
    ({"sigma": np.nan}, "sigma: expected a number"),
    ({"depth": 1.5}, "depth: expected a whole number >= 0"),
    ({"temperature": -1}, "temperature: expected"),
    ({"x": np.empty((5, 0))}, "is empty"),
])  # fmt: skip
def test_wrong_arguments_are_named(change, message):
    arguments = {"x": rng.standard_normal((5, 3)), "gates": np.ones((5, 2)), "y": np.ones(5)} | change
    with pytest.raises(InputError, match=message):
        gp_limit(**arguments)


def test_nothing_to_learn_from_is_an_error():
    with pytest.raises(RankError, match="all 5 training inputs are dead"):
        gp_limit(np.ones((5, 3)), np.zeros((5, 2)), np.ones(5))


def test_error_rate_is_the_chance_of_the_wrong_sign():
    mean, variance, y = np.array([0.5, -0.2, 0.3]), np.array([0.4, 0.1, 2.0]), np.array([1.0, 1.0, -1.0])
    samples = mean + np.sqrt(variance) * np.random.default_rng(2).standard_normal((400_000, 3))
    assert np.allclose(sign_error(mean, variance, y), (samples * y < 0).mean(axis=0), atol=0.004)
    assert predictor_statistics(mean, variance, y)["generalization_error"] == pytest.approx(
        np.mean((samples - y) ** 2), rel=0.01
    )


def test_error_rate_without_variance_is_certain():
    assert np.array_equal(sign_error(np.array([0.1, -0.1, 0.0]), np.zeros(3), np.ones(3)), [0.0, 1.0, 0.5])
