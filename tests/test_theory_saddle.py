"""The finite-width saddle point against closed forms, limits, symmetries and the paper's own M^l formulation."""

import itertools
import math

import numpy as np
import pytest
import torch
from scipy.optimize import brentq

from ggdln.core.errors import ConvergenceError, InputError, RankError
from ggdln.theory import likelihood, starts
from ggdln.theory.kernels import gp_kernel, gp_variance
from ggdln.theory.newton import Curvature, Recycler, minimise
from ggdln.theory.saddle import Problem, Whitened
from ggdln.theory.solution import Solver, solve, solve_sweep
from ggdln.theory.symmetric import Coordinates, GatePowers
from ggdln.theory.training import Training


def task(count=40, dimension=15, gates=3, seed=0, *, binary=False, test=12):
    """Random inputs, gates (0/1 or real) and labels, and test inputs with gates."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((count + test, dimension))
    g = rng.standard_normal((count + test, gates))
    if binary:
        g = (g > -0.3).astype(float)
        g[g.sum(axis=1) == 0, 0] = 1.0
    y = np.sign(rng.standard_normal(count))
    return x[:count], g[:count], y, x[count:], g[count:]


def paper_solution(x, g, y, xt, gt, width, depth, sigma, temperature=0.0):
    """Minimise the paper's Hamiltonian over its M^l x M^l matrices (SI, multiple hidden layers) by L-BFGS with autograd.

    U^l = A A^T; (U^l)^1/2 may be any square root, since H only depends on U. Returns H, mean, variance and U^1.
    """
    x, g, y, xt, gt = (torch.tensor(a, dtype=torch.float64) for a in (x, g, y, xt, gt))
    gates, scale = g.shape[1], sigma**2 / x.shape[1]
    x_all, g_all = torch.cat([x, xt]), torch.cat([g, gt])
    raw = [(sigma * torch.eye(gates**level, dtype=torch.float64)).requires_grad_() for level in range(1, depth + 1)]

    def kernel():
        feature = torch.ones(len(g_all), 1, dtype=torch.float64)
        for root in raw:
            feature = torch.einsum("pi,pj->pij", feature, g_all).reshape(len(g_all), -1) @ root
        return feature @ feature.T / gates**depth * (scale * x_all @ x_all.T)

    def hamiltonian():
        k = kernel()[: len(x), : len(x)] + temperature * torch.eye(len(x), dtype=torch.float64)
        result = (y @ torch.linalg.solve(k, y) + torch.logdet(k)) / 2
        for root in raw:
            result = result + width * (root.square().sum() / sigma**2 / 2 - torch.linalg.slogdet(root)[1])
        return result

    optimizer = torch.optim.LBFGS(
        raw, max_iter=2000, tolerance_grad=1e-9, tolerance_change=1e-15, history_size=50, line_search_fn="strong_wolfe"
    )

    def closure():
        optimizer.zero_grad()
        value = hamiltonian()
        value.backward()
        return value

    optimizer.step(closure)
    with torch.no_grad():
        k, count = kernel(), len(x)
        train = k[:count, :count] + temperature * torch.eye(count, dtype=torch.float64)
        weights = torch.linalg.solve(train, k[:count, count:])
        mean = weights.T @ y
        variance = torch.diagonal(k[count:, count:]) - (weights * k[:count, count:]).sum(dim=0)
        return float(hamiltonian()), mean.numpy(), variance.numpy(), (raw[0] @ raw[0].T).numpy()


@pytest.mark.parametrize(
    ("gates", "depth", "binary", "temperature"),
    [
        (2, 1, False, 0.0),
        (3, 1, True, 0.0),
        (2, 2, False, 0.0),
        (3, 2, True, 0.0),
        (2, 3, False, 0.0),
        (3, 3, True, 0.0),
        (3, 3, False, 0.1),
        (3, 2, False, 0.3),
    ],
)
def test_agrees_with_the_papers_formulation(gates, depth, binary, temperature):
    """Predictions, U_1 and H, up to N/2 (1 - log sigma^2) sum_l M^l, are those of the M^l x M^l order parameters."""
    width, sigma = 20.0, 0.8
    x, g, y, xt, gt = task(count=24, gates=gates, binary=binary)
    solution = solve(x, g, y, width, depth, sigma, temperature, solver=Solver(tolerance=1e-10))
    value, mean, variance, u = paper_solution(x, g, y, xt, gt, width, depth, sigma, temperature)
    constant = width / 2 * (1 - math.log(sigma**2)) * sum(gates**level for level in range(1, depth + 1))
    assert solution.hamiltonian + constant == pytest.approx(value, abs=1e-7)
    ours = solution.predict(xt, gt)
    np.testing.assert_allclose(ours[0], mean, atol=2e-5)
    np.testing.assert_allclose(ours[1], variance, atol=2e-5)
    np.testing.assert_allclose(solution.order_parameters[0], u, atol=2e-5)
    gp_mean = solve(x, g, y, math.inf, depth, sigma, temperature).predict(xt, gt)[0]
    assert np.abs(gp_mean - mean).max() > 1e-3


@pytest.mark.parametrize("width", [1.0, 30.0, 1e5])
@pytest.mark.parametrize("sigma", [0.05, 1.0, 30.0])
def test_one_gate_is_the_closed_form(width, sigma):
    """M = 1, g = 1: U is the positive root of N u^2/sigma^2 + (P - N) u - y^T K_0^-1 y = 0."""
    rng = np.random.default_rng(1)
    x, y = rng.standard_normal((20, 30)), rng.standard_normal(20)
    quadratic = y @ np.linalg.solve(sigma**2 / 30 * x @ x.T, y)
    a, b = width / sigma**2, 20 - width
    root = (-b + math.sqrt(b**2 + 4 * a * quadratic)) / (2 * a)
    solution = solve(x, np.ones((20, 1)), y, width, sigma=sigma, solver=Solver(tolerance=1e-10))
    assert solution.order_parameters[0].item() == pytest.approx(root, rel=1e-7)


@pytest.mark.parametrize("depth", [2, 4])
def test_one_gate_at_any_depth(depth):
    """M = 1: u_l/prior = v for all l, with N (v - 1) + P - v^-L y^T K_GP^-1 y = 0."""
    rng = np.random.default_rng(1)
    x, y, sigma, width = rng.standard_normal((20, 30)), rng.standard_normal(20), 0.7, 40.0
    g = np.ones((20, 1))
    quadratic = y @ np.linalg.solve(gp_kernel(x, g, depth=depth, sigma=sigma), y)
    root = brentq(lambda v: width * (v - 1) + 20 - v**-depth * quadratic, 1e-3, 1e3, xtol=1e-14)
    solution = solve(x, g, y, width, depth, sigma, solver=Solver(tolerance=1e-11))
    np.testing.assert_allclose(np.concatenate(solution.eigenvalues) / sigma**2, root, rtol=1e-8)
    assert solution.order_parameters[-1].item() == pytest.approx((sigma**2 * root) ** depth, rel=1e-7)


def test_mean_of_a_linear_network_does_not_move_with_width():
    """M = 1: the mean predictor is that of the GP at every N; with M > 1 it is not."""
    x, g, y, xt, gt = task(count=12, gates=3)
    one, one_t = np.ones((12, 1)), np.ones((len(xt), 1))
    means = [
        solve(x, one, y, width, 3, solver=Solver(tolerance=1e-10)).predict(xt, one_t)[0] for width in (2.0, 50.0, math.inf)
    ]
    np.testing.assert_allclose(means[0], means[2], atol=1e-9)
    np.testing.assert_allclose(means[1], means[2], atol=1e-9)
    gated = [solve(x, g, y, width, 3).predict(xt, gt)[0] for width in (2.0, math.inf)]
    assert np.abs(gated[0] - gated[1]).max() > 1e-2


@pytest.mark.parametrize(("depth", "binary"), [(1, False), (3, True), (5, False)])
def test_infinite_width_is_the_gp(depth, binary):
    """width = inf: <f> = k K^-1 y, var = K(x, x) - k K^-1 k with K_GP, approached like 1/N."""
    sigma, temperature = 0.9, 0.01
    x, g, y, xt, gt = task(binary=binary)
    solution = solve(x, g, y, math.inf, depth, sigma, temperature)
    k = gp_kernel(x, g, depth=depth, sigma=sigma) + temperature * np.eye(len(x))
    cross = gp_kernel(xt, gt, x, g, depth=depth, sigma=sigma)
    prior = gp_variance(xt, gt, depth=depth, sigma=sigma)
    weights = np.linalg.solve(k, cross.T)
    variance = prior - np.einsum("tp,pt->t", cross, weights)
    mean, var = solution.predict(xt, gt)
    np.testing.assert_allclose(mean, weights.T @ y, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(var, variance, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(solution.kernel_diagonal(xt, gt), prior, rtol=1e-10)
    assert solution.hamiltonian == pytest.approx(y @ np.linalg.solve(k, y) / 2 + np.linalg.slogdet(k)[1] / 2, rel=1e-9)
    near, far = (solve(x, g, y, width, depth, sigma, temperature).predict(xt, gt)[0] - mean for width in (1e6, 1e8))
    np.testing.assert_allclose(100 * far, near, rtol=1e-2, atol=1e-2 * np.abs(near).max())
    assert np.abs(near).max() > 0


@pytest.mark.parametrize("basis", ["monomial", "subset", "span"])
def test_gradient_is_the_derivative(basis):
    """dH along V_l -> B_l exp(eps X_l) B_l^T is sum_l tr(S_l X_l) / 2, by central differences."""
    x, g, y, _, _ = task(gates=4, binary=True)
    training = Training.of(x, g, y, depth=4, basis=basis, form="kernel")
    rng = np.random.default_rng(3)

    def direction(size):
        return [(a + a.T) * size for a in (rng.standard_normal((r, r)) for r in training.powers.sizes)]

    problem = Problem(training.likelihood(1.0, 0.1), [7.0, 3.0, 5.0, 20.0])
    state = problem.evaluate([Whitened.multiple(1.3, r) for r in training.powers.sizes], direction(0.05))
    step = direction(1.0)
    eps = 1e-5
    ahead, behind = (problem.evaluate(state.layers, [sign * eps * s for s in step]).value for sign in (1, -1))
    slope = sum(np.sum(a * b) for a, b in zip(state.gradient, step, strict=True)) / 2
    assert slope == pytest.approx((ahead - behind) / (2 * eps), rel=1e-6)


def far_point(problem, sizes):
    """A State far from the prior, of which the same directions of the gates are amplified in all layers."""
    rng = np.random.default_rng(3)
    steps = [a + a.T for a in (rng.standard_normal((r, r)) for r in sizes)]
    return problem.evaluate([Whitened.multiple(1.3, r) for r in sizes], steps)


@pytest.mark.parametrize("basis", ["monomial", "span"])
def test_curvature_is_the_second_derivative(basis):
    """Products with the Hessian, far from the prior and in turned bases, against second differences of H along steps."""
    x, g, y, _, _ = task(count=20, gates=3)
    training = Training.of(x, g, y, depth=3, basis=basis, form="kernel")
    sizes, problem, rng = (
        training.powers.sizes,
        Problem(training.likelihood(1.0, 0.1), [7.0, 3.0, 5.0]),
        np.random.default_rng(1),
    )
    state = far_point(problem, sizes).graded()
    curvature, eps = Curvature(problem, state, rng), 1e-3

    def direction():
        return [a + a.T for a in (rng.standard_normal((r, r)) for r in sizes)]

    def flat(step):
        return np.concatenate([x.ravel() for x in step])

    def value(*parts):
        return problem.evaluate(state.layers, [eps * sum(part) for part in zip(*parts, strict=True)]).value

    one, other = direction(), direction()
    minus = [[-x for x in step] for step in (one, other)]
    second = value(one, other) - value(one, minus[1]) - value(minus[0], other) + value(*minus)
    size = math.sqrt(flat(one) @ curvature.product(flat(one)) * (flat(other) @ curvature.product(flat(other))))
    assert flat(other) @ curvature.product(flat(one)) == pytest.approx(second / (4 * eps**2), abs=1e-4 * size)


@pytest.mark.parametrize("basis", ["monomial", "span"])
def test_turned_bases_change_nothing_but_coordinates(basis):
    """With large directions first V_l, H and the excess are the same, C_l has entries below its diagonal, and it goes back."""
    x, g, y, _, _ = task(count=20, gates=3)
    training = Training.of(x, g, y, depth=3, basis=basis, form="kernel")
    problem = Problem(training.likelihood(1.0, 0.1), [7.0, 3.0, 5.0])
    state = far_point(problem, training.powers.sizes)
    turned = state.graded()
    back = turned.in_bases([None] * 3)
    assert any(layer.basis is not None for layer in turned.layers)
    assert all(layer.basis is None for layer in back.layers)
    for other in (problem.evaluate(turned.layers), back):
        assert other.value == pytest.approx(state.value, rel=1e-9)
        for ours, theirs, z in zip(other.chain.v, state.chain.v, other.layers, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=1e-9 * np.abs(theirs).max())
            np.testing.assert_allclose(z.matrix.T @ z.matrix - np.eye(len(z.matrix)), z.excess, rtol=1e-6, atol=1e-6)
    for triangle in turned.chain.triangles[1:]:
        assert np.abs(np.tril(triangle / triangle.diagonal(), -1)).max() <= 1


def test_a_narrow_valley_is_followed():
    """Labels far too large for the prior, five layers, T near 0: a direction is amplified in all layers, and turns on the way."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((40, 30))
    g = np.maximum(x @ rng.standard_normal((30, 3)), 0)
    y = x @ rng.standard_normal(30)
    training = Training.of(x, g, y, depth=5)
    problem = Problem(training.likelihood(0.12**6, 2e-6), [10.0] * 5)
    state = minimise(problem, starts.multiple(problem, 5.0), tolerance=1e-6, limit=200)
    assert all(layer.logs[-1] > 3 for layer in state.layers)


def test_corrected_saddle_point_equation():
    """U = sigma^2 ( 1 - U^1/2 (R1 - R2) U^1/2 / (N M) ), with R from the paper's formula and the returned U only."""
    width, sigma, temperature = 25.0, 0.6, 0.02
    x, g, y, _, _ = task(count=50, gates=4, binary=True)
    u = solve(x, g, y, width, sigma=sigma, temperature=temperature, solver=Solver(tolerance=1e-10)).order_parameters[0]
    k0 = sigma**2 / x.shape[1] * x @ x.T
    inverse = np.linalg.inv((g @ u @ g.T) / 4 * k0 + temperature * np.eye(50))
    weights = inverse @ y
    values, vectors = np.linalg.eigh(u)
    root = (vectors * np.sqrt(values)) @ vectors.T
    force = root @ g.T @ ((inverse - np.outer(weights, weights)) * k0) @ g @ root / (width * 4)
    np.testing.assert_allclose(u, sigma**2 * (np.eye(4) - force), atol=1e-7)
    assert np.abs(u - (np.eye(4) - force)).max() > 0.1


def test_residual_certifies():
    """The residual falls below the tolerance asked for, and H is then a minimum: nearby points are higher."""
    x, g, y, _, _ = task(gates=3)
    rough, fine = (solve(x, g, y, 20.0, 2, temperature=0.05, solver=Solver(tolerance=t)) for t in (1e-2, 1e-10))
    assert rough.residual < 1e-2
    assert fine.residual < 1e-10
    assert fine.residual < rough.residual
    assert fine.converged
    assert fine.hamiltonian < rough.hamiltonian
    problem = Problem(fine.training.likelihood(1.0, 0.05), [20.0, 20.0])
    best = problem.evaluate(fine.layers).value
    rng = np.random.default_rng(0)
    for _ in range(5):
        step = [1e-2 * (a + a.T) for a in (rng.standard_normal((r, r)) for r in fine.training.powers.sizes)]
        assert problem.evaluate(fine.layers, step).value > best


@pytest.mark.parametrize("depth", [1, 3])
def test_symmetries(depth):
    """H and the predictor do not change under permutations of gates and of data, or a rotation of the inputs."""
    x, g, y, xt, gt = task(gates=4, binary=True)
    rng = np.random.default_rng(5)
    gates, data = rng.permutation(4), rng.permutation(len(x))
    rotation = np.linalg.qr(rng.standard_normal((15, 15)))[0]
    base = solve(x, g, y, 30.0, depth, solver=Solver(tolerance=1e-10))
    other = solve((x @ rotation)[data], g[:, gates][data], y[data], 30.0, depth, solver=Solver(tolerance=1e-10))
    assert other.hamiltonian == pytest.approx(base.hamiltonian, rel=1e-10)
    np.testing.assert_allclose(other.predict(xt @ rotation, gt[:, gates]), base.predict(xt, gt), rtol=1e-6, atol=1e-7)
    u = base.order_parameters[0][np.ix_(gates, gates)]
    np.testing.assert_allclose(other.order_parameters[0], u, rtol=1e-6, atol=1e-7)


def test_scales_of_inputs_and_gates_are_absorbed_by_the_labels():
    """K~ is quadratic in x and of degree 2L in g: solving for (a x, b g) with labels a b^L y scales f by a b^L."""
    x, g, y, xt, gt = task(gates=3)
    a, b, depth = 3.0, 0.5, 2
    base, other = solve(x, g, y, 9.0, depth), solve(a * x, b * g, a * b**depth * y, 9.0, depth)
    np.testing.assert_allclose(other.predict(a * xt, b * gt)[0], a * b**depth * base.predict(xt, gt)[0], rtol=1e-7)


@pytest.mark.parametrize("kind", ["monomial", "subset"])
def test_features_are_powers_of_the_overlap(kind):
    """s_l(g).s_l(g') = (g.g')^l, and their number is C(M + l - 1, l), or sum_k C(M, k) for 0/1 gates."""
    rng = np.random.default_rng(0)
    g = (rng.random((30, 5)) < 0.5).astype(float) if kind == "subset" else rng.standard_normal((30, 5))
    for degree, size in zip(range(1, 5), [5, 15, 35, 70] if kind == "monomial" else [5, 15, 25, 30], strict=True):
        features = Coordinates(kind, 5, degree).features(g, np.ones(30))
        assert features.shape[1] == size == Coordinates.count(kind, 5, degree)
        np.testing.assert_allclose(features @ features.T, (g @ g.T) ** degree, rtol=1e-12, atol=1e-12)


def test_steps_between_layers_multiply_by_the_gates():
    """With V_l = I, G_{l+1} at the training gates is (g.g')^{l+1} in every form, and adjoint is the transpose."""
    rng = np.random.default_rng(0)
    g = np.unique((rng.random((40, 4)) < 0.5).astype(float), axis=0)
    g = g[g.any(axis=1)]
    overlap = g @ g.T / np.outer(np.linalg.norm(g, axis=1), np.linalg.norm(g, axis=1))
    for kind, explicit in (("monomial", 4), ("subset", 4), ("subset", 0), ("subset", 2)):
        powers = GatePowers(g, 4, kind, explicit)
        v = np.eye(powers.sizes[0]) if powers.first is None else powers.first
        for step, below in zip(powers.steps, powers.sizes, strict=False):
            a, b = rng.standard_normal((below, below)), rng.standard_normal(step.forward(v).shape)
            np.testing.assert_allclose(np.vdot(step.forward(a), b), np.vdot(a, step.adjoint(b)), rtol=1e-10)
            v = step.forward(v)
        top = np.eye(len(g)) if powers.top is None else powers.top
        np.testing.assert_allclose(top @ v @ top.T, overlap**4, atol=1e-10)


@pytest.mark.parametrize("depth", [1, 2, 4])
def test_all_forms_of_the_features_agree(depth):
    """Monomial, subset and span forms are one theory: H, mean, variance and kernel at new inputs agree."""
    x, g, y, xt, gt = task(count=30, gates=4, binary=True)
    forms = [
        solve(x, g, y, 15.0, depth, solver=Solver(basis=basis, tolerance=1e-10))
        for basis in ("monomial", "subset", "span", "auto")
    ]
    for other in forms[1:]:
        assert other.hamiltonian == pytest.approx(forms[0].hamiltonian, rel=1e-9)
        np.testing.assert_allclose(other.predict(xt, gt), forms[0].predict(xt, gt), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(other.kernel(xt, gt), forms[0].kernel(xt, gt), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_span_is_exact_outside_the_training_span(depth):
    """Few training gates, new gates outside their span: the prior part kept there makes span equal monomial."""
    rng = np.random.default_rng(2)
    directions = rng.standard_normal((4, 6))
    g = directions[rng.integers(0, 4, 25)]
    x, y = rng.standard_normal((25, 40)), rng.standard_normal(25)
    xt, gt = rng.standard_normal((9, 40)), rng.standard_normal((9, 6))
    full, span = (solve(x, g, y, 10.0, depth, solver=Solver(basis=basis, tolerance=1e-10)) for basis in ("monomial", "span"))
    assert span.training.powers.sizes[-1] == 4 < full.training.powers.sizes[-1]
    assert span.hamiltonian == pytest.approx(full.hamiltonian, rel=1e-9)
    np.testing.assert_allclose(span.predict(xt, gt), full.predict(xt, gt), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(span.kernel(xt, gt), full.kernel(xt, gt), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(np.diag(span.kernel(xt, gt)), span.kernel_diagonal(xt, gt), rtol=1e-10)
    np.testing.assert_allclose(span.order_parameters[0], full.order_parameters[0], rtol=1e-5, atol=1e-6)
    outside = np.linalg.svd(directions)[2][4:]
    np.testing.assert_allclose(outside @ full.order_parameters[0], outside, atol=1e-7)


def test_training_labels_are_interpolated_at_zero_temperature():
    """T = 0: mean = y and variance = 0 on the training set; small T comes close to it, and no T is negligible at T = 1."""
    x, g, y, xt, gt = task(gates=3)
    zero, small, warm = (solve(x, g, y, 20.0, 2, temperature=t, solver=Solver(tolerance=1e-10)) for t in (0.0, 1e-7, 1.0))
    np.testing.assert_allclose(zero.predict(x, g)[0], y, atol=1e-7)
    np.testing.assert_allclose(zero.predict(x, g)[1], 0, atol=1e-7)
    np.testing.assert_allclose(small.predict(xt, gt), zero.predict(xt, gt), atol=1e-3)
    assert np.abs(warm.predict(x, g)[0] - y).max() > 0.1


def test_finite_temperature_lifts_the_rank_condition():
    """Repeated inputs with different labels: RankError at T = 0, a solution whose mean is their average at small T."""
    x, g, y, _, _ = task(gates=3)
    x, g, y = np.r_[x, x[:1]], np.r_[g, g[:1]], np.r_[y, -y[0]]
    with pytest.raises(RankError, match="temperature"):
        solve(x, g, y, 20.0)
    assert abs(solve(x, g, y, 20.0, temperature=1e-3).predict(x[:1], g[:1])[0].item()) < 1e-2


def test_above_capacity_is_a_rank_error():
    """P > N0 C(M + L - 1, L) = 4 * 3 for real gates, P > N0 sum_k C(M, k) = 4 * 7 for 0/1 gates of depth 3."""
    x, g, y, _, _ = task(count=13, dimension=4, gates=2)
    with pytest.raises(RankError):
        solve(x, g, y, 20.0, 2)
    assert solve(x[:12], g[:12], y[:12], 20.0, 2).converged
    x, g, y, _, _ = task(count=200, dimension=4, gates=3, binary=True)
    with pytest.raises(RankError):
        solve(x, g, y, 20.0, 3)


def test_dead_inputs():
    """Inputs with no active gate are left out, counted, and predicted 0 with variance 0."""
    x, g, y, xt, gt = task(gates=3, binary=True)
    dead_x, dead_g = np.r_[x, xt[:2]], np.r_[g, np.zeros((2, 3))]
    with_dead, without = solve(dead_x, dead_g, np.r_[y, 1, -1], 20.0), solve(x, g, y, 20.0)
    assert (with_dead.dead, without.dead) == (2, 0)
    assert with_dead.hamiltonian == pytest.approx(without.hamiltonian, rel=1e-12)
    gt[3] = 0
    mean, variance = with_dead.predict(xt, gt)
    assert mean[3] == variance[3] == with_dead.kernel_diagonal(xt, gt)[3] == 0
    assert not with_dead.kernel(xt, gt)[3].any()
    assert variance[4] > 0


def test_kernel_gives_the_predictor():
    """mean = K~(x_t, x) (K~ + T)^-1 y and the variance likewise, from `kernel` alone."""
    x, g, y, xt, gt = task(gates=3)
    solution = solve(x, g, y, 12.0, 3, temperature=0.1)
    k, cross = solution.kernel(x, g), solution.kernel(xt, gt, x, g)
    weights = np.linalg.solve(k + 0.1 * np.eye(len(x)), cross.T)
    mean, variance = solution.predict(xt, gt)
    np.testing.assert_allclose(mean, weights.T @ y, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(
        variance, solution.kernel_diagonal(xt, gt) - np.einsum("tp,pt->t", cross, weights), rtol=1e-8, atol=1e-10
    )


def test_sweep_and_warm_start_find_the_same_minima():
    """A sweep returns, in the order given, what single solves do, with fewer factorizations; so does `start`."""
    x, g, y, xt, gt = task(count=60, gates=4, dimension=30)
    widths = [40.0, 5.0, math.inf, 20.0, 10.0]
    sweep = solve_sweep(x, g, y, widths=widths, sigma=0.3, depth=2)
    single = [solve(x, g, y, width, 2, 0.3) for width in widths]
    for a, b, width in zip(sweep, single, widths, strict=True):
        assert a.width == width
        assert a.hamiltonian == pytest.approx(b.hamiltonian, rel=1e-10)
        np.testing.assert_allclose(a.predict(xt, gt), b.predict(xt, gt), rtol=1e-4, atol=1e-5)
    assert sum(s.evaluations for s in sweep) < sum(s.evaluations for s in single)
    warm = solve(x, g, y, 5.5, 2, 0.3, solver=Solver(start=single[1]))
    assert warm.hamiltonian == pytest.approx(solve(x, g, y, 5.5, 2, 0.3).hamiltonian, rel=1e-10)
    sigmas = solve_sweep(x, g, y, sigmas=[0.3, 0.6], width=20.0, depth=2)
    assert sigmas[0].hamiltonian == pytest.approx(single[3].hamiltonian, rel=1e-10)


@pytest.mark.parametrize("size", [1e-6, 0.3, 3.0])
def test_a_moved_order_parameter_knows_its_excess_and_eigenvalues(size):
    """After many steps, small (same frame) or large (turned), excess = Z^T Z - 1 and logs are its eigenvalues."""
    rng = np.random.default_rng(0)
    layer = Whitened.multiple(1.2, 5)
    begin = layer.frame
    for _ in range(4):
        x = rng.standard_normal((5, 5))
        layer = layer.moved(size * (x + x.T) / np.abs(x + x.T).max())
    product = layer.matrix.T @ layer.matrix
    np.testing.assert_allclose(layer.excess, product - np.eye(5), atol=1e-13 * np.abs(product).max())
    np.testing.assert_allclose(np.exp(layer.logs), np.linalg.eigvalsh(product), rtol=1e-9)
    assert (layer.frame is begin) == (size < 0.5)


def test_recycled_directions_precondition_as_bfgs():
    """With all rows kept, the preconditioner is the BFGS update of the diagonal one, on symmetric matrices."""
    rng = np.random.default_rng(0)
    size, pairs = 4, 5
    root = rng.standard_normal((size**2, size**2))
    swap = np.eye(size**2).reshape(size, size, -1).transpose(1, 0, 2).reshape(size**2, -1)
    symmetric = (np.eye(size**2) + swap) / 2
    hessian = symmetric @ (root @ root.T + 5 * np.eye(size**2)) @ symmetric
    diagonal = np.full(size**2, 3.0)
    recycler = Recycler(size)
    recycler.attend([Whitened.multiple(1.1, size)])
    directions = [symmetric @ rng.standard_normal(size**2) for _ in range(pairs)]
    images = [hessian @ p for p in directions]
    expected = np.diag(1 / diagonal)
    for start in (0, 2):  # two runs, as in two steps
        chosen = slice(start, start + 2 if start == 0 else pairs)
        recycler.keep(
            directions[chosen], images[chosen], [p @ q for p, q in zip(directions[chosen], images[chosen], strict=True)]
        )
    for p, q in zip(directions, images, strict=True):
        left = np.eye(size**2) - np.outer(p, q) / (p @ q)
        expected = left @ expected @ left.T + np.outer(p, p) / (p @ q)
    vector = symmetric @ rng.standard_normal(size**2)
    np.testing.assert_allclose(recycler.apply(vector, diagonal), expected @ vector, rtol=1e-5, atol=1e-6)
    recycler.attend([Whitened.multiple(1.1, size)])  # another frame: all is forgotten
    np.testing.assert_allclose(recycler.apply(vector, diagonal), vector / diagonal)


def test_parallel_networks_are_the_better_start():
    """At depth 8 and large labels H starts far lower than from a multiple of the prior, and ends at the same minimum."""
    x, g, y, _, _ = task(gates=4, binary=True)
    training = Training.of(x, g, 3 * y, depth=8)
    problem = Problem(training.likelihood(1.0, 0.0), [100.0] * 8)
    layers = starts.prior(problem)
    factor = starts.best_factor(problem, layers, *starts.prior_forces(training, problem, layers))
    scaled = problem.evaluate([layer.times(factor) for layer in layers])
    parallel = problem.evaluate(starts.starting_point(training, problem, [], 0.0))
    solution = solve(x, g, 3 * y, 100.0, 8, solver=Solver(check_starts=2))
    lowest = solution.hamiltonian - problem.likelihood.shift
    assert factor > 1
    assert parallel.value - lowest < 0.5 * (scaled.value - lowest)
    np.testing.assert_allclose(list(solution.starts.values()), solution.hamiltonian, rtol=1e-9)


def test_random_starts_agree():
    """H is not convex, yet here all starting points lead to one minimum; the starts are really different."""
    x, g, y, _, _ = task(gates=3, binary=True)
    solution = solve(x, g, y, 20.0, 3, solver=Solver(check_starts=4))
    assert list(solution.starts) == ["prior", "random 1", "random 2", "random 3", "random 4"]
    np.testing.assert_allclose(list(solution.starts.values()), solution.hamiltonian, rtol=1e-9)
    assert solution.evaluations > solve(x, g, y, 20.0, 3).evaluations


@pytest.mark.parametrize("width", [1.0, 1e3, 1e8])
@pytest.mark.parametrize("sigma", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("temperature", [0.0, 0.1])
def test_one_layer_over_many_decades(width, sigma, temperature):
    """L = 1 is certified for N from 1 to 1e8 and sigma over six decades; U stays positive and finite."""
    x, g, y, _, _ = task(gates=4, binary=True)
    solution = solve(x, g, y, width, sigma=sigma, temperature=temperature)
    assert solution.residual <= 1e-8
    assert np.isfinite(solution.hamiltonian)
    assert solution.eigenvalues[0][0] > 0


def test_depth_beyond_any_exponential_object():
    """L = 10, M = 8 (8^10 = 1e9): sizes are bounded by the distinct training gates, and the mean interpolates."""
    x, g, y, _, _ = task(count=30, gates=8)
    solution = solve(x, g, y, 200.0, 10)
    assert max(solution.training.powers.sizes) <= 30
    np.testing.assert_allclose(solution.predict(x, g)[0], y, atol=1e-6)


def test_a_tolerance_below_rounding_is_recognised():
    """The residual stops falling at rounding: an error says so and gives the residual, long before max_evaluations."""
    x, g, y, _, _ = task(gates=3)
    with pytest.raises(ConvergenceError, match="rounding keeps the residual at"):
        solve(x, g, y, 20.0, solver=Solver(tolerance=1e-30, max_evaluations=100000))


def test_each_refusal_has_its_error():
    """Wrong shapes, NaN, out-of-range numbers, unknown options and failure to converge are named."""
    x, g, y, xt, gt = task(gates=3)
    bad = x.copy()
    bad[0, 0] = np.nan
    cases = [
        (lambda: solve(bad, g, y, 5.0), "x"),
        (lambda: solve(x, g[:-1], y, 5.0), "gates"),
        (lambda: solve(x, g, y[:-1], 5.0), "y"),
        (lambda: solve(x, g, y, -5.0), "width"),
        (lambda: solve(x, g, y, 5.0, 0), "depth"),
        (lambda: solve(x, g, y, 5.0, sigma=0.0), "sigma"),
        (lambda: solve(x, g, y, 5.0, temperature=-1.0), "temperature"),
        (lambda: solve(x, g, y, 5.0, solver=Solver(basis="other")), "basis"),
        (lambda: solve(x, g, y, 5.0, solver=Solver(basis="subset")), "subset"),
        (lambda: solve(x, 0 * g, y, 5.0), "gates"),
        (lambda: solve(x, g, y, 5.0, 2, solver=Solver(start=solve(x, g, y, 5.0))), "start"),
        (lambda: solve(x, g, y, 5.0, solver=Solver(start=3)), "start"),
        (lambda: solve_sweep(x, g, y), "widths"),
        (lambda: solve_sweep(x, g, y, widths=[]), "widths"),
        (lambda: solve(x, g, y, 5.0).predict(xt, gt[:, :2]), "gates"),
        (lambda: solve(x, g, y, 5.0).predict(xt[:, :2], gt), "x"),
        (lambda: solve(x, (g > 0) + 0.0, y, 5.0, 3, temperature=1.0, solver=Solver(basis="subset")).predict(xt, gt), "gates"),
    ]
    for call, name in cases:
        with pytest.raises(InputError, match=name):
            call()
    with pytest.raises(ConvergenceError, match="residual"):
        solve(x, g, y, 5.0, solver=Solver(max_evaluations=2))


def test_geometry_groups_samples_with_equal_gates(monkeypatch):
    """contracted is the adjoint of expanded, with few distinct gates (grouped) and with many, in one panel and in several."""
    rng = np.random.default_rng(0)
    monkeypatch.setattr(likelihood, "PANEL", 7)
    for binary, basis, small in itertools.product((True, False), ("monomial", "span"), (7, 512)):
        monkeypatch.setattr(likelihood, "SMALL", small)
        x, g, y, _, _ = task(count=50, gates=3, binary=binary)
        geometry = Training.of(x, g, y, depth=2, basis=basis).form(0.0)
        v, w = (a + a.T for a in (rng.standard_normal((side, side)) for side in (geometry.powers.sizes[-1], 50)))
        left = np.tril(geometry.kernel(geometry.expanded(v)))
        weighed = np.triu(w * geometry.cosines) - np.diag(np.diagonal(w)) / 2
        right = geometry.contracted(lambda first, last, w=weighed: w[first:last, first:])
        assert np.vdot(left + np.tril(left, -1).T, w) == pytest.approx(np.vdot(v, right), rel=1e-10)


def test_labels_in_other_units_are_named_where_nothing_converges():
    rng = np.random.default_rng(0)
    x, gates, y = 0.05 * rng.standard_normal((40, 5)), rng.standard_normal((40, 3)) > 0, 150 + 70 * rng.standard_normal(40)
    network = {"width": 10, "temperature": 0.01, "solver": Solver(max_evaluations=2)}
    with pytest.raises(ConvergenceError, match=r"Labels are \de\+0\d times the outputs that the prior gives: standardize"):
        solve(x, gates, y, **network)
    with pytest.raises(ConvergenceError) as error:
        solve(20 * x, gates, (y - 150) / 70, **network)
    assert "standardize" not in str(error.value)
    with pytest.raises(InputError, match=r"gates: expected numbers, got a function .* such as gates\(x\)"):
        solve(x, lambda x: x > 0, y, width=10)
