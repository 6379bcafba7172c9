"""Ensemble statistics: unbiased at few runs, honest error bars."""

import numpy as np
import pytest

from ggdln.core.errors import InputError
from ggdln.theory.ensemble import ensemble_statistics
from ggdln.theory.statistics import predictor_statistics


def predictor(tests=150):
    rng = np.random.default_rng(0)
    y = np.sign(rng.standard_normal(tests))
    return 0.6 * y + 0.3 * rng.standard_normal(tests), 0.3 + rng.random(tests), y


def test_few_runs_give_unbiased_statistics_and_honest_errors():
    """Ensembles of 6 Gaussian runs average to the known predictor's values, and the error bar is their spread."""
    mean, std, y = predictor()
    rng = np.random.default_rng(1)
    results = [ensemble_statistics(mean + std * rng.standard_normal((6, len(y))), y) for _ in range(400)]
    exact = predictor_statistics(mean, std**2, y)
    for name, value in exact.items():
        sample = np.array([r[name] for r in results])
        allowed = 0.01 * value if name == "error_rate" else 0  # the jackknife leaves a term of order 1/R^2
        assert abs(sample.mean() - value) < 4 * sample.std() / 20 + allowed, name
        assert np.mean([r[f"{name}_error"] for r in results]) == pytest.approx(sample.std(), rel=0.3)
    naive = np.mean(np.square((mean + std * rng.standard_normal((6, len(y)))).mean(0) - y))
    assert naive > exact["bias"] + exact["variance"] / 10


def test_correlated_chains_are_corrected_too():
    """Draws of slow AR(1) chains, far from independent, still give unbiased bias and variance."""
    mean, std, y = predictor(60)
    rng = np.random.default_rng(2)
    results = []
    for _ in range(200):
        z = np.empty((4, 30, len(y)))
        z[:, 0] = rng.standard_normal((4, len(y)))
        for t in range(1, 30):
            z[:, t] = 0.95 * z[:, t - 1] + np.sqrt(1 - 0.95**2) * rng.standard_normal((4, len(y)))
        results.append(ensemble_statistics(mean + std * z, y))
    exact = predictor_statistics(mean, std**2, y)
    for name in ("bias", "variance", "generalization_error"):
        sample = np.array([r[name] for r in results])
        assert abs(sample.mean() - exact[name]) < 4 * sample.std() / np.sqrt(200), name


def test_two_runs_by_hand():
    """f = (1, 3), y = 1 at one input: bias 1 - 2/2 = 0, variance 2, generalization error 2, wrong sign never."""
    result = ensemble_statistics([[1.0], [3.0]], [1.0])
    assert result["bias"] == pytest.approx(0.0)
    assert result["variance"] == pytest.approx(2.0)
    assert result["generalization_error"] == pytest.approx(2.0)
    assert result["sign_error_rate"] == 0
    assert result["used"] == 2


def test_a_failed_run_is_refused_until_left_out_by_name():
    """NaN predictions raise; with `use` the run is left out and counted."""
    f = np.random.default_rng(0).standard_normal((5, 4))
    f[2] = np.nan
    with pytest.raises(InputError, match="predictions"):
        ensemble_statistics(f, np.ones(4))
    use = np.isfinite(f).all(1)
    assert ensemble_statistics(f, np.ones(4), use=use) == ensemble_statistics(f[use], np.ones(4)) | {"left_out": 1}
    with pytest.raises(InputError, match="at least 2"):
        ensemble_statistics(f[:1], np.ones(4))


@pytest.mark.parametrize("shape", [(5, 40, 3), (4, 6, 40, 3)])
def test_outputs_are_averaged_like_test_inputs(shape):
    """Of runs or chains with three outputs every statistic is the mean of those of the outputs."""
    rng = np.random.default_rng(3)
    y = np.sign(rng.standard_normal((40, 3)))
    f = 0.5 * y + rng.standard_normal(shape)
    together, apart = ensemble_statistics(f, y), [ensemble_statistics(f[..., c], y[:, c]) for c in range(3)]
    for name in ("bias", "variance", "generalization_error", "error_rate", "sign_error_rate"):
        assert together[name] == pytest.approx(np.mean([one[name] for one in apart]), rel=1e-10)
    assert ensemble_statistics(f[..., :1], y[:, :1]) == apart[0]


def test_runs_and_chains_are_wrong_about_a_class_where_another_output_is_largest():
    """Of Gaussian chains with three outputs the error rate is that of the predictor; most outputs of its sign don't matter."""
    rng = np.random.default_rng(4)
    y = 2.0 * np.eye(3)[rng.integers(3, size=80)] - 1
    mean, std = 0.3 * y + 0.3 * rng.standard_normal(y.shape), 0.3 + rng.random(y.shape)
    expected = predictor_statistics(mean, std**2, y)["error_rate"]
    f = mean + std * rng.standard_normal((40, 50, *y.shape))
    found = ensemble_statistics(f, y)
    assert found["sign_error_rate"] == pytest.approx((f.argmax(-1) != y.argmax(-1)).mean(), rel=1e-12)
    for name in ("error_rate", "sign_error_rate"):
        assert found[name] == pytest.approx(expected, abs=4 * found[f"{name}_error"])
        assert found[f"{name}_error"] < 0.01
    given = ensemble_statistics(np.stack([mean] * 2), y, variances=np.stack([std**2] * 2))
    assert given["sign_error_rate"] == pytest.approx(expected, rel=1e-12)
    apart = np.mean([predictor_statistics(mean[:, c], std[:, c] ** 2, y[:, c])["error_rate"] for c in range(3)])
    assert abs(apart - expected) > 0.05


def test_equal_outputs_are_each_the_largest_by_chance():
    """Two runs that say nothing about three classes are right about each of them once in three times."""
    assert ensemble_statistics(np.zeros((2, 3, 3)), 2 * np.eye(3) - 1)["sign_error_rate"] == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("predictions", "y", "message"),
    [
        (np.ones((2, 3, 4)), np.ones((4, 2)), r"y_test: labels \(4, 2\) for predictions \(3, 4\) of \(test, output\)"),
        (np.ones((2, 3)), np.ones(4), r"y_test: labels \(4,\) for predictions \(3,\) of \(test\)"),
        (
            np.ones(4),
            np.ones(4),
            r"predictions: expected \(run, test\) or \(chain, draw, test\) for y_test \(4,\), got shape \(4,\)",
        ),
        (np.ones((2, 4)), np.ones((4, 1)), r"predictions: expected \(run, test, output\) or \(chain, draw, test, output\)"),
        (np.ones((2, 2, 4, 1)), np.ones(4), r"predictions: .*got shape \(2, 2, 4, 1\)"),
        (np.ones((2, 4)), np.ones((4, 1, 1)), "y_test: expected 1 or 2 dimension"),
    ],
)
def test_shapes_that_do_not_fit_are_named(predictions, y, message):
    """Predictions must end in the dimensions of the labels."""
    with pytest.raises(InputError, match=message):
        ensemble_statistics(predictions, y)
