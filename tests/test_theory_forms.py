"""The two forms of the data term, samples in blocks, several outputs and layers of their own: one theory in all of them."""

import math
import os
import subprocess
import sys
import warnings

import numpy as np
import pytest
from scipy.optimize import brentq

from ggdln import ensemble_statistics, gp_limit, predictor_statistics, select, solve, solve_exact, solve_sweep
from ggdln.core import blas
from ggdln.core.errors import InputError, RankError
from ggdln.core.memory import available_bytes
from ggdln.theory import training as training_module
from ggdln.theory.kernels import gp_kernel
from ggdln.theory.likelihood import FeatureForm, KernelForm
from ggdln.theory.select import slopes
from ggdln.theory.solution import Solver
from ggdln.theory.training import Training


def task(count=60, dimension=4, gates=3, seed=0, *, binary=False, outputs=None, test=12):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((count + test, dimension))
    g = rng.uniform(0.1, 1, (count + test, gates)) if not binary else (rng.random((count + test, gates)) < 0.6).astype(float)
    g[g.sum(axis=1) == 0, 0] = 1.0
    y = np.sin(2 * x[:, 0])[:, None] * np.linspace(1, -0.5, outputs or 1) + 0.1 * rng.standard_normal((len(x), outputs or 1))
    y = y[:, 0] if outputs is None else y
    return (x[:count], g[:count], y[:count]), (x[count:], g[count:])


# ---- Forms


@pytest.mark.parametrize("outputs", [None, 2])
@pytest.mark.parametrize(("depth", "binary", "temperature"), [(1, False, 0.1), (2, False, 1e-3), (3, True, 0.1)])
def test_both_forms_are_one_theory(depth, binary, temperature, outputs):
    """H, mean, variance, covariance and evidence of the kernel and of the feature form, to 1e-8."""
    data, test = task(binary=binary, outputs=outputs)
    kernel, features = (
        solve(*data, 17.0, depth, 0.8, temperature, solver=Solver(form=form, tolerance=1e-10))
        for form in ("kernel", "features")
    )
    assert isinstance(kernel.likelihood.form, KernelForm)
    assert isinstance(features.likelihood.form, FeatureForm)
    assert features.hamiltonian == pytest.approx(kernel.hamiltonian, rel=1e-9)
    assert features.log_evidence == pytest.approx(kernel.log_evidence, rel=1e-9)
    scale = np.abs(data[2]).max()
    np.testing.assert_allclose(features.predict(*test), kernel.predict(*test), rtol=1e-8, atol=1e-8 * scale)
    covariances = [one.predict(*test, covariance=True)[1] for one in (kernel, features)]
    np.testing.assert_allclose(*covariances, rtol=1e-8, atol=1e-8 * scale**2)
    diagonal = covariances[0].reshape(kernel.predict(*test)[1].size, -1).diagonal()
    np.testing.assert_allclose(diagonal, kernel.predict(*test)[1].ravel(), rtol=1e-9, atol=1e-12)


def test_the_cheaper_form_is_taken():
    data, _ = task(count=60, dimension=4, gates=3)
    assert isinstance(solve(*data, 10.0, 1, 1.0, 0.1).likelihood.form, FeatureForm)  # 12 features
    assert isinstance(solve(*data, 10.0, 3, 1.0, 0.1).likelihood.form, KernelForm) is (40 > 60)
    small, _ = task(count=10, dimension=4, gates=3)
    assert isinstance(solve(*small, 10.0).likelihood.form, KernelForm)
    assert isinstance(solve(*small, 10.0, temperature=0.1).likelihood.form, KernelForm)
    with pytest.raises(InputError, match="temperature"):
        solve(*data, 10.0, solver=Solver(form="features"))


def test_feature_form_holds_where_rounding_ends_the_kernel_form():
    """Far above capacity at T = 1e-6 the kernel form can't meet the tolerance; the feature form can."""
    data, test = task(count=200, gates=2)
    solution = solve(*data, 20.0, 1, 1.0, 1e-6, solver=Solver(tolerance=1e-10))
    assert isinstance(solution.likelihood.form, FeatureForm)
    assert solution.residual < 1e-10
    assert np.isfinite(solution.predict(*test)).all()


@pytest.mark.parametrize("outputs", [None, 2])
def test_blocks_are_one_training_set(outputs):
    """Read once from a generator, with dead inputs in them, for the theory, the limit and predictions in blocks."""
    (x, g, y), test = task(count=90, outputs=outputs)
    g[5] = 0
    whole = solve(x, g, y, 12.0, 2, 0.8, 0.1, solver=Solver(basis="monomial", form="features"))
    blocks = ((x[i : i + 20], g[i : i + 20], y[i : i + 20]) for i in range(0, 90, 20))
    pieces = solve(blocks, width=12.0, depth=2, sigma=0.8, temperature=0.1)
    assert pieces.hamiltonian == pytest.approx(whole.hamiltonian, rel=1e-10)
    assert pieces.log_evidence == pytest.approx(whole.log_evidence, rel=1e-10)
    assert (pieces.dead, whole.dead) == (1, 1)
    np.testing.assert_allclose(pieces.predict(*test), whole.predict(*test), rtol=1e-7)
    limit = gp_limit([(x[:40], g[:40], y[:40]), (x[40:], g[40:], y[40:])], depth=2, sigma=0.8, temperature=0.1)
    direct = gp_limit(x, g, y, depth=2, sigma=0.8, temperature=0.1)
    np.testing.assert_allclose(limit.predict(*test), direct.predict(*test), rtol=1e-8)
    assert limit.log_evidence == pytest.approx(direct.log_evidence, rel=1e-9)


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        ([], "blocks"),
        ([(np.ones((2, 3)), np.ones((2, 2)))], "block 0"),
        ([(np.ones((2, 3)), np.ones((2, 2)), np.ones(2)), (np.ones((2, 4)), np.ones((2, 2)), np.ones(2))], "block 1"),
        ([(np.ones((2, 3)), np.full((2, 2), np.nan), np.ones(2))], "block 0: gates"),
        (np.ones((3, 2)), "gates, y"),
    ],
)
def test_wrong_blocks_are_named(blocks, message):
    with pytest.raises(InputError, match=message):
        solve(blocks, width=5.0, temperature=0.1)


def test_feature_limit_is_the_kernel_limit():
    """gp_limit with many samples regresses in the features: mean, variance, evidence and training error."""
    (x, g, y), test = task(count=80)
    many = gp_limit(x, g, y, sigma=0.8, temperature=0.05)
    k = gp_kernel(x, g, sigma=0.8) + 0.05 * np.eye(80)
    cross = gp_kernel(*test, x, g, sigma=0.8)
    np.testing.assert_allclose(many.predict(*test)[0], cross @ np.linalg.solve(k, y), rtol=1e-8)
    truth = -(y @ np.linalg.solve(k, y) + np.linalg.slogdet(2 * math.pi * k)[1]) / 2
    assert many.log_evidence == pytest.approx(truth, rel=1e-10)
    np.testing.assert_allclose(many.fitted, y - 0.05 * np.linalg.solve(k, y), atol=1e-9)
    assert many.train_error == pytest.approx(np.mean((many.fitted - y) ** 2), rel=1e-6)


def test_predictions_in_blocks(monkeypatch):
    data, test = task()
    solution = solve(*data, 10.0, 2, temperature=0.1)
    whole = solution.predict(*test)
    monkeypatch.setattr("ggdln.theory.predictor.MOST_ENTRIES", 200)
    np.testing.assert_allclose(solution.predict(*test), whole, rtol=1e-12)


def test_what_cannot_fit_is_refused_and_what_takes_long_is_told(monkeypatch):
    (x, g, y), _ = task()
    monkeypatch.setattr(training_module, "available_bytes", lambda: 1000)
    with pytest.raises(InputError, match=r"60 samples.*GB"):
        solve(x, g, y, 5.0)
    monkeypatch.undo()
    monkeypatch.setattr(training_module, "LONG_SECONDS", 0.0)
    with pytest.warns(RuntimeWarning, match="minutes on one core"):
        solve(x[:10], g[:10], y[:10], 5.0)
    assert 1e8 < available_bytes() < 1e14


LIMITED = """
import resource, sys
import numpy as np
from ggdln.core.errors import InputError
from ggdln.core.memory import _address_space
from ggdln.theory.solution import Solver, solve
from ggdln.theory.training import BYTES_PER_FEATURE_PAIR, BYTES_PER_SAMPLE_PAIR

rng, what, side = np.random.default_rng(0), sys.argv[1], 1000
gating = rng.standard_normal((100, 10))


def block(count):
    x = rng.standard_normal((count, 100))
    return x, np.maximum(x @ gating, 0), np.sign(x[:, 0])


def solved():
    if what == "blocks":
        return solve((block(200) for _ in range(6)), width=50.0, temperature=0.1)
    return solve(*data, width=50.0, temperature=0.1, solver=Solver(form=what))


solve(*block(5), width=50.0, temperature=0.1)  # what libraries take when they are first used
data = block(side)
each = BYTES_PER_SAMPLE_PAIR if what == "kernel" else BYTES_PER_FEATURE_PAIR
resource.setrlimit(resource.RLIMIT_AS, (int(_address_space() + float(sys.argv[2]) * each * side**2),) * 2)
try:
    print("residual", solved().residual)
except InputError as error:
    print("refused", error)
"""


@pytest.mark.slow
@pytest.mark.parametrize("what", ["kernel", "features", "blocks"])
def test_a_hard_limit_is_kept_or_refused_before_the_start(what):
    """Under RLIMIT_AS: with what it says it needs, and a fifth for small arrays, a solve ends; with less it is refused."""
    told = []
    for share in ("1.2", "0.9"):
        command = [sys.executable, "-c", LIMITED, what, share]
        environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        told.append(done.stdout)
    assert told[0].startswith("residual")
    assert told[1].startswith("refused x: ")
    assert "need matrices of side 1000" in told[1]


# ---- Outputs


@pytest.mark.parametrize(("depth", "basis"), [(1, "auto"), (2, "monomial"), (2, "span")])
def test_outputs_are_a_gate_of_their_own(depth, basis):
    """C outputs at depth 1 are one output with gates g (x) e_c; at any depth equal labels of both outputs share their order."""
    (x, g, y), (xt, gt) = task(count=24, dimension=15, outputs=2)
    joint = solve(x, g, y, 15.0, depth, 0.8, solver=Solver(basis=basis, tolerance=1e-10))
    mean, variance = joint.predict(xt, gt)
    assert mean.shape == variance.shape == (len(xt), 2)
    assert joint.kernel(xt, gt).shape == (len(xt), 2, len(xt), 2)
    np.testing.assert_allclose(joint.predict(x, g)[0], y, atol=1e-6)
    if depth == 1:
        # K of a single output has 1/M, of the larger set of gates 1/(2 M).
        tiled = [np.repeat(a, 2, axis=0) for a in (x, xt)]
        wide = [math.sqrt(2) * np.kron(a, np.eye(2)) for a in (g, gt)]
        single = solve(tiled[0], wide[0], y.ravel(), 15.0, 1, 0.8, solver=Solver(tolerance=1e-10))
        assert joint.hamiltonian == pytest.approx(single.hamiltonian, rel=1e-9)
        np.testing.assert_allclose(mean.ravel(), single.predict(tiled[1], wide[1])[0], rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(variance.ravel(), single.predict(tiled[1], wide[1])[1], rtol=1e-6, atol=1e-8)


def test_outputs_at_infinite_width_are_separate_regressions():
    (x, g, y), test = task(count=24, dimension=15, outputs=3)
    for solution in (solve(x, g, y, math.inf, 2, 0.9), gp_limit(x, g, y, depth=2, sigma=0.9)):
        mean, variance = solution.predict(*test)
        for c in range(3):
            alone = gp_limit(x, g, y[:, c], depth=2, sigma=0.9).predict(*test)
            np.testing.assert_allclose(mean[:, c], alone[0], rtol=1e-6, atol=1e-9)
            np.testing.assert_allclose(variance[:, c], alone[1], rtol=1e-6, atol=1e-9)
    covariance = solution.predict(*test, covariance=True)[1]
    assert not covariance[:, 0, :, 1].any()


def test_a_column_of_labels_is_one_output():
    (x, g, y), test = task(count=24, dimension=15)
    flat, column = solve(x, g, y, 12.0, 2), solve(x, g, y[:, None], 12.0, 2)
    np.testing.assert_allclose(column.predict(*test)[0][:, 0], flat.predict(*test)[0], rtol=1e-9)
    assert column.predict(*test)[1].shape == (len(test[0]), 1)


def test_outputs_that_do_not_mix_do_not_share():
    """The joint network differs from separate ones at finite width, where its outputs compete for the same units."""
    (x, g, y), test = task(count=24, dimension=15, outputs=2)
    joint, alone = solve(x, g, y, 5.0), solve(x, g, y[:, 0], 5.0)
    assert np.abs(joint.predict(*test)[0][:, 0] - alone.predict(*test)[0]).max() > 1e-3


# ---- Layers of their own


def test_deep_linear_network_with_unequal_layers():
    """M = 1: N_l (v_l - 1) + P - q / prod v = 0 for every l, with q = y K_GP^-1 y and K_GP of the product of all sigmas."""
    rng = np.random.default_rng(1)
    x, y, g = rng.standard_normal((20, 30)), rng.standard_normal(20), np.ones((20, 1))
    widths, sigmas = (10.0, 40.0, 25.0), (0.7, 0.9, 1.1, 0.6)
    quadratic = y @ np.linalg.solve(math.prod(sigmas) ** 2 * x @ x.T / 30, y)

    def factors(product):
        return [1 - (20 - quadratic / product) / width for width in widths]

    # The narrowest layer has fewer units than samples, so its factor vanishes at some product.
    product = brentq(lambda p: math.prod(factors(p)) - p, 1e-6, quadratic / (20 - 10) * (1 - 1e-12))
    solution = solve(x, g, y, widths, 3, sigmas, solver=Solver(tolerance=1e-11))
    # Order parameters count from the readout, widths and sigmas from the input.
    expected = [sigma**2 * v for sigma, v in zip(sigmas[:0:-1], factors(product)[::-1], strict=True)]
    np.testing.assert_allclose(np.concatenate(solution.eigenvalues), expected, rtol=1e-7)


def test_equal_layers_as_numbers_or_one_by_one():
    data, test = task(count=24, dimension=15)
    once = solve(*data, 12.0, 2, 0.8)
    each = solve(*data, (12.0, 12.0), 2, [0.8, 0.8, 0.8])
    assert each.hamiltonian == once.hamiltonian
    np.testing.assert_array_equal(each.predict(*test), once.predict(*test))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(width=(5, 6, 7)), "one for each of the 2 hidden layers"),
        (dict(width=(5, math.inf)), "all layers finite"),
        (dict(width=None), "width"),
        (dict(width="100"), "width.*'100'"),
        (dict(sigma=(1.0, 1.0)), "one for each of the 3 layers of weights"),
        (dict(gates=np.full((24, 3), np.nan)), "gates: 72 entries are NaN"),
        (dict(y=np.array(["a"] * 24)), "y: expected numbers"),
        (dict(y=np.ones((24, 2, 2))), "y: expected 1 or 2 dimension"),
        (dict(solver="fast"), "solver: expected Solver"),
    ],
)
def test_wrong_arguments_are_named(change, message):
    (x, g, y), _ = task(count=24, dimension=15)
    with pytest.raises(InputError, match=message):
        solve(**dict(x=x, gates=g, y=y, width=5.0, depth=2) | change)


def test_rank_error_tells_rank_capacity_and_a_temperature():
    (x, g, y), _ = task(count=60, dimension=4, gates=3)
    with pytest.raises(RankError, match=r"rank 12.*capacity, 12.*for instance \de-\d+") as caught:
        solve(x, g, y, 10.0)
    start = float(str(caught.value).split("for instance ")[1].split(",")[0])
    assert solve(x, g, y, 10.0, temperature=start).converged


def test_zero_one_labels_are_refused_where_signs_are_meant():
    mean, y = np.array([0.2, 0.7, 0.1]), np.array([0.0, 1.0, 1.0])
    with pytest.raises(InputError, match=r"2 \* y - 1"):
        predictor_statistics(mean, np.ones(3), y)
    assert predictor_statistics(mean, np.ones(3), 2 * y - 1)["error_rate"] < 1
    with pytest.raises(InputError, match="y_test: labels are 0 and 1"):
        ensemble_statistics(np.stack([mean, mean]), y)


# ---- Several minima


def two_minima():
    """One open gate, depth 6, small sigma: H has a minimum near the prior and a lower one that fits."""
    rng = np.random.default_rng(104)
    x = rng.standard_normal((40, 60))
    return x, np.ones((40, 1)), x @ rng.standard_normal(60) / math.sqrt(60)


def test_the_lower_of_two_minima():
    """A scan over the one number that H depends on gives the truth; both minima are told."""
    x, g, y = two_minima()
    width, depth, sigma, temperature = 30.0, 6, 0.15, 2e-5
    values, vectors = np.linalg.eigh(sigma ** (2 * depth + 2) * x @ x.T / 60)
    log = np.linspace(-3, 6, 20001)
    k = temperature + np.exp(depth * log) * np.maximum(values, 0)[:, None]
    h = (((vectors.T @ y) ** 2)[:, None] / k + np.log(k)).sum(axis=0) / 2 + width * depth / 2 * (np.exp(log) - log - 1)
    inside = h[1:-1]
    minima = inside[(inside < h[:-2]) & (inside < h[2:])]
    assert len(minima) == 2
    solution = solve(x, g, y, width, depth, sigma, temperature)
    assert solution.hamiltonian == pytest.approx(minima.min(), rel=1e-6)
    np.testing.assert_allclose(sorted(solution.starts.values()), np.sort(minima), rtol=1e-6)
    assert solution.branch == "fitted"


def test_sweeps_stay_on_the_lower_branch():
    """Along sigma the branch changes from fitted to the prior's and back; every point is what a solve by itself finds."""
    x, g, y = two_minima()
    sigmas = [0.12, 0.2, 0.3, 0.6, 1.2]
    sweep = solve_sweep(x, g, y, sigmas=sigmas, width=300.0, depth=6, temperature=0.02)
    for solution, sigma in zip(sweep, sigmas, strict=True):
        alone = solve(x, g, y, 300.0, 6, sigma, 0.02)
        assert solution.hamiltonian == pytest.approx(alone.hamiltonian, rel=1e-7)
        assert solution.hamiltonian == min(solution.starts.values())
    fitted = [np.mean((solution.predict(x, g)[0] - y) ** 2) < 0.5 * np.mean(y**2) for solution in sweep]
    assert fitted[0] != fitted[-1]
    # The switch is between two of them, and on its two sides are solutions that differ though their sigma hardly does.
    ((low, high),) = sweep.switches(within=1e-3)
    assert 0.3 < low < high <= 1.001 * low
    assert high < 0.6
    errors = [
        np.mean((solve(x, g, y, 300.0, 6, sigma, 0.02).predict(x, g)[0] - y) ** 2) / np.mean(y**2) for sigma in (low, high)
    ]
    assert errors[0] > 0.9
    assert errors[1] < 0.5
    table = sweep.table()
    assert table.sigma.values.tolist() == sigmas
    assert table.hamiltonian.values.tolist() == [solution.hamiltonian for solution in sweep]


def test_a_sweep_without_a_switch_has_none():
    x, g, y = two_minima()
    sweep = solve_sweep(x, g, y, widths=[30, 3000, math.inf], sigma=2.0, depth=6, temperature=0.02)
    assert sweep.switches() == []


def test_directions_of_gates_are_searched():
    """With gates the lower minimum amplifies a direction of gate space; from the prior it is not seen."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal((10, 30))
    g = (x @ rng.standard_normal((30, 4)) > 0).astype(float)
    solution = solve(x, g, np.sign(rng.standard_normal(10)), 20.0, 6, 0.33, 0.002)
    assert solution.starts["fitted"] < solution.starts["prior"] - 10
    assert solution.hamiltonian == solution.starts["fitted"]


# ---- Selection


def test_slopes_of_the_evidence():
    """Derivatives by the logarithms of sigma and T, by central differences, in both forms."""
    data, _ = task()
    for form in ("kernel", "features"):
        solver, point = Solver(form=form, tolerance=1e-10), dict(width=20.0, sigma=0.7, temperature=0.05)
        found = slopes(solve(*data, depth=2, solver=solver, **point))
        for name in ("sigma", "temperature"):
            ends = [
                -solve(*data, depth=2, solver=solver, **point | {name: point[name] * math.exp(sign * 1e-4)}).log_evidence
                for sign in (1, -1)
            ]
            assert found[name] == pytest.approx((ends[0] - ends[1]) / 2e-4, rel=1e-4), (form, name)


def test_selection_finds_the_maximum_and_returns_the_curve():
    data, _ = task()
    free = select(*data, width=50.0)
    grid = select(*data, width=50.0, sigma=[0.3, 0.6, 1.2, 2.4], temperature=[0.003, 0.01, 0.03, 0.1])
    assert free.solution.log_evidence >= grid.curve.log_evidence.max()
    assert grid.curve.log_evidence.sizes == {"sigma": 4, "temperature": 4}
    assert grid.best["sigma"] in (0.3, 0.6, 1.2, 2.4)
    assert grid.solution.log_evidence == pytest.approx(float(grid.curve.log_evidence.max()))
    nested = select(*data, width=[10.0, 100.0, math.inf], sigma=1.0, temperature=0.1, M=[1, 3], loops=1)
    assert nested.curve.log_evidence.sizes == {"M": 2, "width": 3}
    alone = solve(data[0], data[1][:, :1], data[2], 10.0, 1, 1.0, 0.1, loops=1).log_evidence
    assert float(nested.curve.log_evidence.sel(M=1, width=10.0)) == pytest.approx(alone, rel=1e-9)
    corrected = select(*data, width=[20.0], sigma=1.0, temperature=0.1, loops=1)
    assert corrected.best["width"] == 20.0


def test_widths_are_ranked_as_the_exact_posterior_ranks_them():
    """Labels drawn at infinite width: wide is better. The saddle point alone says the opposite, and is warned of."""
    rng = np.random.default_rng(2)
    x = rng.standard_normal((60, 8))
    gates = (x @ rng.standard_normal((8, 4)) > -0.3).astype(float)
    y = rng.multivariate_normal(np.zeros(60), gp_kernel(x, gates) + 0.3 * np.eye(60))
    known = dict(sigma=1.0, temperature=0.3)
    with pytest.warns(RuntimeWarning, match="width: the narrowest, 6, has the largest evidence"):
        saddle = select(x, gates, y, width=[6, 24, 96], **known)
    corrected = select(x, gates, y, width=[6, 24, 96], loops=1, **known)
    exact = [solve_exact(x, gates, y, width=width, seed=1, **known) for width in (6, 24, 96)]
    assert exact[0].log_evidence < exact[1].log_evidence < exact[2].log_evidence
    assert (np.diff(saddle.curve.log_evidence) < 0).all()
    assert (np.diff(corrected.curve.log_evidence) > 0).all()
    free = select(x, gates, y, **known)
    assert free.curve.width.values.tolist() == [5.0 * 2**k for k in range(12)] + [math.inf]
    assert free.best["width"] > 96


def test_a_width_that_one_loop_cannot_judge_is_not_chosen():
    rng = np.random.default_rng(0)
    x, gates = rng.standard_normal((40, 100)), rng.random((40, 80))
    with pytest.raises(InputError, match="width: None; to compare widths takes one loop, and here that has"):
        select(np.vstack([x, -x]), np.vstack([gates, 1 - gates]), np.ones(80))


def test_selection_with_samples_in_blocks():
    """The same maximum, from sums over blocks that are read once."""
    (x, gates, y), _ = task()
    blocks = ((x[rows], gates[rows], y[rows]) for rows in (slice(0, 7), slice(7, None)))
    for found, expected in (
        (select(blocks), select(x, gates, y)),
        (select([(x, gates, y)], width=5.0, sigma=[0.5, 2.0]), select(x, gates, y, width=5.0, sigma=[0.5, 2.0])),
    ):
        assert found.solution.log_evidence == pytest.approx(expected.solution.log_evidence, rel=1e-6)
        assert found.best == pytest.approx(expected.best, rel=1e-3)
    with pytest.raises(InputError, match="M: expected None for samples in blocks"):
        select([(x, gates, y)], M=[1, 2])


def test_selection_passes_over_what_has_no_solution():
    """T = 0 above capacity has none: NaN there; an error only if there is none at all."""
    data, _ = task()
    found = select(*data, width=10.0, sigma=1.0, temperature=[0.0, 0.1])
    assert np.isnan(found.curve.log_evidence[0])
    assert found.best["temperature"] == 0.1
    with pytest.raises(RankError):
        select(*data, width=10.0, sigma=1.0, temperature=0.0)
    with pytest.raises(InputError, match="M: expected at most the 3 gates"):
        select(*data, M=7)


# ---- Progress and threads


def test_progress_of_a_solve(capsys):
    data, _ = task(count=24, dimension=15)
    calls = []
    solve(*data, 12.0, 2, progress=lambda *told: calls.append(told))
    assert calls[-1][:2] == (8, 8)
    solve(*data, 12.0, 2, progress=True)
    assert "solve: 8 of 8 decades" in capsys.readouterr().err
    with pytest.raises(InputError, match="progress"):
        solve(*data, 12.0, progress="yes")
    for several in (
        lambda solver: solve_sweep(*data, widths=[5, 20, 80], solver=solver),
        lambda solver: select(*data, width=20.0, sigma=[0.5, 1.0, 2.0], temperature=0.1, solver=solver),
    ):
        calls.clear()
        several(Solver(progress=lambda *told: calls.append(told)))
        assert calls[-1][:2] == (3, 3)


def test_threads_are_given_back():
    """Small matrices get one thread, and everything is as before afterwards."""
    libraries = [library for group in blas._libraries() for library in group]
    before = [library.get_num_threads() for library in libraries]
    with blas.threads_for(10):
        assert all(library.get_num_threads() == 1 for library in libraries)
    assert [library.get_num_threads() for library in libraries] == before
    a, b = np.random.default_rng(0).standard_normal((2, 5, 3))
    np.testing.assert_allclose(blas.outer(a, b), a @ b.T, rtol=1e-13)


def test_no_warnings_from_ordinary_solves():
    data, _ = task()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Training.of(*data, depth=2).likelihood(1.0, 0.1)
        solve(*data, 10.0, 2, temperature=0.1)
