"""Estimators in scikit-learn's manner: scikit-learn's own checks, and that they are the theory with its inputs made ready."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris, make_multilabel_classification
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.estimator_checks import check_estimator

import ggdln
from ggdln.core.errors import InputError
from ggdln.core.kinds import REGISTRIES

TRANSFORMERS = [ggdln.RandomGates, ggdln.RectifiedGates, ggdln.LocalGates, ggdln.OpenGates, ggdln.SoftKMeansGates]
ESTIMATORS = [
    ggdln.GGDLNRegressor(),
    ggdln.GGDLNClassifier(),
    ggdln.GGDLNRegressor(method="gp"),
    ggdln.GGDLNClassifier(method="gp"),
    ggdln.GGDLNRegressor(method="exact", method_params={"draws": 4, "chains": 2}),
    ggdln.GGDLNClassifier(method="exact", method_params={"draws": 4, "chains": 2}),
]


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((60, 4))
    return x, np.tanh(x[:, 0] * x[:, 1]), rng.standard_normal((20, 4))


@pytest.mark.parametrize("estimator", [*ESTIMATORS, *(kind() for kind in TRANSFORMERS)], ids=str)
def test_scikit_learn_finds_nothing_wrong(estimator):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(estimator, on_skip=None, on_fail=None)
    wrong = [(result["check_name"], result["exception"]) for result in results if result["status"] == "failed"]
    assert len(results) > 30
    assert wrong == []


def test_without_preparation_it_is_the_theory_itself(data):
    x, y, new = data
    gates = {"kind": "random", "M": 5}
    plain = ggdln.GGDLNRegressor(gates, width=20, temperature=0.05, standardize=False, bias=False).fit(x, y)
    fitted = ggdln.fit_gates(gates, x, seed=0)
    mean, variance = ggdln.solve(x, fitted(x), y, width=20, temperature=0.05).predict(new, fitted(new))
    found, deviation = plain.predict(new, return_std=True)
    np.testing.assert_array_equal(found, mean)
    np.testing.assert_array_equal(deviation, np.sqrt(variance))
    transformer = ggdln.RandomGates(M=5).fit(x)
    np.testing.assert_array_equal(transformer.transform(new), fitted(new))
    same = clone(plain).set_params(gates=transformer.transform).fit(x, y)
    np.testing.assert_array_equal(same.predict(new), mean)
    matrix = clone(plain).fit(x, y, gates=fitted(x))
    np.testing.assert_array_equal(matrix.predict(new, gates=fitted(new)), mean)
    kept = clone(plain).set_params(gates=fitted(x)).fit(x, y)
    np.testing.assert_array_equal(kept.predict(new, gates=fitted(new)), mean)
    with pytest.raises(InputError, match="gates: a matrix with 60 rows for 30 training inputs; accepted: a row for each"):
        clone(kept).fit(x[:30], y[:30])
    with pytest.raises(InputError, match="gates: missing"):
        kept.predict(new)
    with pytest.raises(InputError, match="gates: missing"):
        matrix.predict(new)


def test_units_and_offsets_of_inputs_and_labels_do_not_matter(data):
    x, y, new = data
    first = ggdln.GGDLNRegressor().fit(x, y)
    second = ggdln.GGDLNRegressor().fit(3 * x + 7, 10 * y - 100)
    (mean, spread), (other, wider) = (first.predict(new, return_cov=True), second.predict(3 * new + 7, return_cov=True))
    np.testing.assert_allclose(other, 10 * mean - 100, rtol=1e-6)
    np.testing.assert_allclose(wider, 100 * spread, rtol=1e-5, atol=1e-8)


def test_several_outputs_and_samples_of_functions(data):
    x, y, new = data
    several = ggdln.GGDLNRegressor().fit(x, np.column_stack([y, x[:, 2]]))
    mean, deviation = several.predict(new, return_std=True)
    _, covariance = several.predict(new, return_cov=True)
    assert (mean.shape, covariance.shape) == ((20, 2), (20, 20, 2))
    np.testing.assert_allclose(np.einsum("iic->ic", covariance), deviation**2, rtol=1e-6)
    samples = several.sample_y(new, 4000)
    assert samples.shape == (20, 2, 4000)
    np.testing.assert_allclose(samples.mean(axis=2), mean, atol=5 * deviation.max() / np.sqrt(4000))
    np.testing.assert_allclose(samples.std(axis=2), deviation, rtol=0.1)


def test_classes_of_any_kind_and_properties():
    x, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    found = ggdln.GGDLNClassifier().fit(x, names)
    assert found.score(x, names) > 0.9
    chances = found.predict_proba(x)
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    assert (found.classes_[chances.argmax(axis=1)] == found.predict(x)).mean() > 0.98
    x, y = make_multilabel_classification(n_samples=80, n_classes=3, random_state=0)
    found = ggdln.GGDLNClassifier().fit(x, y)
    assert found.predict(x).shape == found.predict_proba(x).shape == y.shape


def test_chance_of_being_largest_is_that_of_draws():
    rng = np.random.default_rng(0)
    mean, variance = rng.standard_normal((5, 3)), rng.uniform(0.1, 1, (5, 3))
    draws = mean + np.sqrt(variance) * rng.standard_normal((40_000, 5, 3))
    counted = (draws.argmax(axis=2)[:, :, None] == np.arange(3)).mean(axis=0)
    from ggdln.theory.statistics import class_chances

    np.testing.assert_allclose(class_chances(mean, variance), counted, atol=0.012)
    np.testing.assert_array_equal(class_chances(mean, np.zeros((5, 3))).argmax(axis=1), mean.argmax(axis=1))


def test_pipelines_searches_and_data_frames():
    frame, y = load_diabetes(return_X_y=True, as_frame=True)
    frame, y = frame[:150], y[:150]
    pipeline = make_pipeline(MinMaxScaler(), ggdln.GGDLNRegressor(ggdln.SoftKMeansGates(), method="gp"))
    grid = {"ggdlnregressor__gates__M": np.arange(2, 4), "ggdlnregressor__temperature": [0.3, 0.6]}
    search = GridSearchCV(pipeline, grid, cv=3).fit(frame, y)
    assert search.best_score_ > 0.3
    regressor = ggdln.GGDLNRegressor().fit(frame, y)
    assert list(regressor.feature_names_in_) == list(frame.columns)
    with pytest.raises(ValueError, match="feature names"):
        regressor.predict(pd.DataFrame(frame.to_numpy(), columns=[f"f{i}" for i in range(10)]))


def test_evidence_chooses_prior_and_noise(data):
    x, y, _ = data
    chosen = ggdln.GGDLNRegressor(sigma="evidence", temperature="evidence").fit(x, y)
    for sigma, temperature in (
        (1.0, 0.1),
        (1.1 * chosen.sigma_, chosen.temperature_),
        (chosen.sigma_, 0.8 * chosen.temperature_),
    ):
        assert ggdln.GGDLNRegressor(sigma=sigma, temperature=temperature).fit(x, y).log_evidence_ < chosen.log_evidence_
    with pytest.raises(InputError, match="sigma: got 'evidenc', accepted: a number, or 'evidence'"):
        ggdln.GGDLNRegressor(sigma="evidenc").fit(x, y)
    with pytest.raises(InputError, match="method: got 'gpp', accepted: theory, gp, exact; did you mean 'gp'"):
        ggdln.GGDLNRegressor(method="gpp").fit(x, y)


def test_evidence_moves_from_its_start_with_several_outputs():
    x, y = load_iris(return_X_y=True)
    x = (x - x.mean(0)) / x.std(0)
    gates = ggdln.fit_gates({"kind": "random", "M": 8}, x, seed=0)(x)
    signs = 2.0 * (y[:, None] == np.arange(3)) - 1
    found = ggdln.select(x, gates, signs, width=100)
    start = ggdln.solve(x, gates, signs, width=100, temperature=0.1).log_evidence
    assert found.solution.log_evidence > start + 1


def test_the_exact_posterior_is_a_method_too(data):
    x, y, new = data
    exact = ggdln.GGDLNRegressor(
        ggdln.RandomGates(M=3), width=10, method="exact", method_params={"draws": 20, "chains": 2}
    ).fit(x, y)
    mean, deviation = exact.predict(new, return_std=True)
    theory = ggdln.GGDLNRegressor(ggdln.RandomGates(M=3), width=10).fit(x, y).predict(new)
    assert np.corrcoef(mean, theory)[0, 1] > 0.95
    assert exact.sample_y(new, 5).shape == (20, 5)
    assert ((deviation > 0) == exact.gates_.transform(exact._standardized(new)).any(axis=1)).all()


def test_transformers_have_the_parameters_of_their_kinds():
    for transformer in TRANSFORMERS:
        fields = transformer.kind.model_fields
        parameters = transformer().get_params()
        assert set(parameters) == {*fields, "random_state"}
        defaults = {name: field.default for name, field in fields.items() if not field.is_required()}
        assert defaults.items() <= parameters.items()
        assert all(field.description in transformer.__doc__ for field in fields.values())
    left = set(REGISTRIES["gates"].own()) - {transformer.kind.kind_name() for transformer in TRANSFORMERS}
    assert left == {"file", "function", "top_down"}  # functions and matrices stand for themselves; sub-tasks aren't inputs
