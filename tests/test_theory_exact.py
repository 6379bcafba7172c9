"""The posterior at any width, and its 1/N expansion, against Gibbs sampling of the weights, brute force and each other."""

import math

import numpy as np
import pytest
from scipy.linalg import eigh
from scipy.special import logsumexp

from ggdln.core.errors import InputError
from ggdln.networks.gibbs import sample_posterior
from ggdln.networks.settings import Sampling
from ggdln.theory import likelihood
from ggdln.theory.ensemble import ensemble_statistics
from ggdln.theory.exact import solve_exact
from ggdln.theory.gp import gp_limit
from ggdln.theory.montecarlo import Form, Walker, fitted_form, log_volume, strengths
from ggdln.theory.posterior import Posterior
from ggdln.theory.solution import Solver, solve


def task(count=40, gates=3, dimension=10, test=15, *, seed=0, kind="binary", outputs=None):
    """Inputs, gates and labels of a ReLU teacher, and test inputs with gates and labels."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((count + test, dimension))
    drive = x @ rng.standard_normal((dimension, gates)) / math.sqrt(dimension)
    g = (drive > -0.3).astype(float) if kind == "binary" else np.maximum(drive, 0) + 0.1
    g[g.sum(axis=1) == 0, 0] = 1.0
    hidden = np.maximum(x @ rng.standard_normal((dimension, 30)) / math.sqrt(dimension), 0)
    y = hidden @ rng.standard_normal((30, outputs or 1)) / math.sqrt(30)
    y = y[:, 0] if outputs is None else y
    return (x[:count], g[:count], y[:count]), (x[count:], g[count:]), y[count:]


def gibbs(data, test, y_test, *, draws=1500, warmup=200, **network):
    sampling = Sampling(chains=6, draws=draws, warmup=warmup)
    chains = sample_posterior(*data, *test, seed=1, sampling=sampling, **network)
    return ensemble_statistics(chains.prediction.values, y_test)


def exact(data, test, y_test, *, draws=250, **network):
    solution = solve_exact(*data, draws=draws, chains=4, seed=2, **network)
    means, variances = solution.conditional(*test)
    shape = (*means.shape[:2], *np.shape(y_test))
    return ensemble_statistics(means.reshape(shape), y_test, variances=variances.reshape(shape)), solution


CASES = [
    # depth, width, gates, kind: widths below and above the numbers of features of every level
    (1, 5, 3, "binary"),
    pytest.param(1, 5, 8, "real", marks=pytest.mark.slow),
    (1, 40, 8, "real"),
    pytest.param(2, 5, 4, "real", marks=pytest.mark.slow),
    pytest.param(2, 25, 4, "real", marks=pytest.mark.slow),
    (3, 5, 3, "binary"),
    pytest.param(3, 25, 3, "binary", marks=pytest.mark.slow),
    pytest.param(3, 500, 2, "real", marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("depth", "width", "gates", "kind"), CASES)
def test_agrees_with_gibbs_sampling_of_the_weights(depth, width, gates, kind):
    """Bias and variance within 4 errors, where the theory is off by more than that at small width."""
    data, test, y_test = task(gates=gates, kind=kind)
    network = dict(width=width, depth=depth, sigma=0.7, temperature=0.02)
    ours, solution = exact(data, test, y_test, **network)
    # A sweep over many units takes long, and forgets as much as one over few.
    theirs = gibbs(data, test, y_test, **network, **({"draws": 100, "warmup": 60} if width > 100 else {}))
    assert solution.rhat < 1.05
    for name in ("bias", "variance", "generalization_error"):
        error = math.hypot(ours[f"{name}_error"], theirs[f"{name}_error"])
        assert abs(ours[name] - theirs[name]) < 4 * error + 0.01 * theirs[name], name
    if width == 5:
        _, variance = solution.saddle.predict(*test)
        assert variance.mean() < 0.97 * ours["variance"]


@pytest.mark.parametrize(("depth", "width"), [(3, 5), (3, 2), (3, 1), (4, 2), (2, 20)])
def test_a_point_with_positive_diagonals_is_the_same_point(depth, width):
    """Also where a layer has fewer units than features, so that the factor above it is wide."""
    data, _, _ = task(gates=3)
    saddle = solve(*data, width=width, depth=depth, sigma=0.7, temperature=0.02)
    posterior = Posterior(saddle, saddle.coexisting(1.0)[0])
    u = -np.abs(np.random.default_rng(0).standard_normal(posterior.size))
    upright = posterior.upright(u)
    assert posterior.upright_energy(u)[0] == math.inf
    np.testing.assert_allclose(posterior.upright_energy(upright)[0], posterior.energy(u)[0], rtol=1e-12)


@pytest.mark.slow
def test_order_parameters_are_the_readout_statistics():
    """The mean of V_1 is <a a^T>/N, which Gibbs sampling measures on the weights."""
    data, test, _ = task(gates=3)
    network = dict(width=8, depth=2, sigma=0.8, temperature=0.05)
    ours = np.array([solve_exact(*data, draws=100, chains=4, seed=seed, **network).order_parameters[0] for seed in range(6)])
    chains = sample_posterior(*data, *test, seed=1, sampling=Sampling(chains=6, draws=3000, warmup=200), **network)
    error = np.hypot(chains.U.std("chain", ddof=1).values, ours.std(0, ddof=1)) / math.sqrt(6)
    np.testing.assert_allclose(ours.mean(0), chains.U.mean("chain"), atol=5 * error.max())


@pytest.mark.slow
def test_new_gates_outside_the_training_span_are_drawn_from_the_prior():
    """Fewer distinct training gates than gates: the span form, whose outside is drawn, against Gibbs sampling."""
    data, test, y_test = task(count=12, gates=16, kind="real")
    network = dict(width=20, depth=1, sigma=0.7, temperature=0.02)
    ours, solution = exact(data, test, y_test, **network)
    assert solution.training.powers.kinds == ["span"]
    theirs = gibbs(data, test, y_test, draws=4000, **network)
    for name in ("bias", "variance"):
        error = math.hypot(ours[f"{name}_error"], theirs[f"{name}_error"])
        assert abs(ours[name] - theirs[name]) < 4 * error, name


@pytest.mark.parametrize("depth", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_two_outputs_share_the_hidden_layers(depth):
    data, test, y_test = task(gates=3, outputs=2)
    network = dict(width=6, depth=depth, sigma=0.7, temperature=0.02)
    ours, solution = exact(data, test, y_test, **network)
    theirs = gibbs(data, test, y_test, **network)
    for name in ("bias", "variance"):
        error = math.hypot(ours[f"{name}_error"], theirs[f"{name}_error"])
        assert abs(ours[name] - theirs[name]) < 4 * error, name
    mean, variance = solution.predict(*test)
    assert mean.shape == variance.shape == y_test.shape


def test_layers_of_their_own():
    """Unequal widths and priors, from the input up, against Gibbs sampling with the same."""
    data, test, y_test = task(gates=2)
    network = dict(width=(4, 12), depth=2, sigma=(0.5, 0.9, 1.2), temperature=0.02)
    ours, solution = exact(data, test, y_test, **network)
    theirs = gibbs(data, test, y_test, **network)
    for name in ("bias", "variance"):
        error = math.hypot(ours[f"{name}_error"], theirs[f"{name}_error"])
        assert abs(ours[name] - theirs[name]) < 4 * error, name
    chains = sample_posterior(*data, *test, seed=1, sampling=Sampling(chains=4, draws=1000, warmup=200), **network)
    np.testing.assert_allclose(solution.order_parameters[0], chains.U.mean("chain"), atol=0.08 * 1.2**2)
    assert solution.order_parameters[0][0, 0] > 1.0  # of the readout, whose prior is 1.2^2


def test_feature_form_draws_from_the_same_posterior():
    """Widths above and below the number of features, where its gradient has another form."""
    data, test, y_test = task(count=60, gates=2, dimension=4, kind="real")
    for width in (1, 6):
        network = dict(width=width, depth=2, sigma=0.8, temperature=0.1)
        found = [exact(data, test, y_test, solver=Solver(form=form), **network)[0] for form in ("kernel", "features")]
        error = math.hypot(*(one["variance_error"] for one in found))
        assert abs(found[0]["variance"] - found[1]["variance"]) < 4 * error


@pytest.mark.parametrize(
    ("depth", "width", "form"), [(1, 3, "kernel"), (1, 9, "features"), (3, 2, "features"), (3, 4, "kernel")]
)
def test_gradient_of_the_energy(depth, width, form):
    """Along a random direction, by central differences; widths below and above the numbers of features."""
    data, _, _ = task(count=60, gates=3, dimension=3, kind="real")
    solution = solve(*data, width, depth, 0.8, 0.1, solver=Solver(form=form))
    posterior = Posterior(solution, solution.layers)
    rng = np.random.default_rng(0)
    u, direction, step = posterior.centre + 0.05 * rng.random(posterior.size), rng.standard_normal(posterior.size), 1e-6
    slope = (posterior.energy(u + step * direction)[0] - posterior.energy(u - step * direction)[0]) / (2 * step)
    assert posterior.energy(u)[1] @ direction == pytest.approx(slope, rel=1e-5)


def test_single_precision_changes_neither_the_posterior_nor_what_is_told(monkeypatch):
    """Of kicks and predictions, where matrices are large; and where it would, as at small temperatures, it isn't used."""
    data, test, _ = task(gates=3)
    network = dict(width=6, depth=2, sigma=0.7, draws=50, chains=2, seed=0)
    double = solve_exact(*data, temperature=0.05, **network)
    monkeypatch.setattr(likelihood, "SMALL", 8)
    monkeypatch.setattr(likelihood, "PANEL", 16)
    single = solve_exact(*data, temperature=0.05, **network)
    assert double._modes[0].force is None
    assert single._modes[0].force is not None
    np.testing.assert_allclose(single.acceptance, double.acceptance, rtol=1e-2)
    for rough, exactly in zip(single.predict(*test), double.predict(*test), strict=True):
        np.testing.assert_allclose(rough, exactly, rtol=1e-2, atol=1e-3)
    posterior, u = single._modes[0].posterior, single._chains[0].u[-1]
    value, slope = posterior.energy(u)
    for rough in (posterior.rough_gradient(u), posterior.rough_energy(u)[1]):
        assert 0 < np.abs(rough - slope).max() < 1e-4 * np.abs(slope).max()
    assert posterior.rough_energy(u)[0] == value
    cold = solve_exact(*data, temperature=1e-8, **network | dict(depth=1, width=10, draws=4))
    assert cold._modes[0].force is None


def test_precision_is_chosen_at_each_minimum(monkeypatch):
    """Chains near the prior are predicted in single precision, those where labels have blown the kernel up are not."""
    rng, count, depth, width, sigma, temperature = np.random.default_rng(0), 50, 5, 30, 0.2, 1e-6
    fading = np.exp(-np.arange(60) / 4)
    x = rng.standard_normal((count, 60)) * fading
    x *= math.sqrt(60 / (x**2).sum(axis=1).mean())
    # One open gate, so H is a function of one number; y = 0.096 times an eigenvector with a small eigenvalue puts its two minima
    # within 10 of each other.
    y = 0.09608857 * np.linalg.eigh(x @ x.T)[1][:, -30]
    network = dict(width=width, depth=depth, sigma=sigma, temperature=temperature, solver=Solver(form="kernel", tolerance=1e-6))
    monkeypatch.setattr(likelihood, "SMALL", 8)
    solution = solve_exact(x, np.ones((count, 1)), y, draws=4, chains=2, seed=0, **network)
    assert len(solution._modes) == 2
    test = rng.standard_normal((5, 60)) * fading, np.ones((5, 1))
    found = solution.conditional(*test)
    monkeypatch.setattr(likelihood.KernelLikelihood, "halves", False)
    mean, variance = solution.conditional(*test)
    assert 0 < np.abs(found[0] - mean)[0].max() < 1e-3 * np.sqrt(variance.min())
    np.testing.assert_array_equal(found[0][1], mean[1])
    np.testing.assert_allclose(found[1], variance, rtol=1e-3)


def test_energy_without_data_is_the_wishart_prior():
    """T -> infinity: draws of V_1 have the mean 1 and the variances (1 + delta_ij)/N of a Wishart matrix."""
    data, _, _ = task(gates=3)
    solution = solve_exact(*data, width=10, sigma=1.0, temperature=1e8, draws=1000, chains=4, seed=0)
    draws = np.array([chain.v[0] for _, _, chain in solution._each()])
    np.testing.assert_allclose(draws.mean(axis=0), np.eye(3), atol=0.05)
    np.testing.assert_allclose(draws.var(axis=0), (1 + np.eye(3)) / 10, rtol=0.15)


def test_monte_carlo_errors_are_honest():
    """Means of independent calls scatter as their errors say; chains that are too short are said not to have mixed."""
    data, test, _ = task()
    calls = [solve_exact(*data, width=6, sigma=0.7, temperature=0.05, draws=60, chains=2, seed=seed) for seed in range(12)]
    found = [call.prediction(*test) for call in calls]
    for name in ("mean", "variance"):
        scatter = np.std([one[name] for one in found], axis=0, ddof=1).mean()
        told = np.mean([one[f"{name}_error"] for one in found])
        assert 0.6 < scatter / told < 1.6, name
    np.testing.assert_allclose(found[0].variance, calls[0].predict(*test)[1], rtol=1e-12)
    assert not calls[0].mixed
    assert calls[0].ess < 130
    assert {"acceptance", "largest_rhat", "least_ess", "mixed"} <= set(found[0].attrs)


def test_chains_that_have_not_mixed_go_on_until_they_have():
    data, _, _ = task()
    once, often = (
        solve_exact(*data, width=6, temperature=0.05, draws=20, chains=2, seed=0, rounds=rounds) for rounds in (1, 30)
    )
    assert not once.mixed
    assert often.mixed
    draws = often.traces.sizes["draw"]
    assert draws % 20 == 0
    assert 50 <= draws < 600
    assert often.traces.isel(draw=slice(20)).identical(once.traces)
    # and not for a round longer
    assert not solve_exact(*data, width=6, temperature=0.05, draws=20, chains=2, seed=0, rounds=draws // 20 - 1).mixed


def test_small_temperatures():
    """T = 1e-8: training labels are met, and the variance there vanishes."""
    data, _, _ = task(count=20, gates=4, kind="real")
    solution = solve_exact(*data, width=10, sigma=0.8, temperature=1e-8, draws=100, chains=2, seed=0)
    mean, variance = solution.predict(*data[:2])
    np.testing.assert_allclose(mean, data[2], atol=1e-4)
    assert variance.max() < 1e-6
    assert solution.acceptance > 0.6


def test_wide_networks_need_no_more_kicks():
    """The rest beside the quadratic form falls with N, and so does what a draw costs."""
    data, _, _ = task(gates=4)
    narrow, wide = (
        solve_exact(*data, width=width, sigma=0.7, temperature=0.02, draws=50, chains=2, seed=0) for width in (10, 3000)
    )
    assert wide.kicks <= narrow.kicks
    assert wide.acceptance > 0.8


def test_dead_inputs_and_covariance():
    (x, g, y), (xt, gt), _ = task()
    gt[2] = 0
    solution = solve_exact(x, g, y, width=6, sigma=0.7, temperature=0.05, draws=50, chains=2, seed=0)
    mean, variance = solution.predict(xt, gt)
    same, covariance = solution.predict(xt, gt, covariance=True)
    np.testing.assert_allclose(same, mean, rtol=1e-10)
    np.testing.assert_allclose(np.diag(covariance), variance, rtol=1e-8, atol=1e-12)
    assert mean[2] == variance[2] == 0
    assert solution.prediction(xt, gt).variance[2] == 0
    assert np.linalg.eigvalsh(covariance)[0] > -1e-10


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"temperature": 0.0}, "temperature"),
        ({"width": 2.5}, "width"),
        ({"width": math.inf}, "width"),
        ({"width": "10"}, "width"),
        ({"draws": 0}, "draws"),
        ({"wide": 3}, "wide"),
        ({"progress": 3}, "progress"),
    ],
)
def test_wrong_arguments_are_named(change, name):
    data, _, _ = task()
    with pytest.raises(InputError, match=name):
        solve_exact(*data, **{"width": 5, "temperature": 0.1} | change)


# ---- One loop


@pytest.mark.parametrize(
    ("depth", "gates"), [(1, 6), pytest.param(2, 3, marks=pytest.mark.slow), pytest.param(3, 2, marks=pytest.mark.slow)]
)
def test_one_loop_removes_the_error_of_order_one_over_n(depth, gates):
    """Its error is far below that of the theory, falls faster, and is about what it says itself."""
    data, test, _ = task(gates=gates, kind="real")
    network, errors = dict(depth=depth, sigma=0.7, temperature=0.02), []
    for width in (30, 120):
        # Sampling the deepest has an error of 0.5 % itself.
        found = [
            solve_exact(*data, width=width, draws=1500, chains=4, seed=k, **network) for k in range(3 if depth == 3 else 1)
        ]
        truth = np.mean([one.prediction(*test).variance.mean() for one in found])
        corrected = solve(*data, width, loops=1, **network)
        prediction = corrected.prediction(*test)
        theory = corrected.saddle.predict(*test)[1].mean()
        errors.append((abs(theory / truth - 1), abs(float(prediction.variance.mean() / truth) - 1)))
        assert prediction.attrs["trusted"]
        assert errors[-1][1] < 0.2 * errors[-1][0] + 0.004
        assert errors[-1][1] < 3 * float(prediction.variance_error.mean() / truth) + 0.004
    np.testing.assert_allclose(corrected.predict(*test)[1], prediction.variance, rtol=1e-10)
    assert errors[1][0] < 0.6 * errors[0][0]


def test_one_loop_with_many_gates():
    """M = 20, N = 25: the theory is off by more than 10 %, one loop by about 1 %."""
    data, test, _ = task(count=150, gates=20, dimension=20, kind="binary")
    network = dict(sigma=0.5, temperature=0.01)
    truth = solve_exact(*data, width=25, draws=1000, chains=4, seed=0, **network).prediction(*test).variance.mean()
    corrected = solve(*data, 25, loops=1, **network)
    assert abs(corrected.saddle.predict(*test)[1].mean() / truth - 1) > 0.1
    assert abs(corrected.predict(*test)[1].mean() / truth - 1) < 0.015


def test_where_the_expansion_cannot_be_trusted_it_says_so():
    data, test, _ = task(gates=4, kind="real")
    with pytest.raises(InputError, match="solve_exact"):
        solve(*data, 4, loops=1, temperature=0.02)
    with pytest.raises(InputError, match="loops"):
        solve(*data, math.inf, loops=1)
    with pytest.raises(InputError, match="loops"):
        solve(*data, 20, loops=2)
    assert solve(*data, 40, 2, 0.2, 1e-4, loops=1).trusted(*test)
    data, test, _ = task(gates=2, kind="real")
    narrow = solve(*data, 5, 2, 2.0, 1e-4, loops=1)
    with pytest.warns(RuntimeWarning, match="the next order of the expansion is not small here; use solve_exact"):
        prediction = narrow.prediction(*test)
    assert not prediction.attrs["trusted"]
    assert not narrow.trusted(*test)


def test_one_loop_at_zero_temperature():
    """Training labels are met exactly, whatever the correction."""
    data, _, _ = task(count=20, gates=4, kind="real")
    mean, variance = solve(*data, 40, sigma=0.8, loops=1).predict(*data[:2])
    np.testing.assert_allclose(mean, data[2], atol=1e-6)
    np.testing.assert_allclose(variance, 0, atol=1e-8)


def test_signs_of_eigenvectors_do_not_matter(monkeypatch):
    """LAPACK libraries choose them differently; one loop and the samples of the exact posterior stay what they are."""
    data, test, _ = task(gates=4, kind="real")

    def found():
        corrected = solve(*data, 30, 1, 0.7, 0.02, loops=1)
        sampled = solve_exact(*data, width=10, sigma=0.7, temperature=0.02, draws=5, chains=2, seed=1)
        return np.concatenate([*corrected.predict(*test), *sampled.predict(*test)])

    usual, svd = found(), np.linalg.svd

    def flipped_svd(matrix):
        left, values, right = svd(matrix)
        signs = (-1.0) ** np.arange(len(values))
        return left * signs, values, signs[:, None] * right

    def flipped_eigh(matrix):
        values, vectors = eigh(matrix)
        return values, vectors * (-1.0) ** np.arange(len(values))

    monkeypatch.setattr(np.linalg, "svd", flipped_svd)
    monkeypatch.setattr("ggdln.theory.loops.eigh", flipped_eigh)
    np.testing.assert_allclose(found(), usual, rtol=1e-7)


# ---- Evidence


def test_the_mode_has_positive_diagonals_where_layers_are_narrow():
    """The last of the diagonals have no barrier at 0, and a search may cross it."""
    for seed in range(4):
        data, _, _ = task(count=20, gates=4, dimension=3, outputs=3, seed=seed)
        saddle = solve(*data, width=6, temperature=0.1)
        posterior = Posterior(saddle, saddle.layers)
        assert math.isfinite(posterior.upright_energy(posterior.mode(1.0))[0])


def brute_evidence(x, g, y, width, depth, sigma, temperature, samples=20_000):
    """log p(y) and its error, from prior draws of all weights but the first layer."""
    rng, gates, values, y = np.random.default_rng(0), g.shape[1], [], y.reshape(len(x), -1)
    inputs = sigma**2 * np.kron(x @ x.T, np.ones(2 * y.shape[1:])) / x.shape[1]
    for _ in range(samples):
        b = np.einsum("pm,mci->pci", g, sigma * rng.standard_normal((gates, y.shape[1], width))) / math.sqrt(width * gates)
        for _ in range(depth - 1):
            layer = sigma * rng.standard_normal((width, gates, width))
            b = np.einsum("pci,imj,pm->pcj", b, layer, g, optimize=True) / math.sqrt(width * gates)
        b = b.reshape(-1, width)
        k = (b @ b.T) * inputs + temperature * np.eye(y.size)
        values.append(-(y.ravel() @ np.linalg.solve(k, y.ravel()) + np.linalg.slogdet(2 * math.pi * k)[1]) / 2)
    weights = np.exp(np.array(values) - max(values))
    return logsumexp(values) - math.log(samples), weights.std() / weights.mean() / math.sqrt(samples)


@pytest.mark.parametrize(("depth", "width", "outputs"), [(1, 4, None), (1, 25, None), (2, 12, None), (1, 2, 3)])
def test_evidence_against_prior_sampling(depth, width, outputs):
    """The exact evidence within its error, one loop closer than the theory where N is not small."""
    data, _, _ = task(count=10 if outputs is None else 5, gates=2, dimension=4, outputs=outputs)
    truth, error = brute_evidence(*data, width, depth, 1.0, 0.3)
    solution = solve_exact(*data, width=width, depth=depth, temperature=0.3, draws=400, chains=4, seed=0)
    assert abs(solution.log_evidence - truth) < 4 * math.hypot(error, solution.log_evidence_error) + 0.005
    if width > 10:
        corrected = solve(*data, width, depth, 1.0, 0.3, loops=1)
        assert abs(corrected.log_evidence - truth) < max(abs(corrected.saddle.log_evidence - truth), 3 * error)


def test_evidence_at_infinite_width_is_the_marginal_likelihood():
    """scikit-learn's for the same kernel, with dead inputs as noise of variance T, by three ways of ours."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import DotProduct, WhiteKernel

    rng = np.random.default_rng(0)
    x, y, temperature = rng.standard_normal((30, 4)), rng.standard_normal(30), 0.3
    g = np.ones((30, 1))
    g[[4, 9]] = 0
    kernel = DotProduct(1e-10, (1e-12, 1e5)) + WhiteKernel(temperature)
    scaled = x / 2 * g  # K_GP = g g' x.x' / 4
    truth = GaussianProcessRegressor(kernel, optimizer=None).fit(scaled, y).log_marginal_likelihood_value_
    assert gp_limit(x, g, y, temperature=temperature).log_evidence == pytest.approx(truth, rel=1e-8)
    for form in ("kernel", "features"):
        solution = solve(x, g, y, math.inf, temperature=temperature, solver=Solver(form=form))
        assert solution.log_evidence == pytest.approx(truth, rel=1e-8)
    both = np.stack([y, -2 * y], axis=1)
    second = gp_limit(x, g, -2 * y, temperature=temperature).log_evidence
    assert gp_limit(x, g, both, temperature=temperature).log_evidence == pytest.approx(truth + second, rel=1e-8)
    assert gp_limit(x, g, y).log_evidence == -math.inf


# ---- Monte Carlo on its own


def test_walker_draws_from_a_skewed_distribution():
    """Gamma-distributed variables in logarithmic coordinates: means and variances, from a form that is a little off."""
    shape = 3.0

    def energy(u):
        return float(np.sum(np.exp(u) - shape * u)), np.exp(u) - shape

    rng = np.random.default_rng(0)
    form = Form(np.full(4, math.log(shape)), np.full(4, 0.5), np.zeros((0, 4)), np.zeros(0))
    walker = Walker(energy, form, rng)
    assert walker.place(np.zeros(4))
    walker.warm_up()
    draws = np.array([np.exp(form.outward(walker.s)) for _ in range(4000) if walker.move() >= 0])
    np.testing.assert_allclose(draws.mean(axis=0), shape, rtol=0.05)
    np.testing.assert_allclose(draws.var(axis=0), shape, rtol=0.15)


def test_kicks_are_as_many_as_the_rest_needs():
    """A trajectory that is nearly always accepted takes one kick, and one that rarely is takes more."""
    rng, kicks = np.random.default_rng(0), []
    for stiffness in (1.01, 2.0, 30.0):

        def energy(u, stiffness=stiffness):
            return stiffness * float(u @ u) / 2, stiffness * u

        walker = Walker(energy, Form(np.zeros(50), np.ones(50), np.zeros((0, 50)), np.zeros(0)), rng)
        walker.place(rng.standard_normal(50) / math.sqrt(stiffness))
        walker.warm_up()
        kicks.append(walker.pace.kicks)
        assert np.mean([walker.move() for _ in range(50)]) > 0.6
    assert kicks == sorted(kicks)
    assert kicks[0] == 1
    assert kicks[2] > 4
    for number in (1, 2, 4, 10):
        assert strengths(number).sum() == pytest.approx(1)
        np.testing.assert_allclose(strengths(number), strengths(number)[::-1])


def test_form_finds_stiff_directions_and_volume_is_known():
    """A Gaussian with one stiff direction: the form is exact, and the volume is that of the Gaussian."""
    rng = np.random.default_rng(0)
    size = 30
    direction = rng.standard_normal(size)
    direction /= np.linalg.norm(direction)
    matrix = 4 * (np.eye(size) + 50 * np.outer(direction, direction))

    def energy(u):
        return float(u @ matrix @ u) / 2 + 7, matrix @ u

    form = fitted_form(energy, np.zeros(size), np.full(size, 4.0), rng)
    assert len(form.factors) == 1
    s = rng.standard_normal(size)
    assert energy(form.outward(s))[0] == pytest.approx(s @ s / 2 + 7, rel=1e-6)
    np.testing.assert_allclose(form.inward(form.outward(s)), s, rtol=1e-9)
    volume, error = log_volume(energy, form, np.empty((0, size)), rng)
    assert volume == pytest.approx(size / 2 * math.log(2 * math.pi) - np.linalg.slogdet(matrix)[1] / 2 - 7, abs=1e-6)
    assert error < 1e-6
