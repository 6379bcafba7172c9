"""Observables, computed in the slow way from their definitions."""

from types import SimpleNamespace

import numpy as np
import pytest

from ggdln.core.errors import InputError
from ggdln.core.kinds import REGISTRIES
from ggdln.gates import FittedGates, fit_gates
from ggdln.observables import ReadoutSolution, Sample, observe
from ggdln.observables.order_parameter import block_ratio
from ggdln.observables.task_correlation import influences
from ggdln.tasks import TaskData, make_task
from ggdln.theory.gp import gp_limit
from ggdln.theory.kernels import normalized_gp_kernel
from ggdln.theory.solution import solve

rng = np.random.default_rng(0)
ALL = ("predict", "kernel", "order_parameters")


@pytest.fixture
def task():
    """Two sub-tasks on the same twelve inputs."""
    x = np.tile(rng.standard_normal((12, 8)), (2, 1))
    which = np.repeat([0, 1], 12)
    notes = {"digit": (("train",), np.tile(np.arange(12) % 2, 2)), "permuted": (("train",), np.tile(np.repeat([0, 1], 6), 2))}
    x_test = rng.standard_normal((10, 8))
    return TaskData(x, rng.standard_normal(24), x_test, rng.standard_normal(10), which, np.repeat([0, 1], 5), notes)


@pytest.fixture
def sample(task):
    return with_gates(task, rng.uniform(0.1, 1, (24, 5)), rng.uniform(0.1, 1, (10, 5)))


def with_gates(task, g, g_test):
    """A sample with given gate values."""

    class Given(FittedGates):
        def __call__(self, x, subtask=None):
            return self.arrays["g" if len(x) == len(g) else "g_test"]

    return Sample(task, Given(REGISTRIES["gates"].make({"kind": "open", "M": g.shape[1]}), {"g": g, "g_test": g_test}))


def without_open_gates(sample, i):
    """The same sample, but training input i is dead."""
    g = sample.g.copy()
    g[i] = 0
    return with_gates(sample.task, g, sample.g_test)


def solution_of(sample, **options):
    return solve(sample.task.x, sample.g, sample.task.y, **({"width": 30} | options))


@pytest.mark.parametrize("name", REGISTRIES["observable"].own())
def test_a_kind_has_the_name_of_its_file_describes_its_parameters_and_can_be_made_again(name):
    kind = REGISTRIES["observable"].get(name)
    assert kind.kind_name() == name
    assert all(field.description for field in kind.model_fields.values())
    assert kind() == REGISTRIES["observable"].make(kind().spec())


def test_what_is_measured_is_described(sample):
    found = {
        name: observe([name], solution_of(sample), sample, ALL)
        for name in REGISTRIES["observable"].own()
        if name != "kernel_profile"
    }
    for name, measured in found.items():
        coordinates = {c for value in measured.values() for c in getattr(value, "coords", ())}
        assert set(measured) | coordinates <= set(REGISTRIES["observable"].get(name).variables)


def test_only_what_a_solution_offers_is_measured(sample):
    names = ["predictor", "order_parameter", "kernel_blocks"]
    readout = ReadoutSolution(np.eye(5), sigma=1.0)
    assert set(observe(names, readout, sample, readout.offers)) == {"order_parameter", "kernel_picture", "kernel_ratio"}


@pytest.mark.parametrize("temperature", [0.0, 0.1])
def test_influences_are_the_weights_of_the_labels_in_the_mean(sample, temperature):
    solution = solution_of(sample, temperature=temperature)
    mean, _ = solution.predict(sample.task.x_test, sample.g_test)
    assert np.allclose(influences(solution, sample) @ sample.task.y, mean)


def test_dead_training_inputs_have_no_influence(sample):
    partly_dead = without_open_gates(sample, 3)
    weights = influences(solution_of(partly_dead), partly_dead)
    assert not weights[:, 3].any()
    assert weights[:, 4].any()


def test_task_correlation_sums_absolute_influences_by_task(sample):
    solution = solution_of(sample)
    found = observe(["task_correlation"], solution, sample, ALL)
    weights = np.abs(influences(solution, sample))
    C = found["task_correlation"].values
    assert C[1, 0] == pytest.approx(weights[5:, :12].sum())
    assert found["correlation_ratio"] == pytest.approx((C[0, 0] + C[1, 1]) / (C[0, 1] + C[1, 0]))


def test_kernel_shape_counts_pairs_of_equal_digits(sample):
    solution = gp_limit(sample.task.x, sample.g, sample.task.y)
    kernel, digit = solution.kernel(sample.task.x, sample.g), sample.task.notes["digit"][1]
    found = observe(["kernel_shape"], solution, sample, ALL)
    elements = [
        kernel[i, j] / np.sqrt(kernel[i, i] * kernel[j, j]) for i in range(24) for j in range(i) if digit[i] == digit[j]
    ]
    assert found["flat_fraction"] == pytest.approx(np.mean(np.array(elements) <= 0.05))
    histogram = found["kernel_histogram"]
    assert float(histogram.sum()) * 0.02 == pytest.approx(1)
    assert float((histogram * histogram.kernel_element).sum()) * 0.02 == pytest.approx(np.mean(elements), abs=0.01)


def test_dead_inputs_have_no_kernel_shape(sample):
    partly_dead = without_open_gates(sample, 3)
    alive = np.delete(np.arange(24), 3)
    task = sample.task
    solution = gp_limit(task.x, partly_dead.g, task.y)
    left = TaskData(
        task.x[alive], task.y[alive], task.x_test, task.y_test, notes={"digit": (("train",), task.notes["digit"][1][alive])}
    )
    part = with_gates(left, sample.g[alive], sample.g_test)
    shapes = [observe(["kernel_shape"], solution, each, ALL)["flat_fraction"] for each in (partly_dead, part)]
    assert shapes[0] == shapes[1]


@pytest.mark.parametrize("depth", [0, 1, 4])
def test_kernel_profile_is_the_normalized_kernel_of_the_angle(depth):
    task = make_task({"kind": "angles", "N0": 6, "n_angles": 25, "noise": 0.1}, seed=1)
    # Few gates with a high threshold, so that no gate is open at some angles.
    sample = Sample(task, fit_gates({"kind": "random", "M": 4, "b": 0.3}, task.x, seed=2))
    assert sample.g.any()
    assert not sample.g_test.any(axis=1).all()
    solution = gp_limit(task.x, sample.g, task.y, depth=depth, sigma=0.7)
    profile = observe(["kernel_profile"], solution, sample, ALL)["kernel_profile"]
    expected = normalized_gp_kernel(task.x, sample.g, task.x_test, sample.g_test, depth=depth)[0]
    assert np.allclose(profile, expected, rtol=1e-13, atol=1e-15)
    assert np.array_equal(profile.theta, task.notes["theta"][1])


def test_kernel_ratio_compares_blocks_within_and_between_tasks(sample):
    same = sample.task.subtask[:, None] == sample.task.subtask
    solution = SimpleNamespace(kernel=lambda x, gates: np.where(same, -3.0, 2.0))
    found = observe(["kernel_blocks"], solution, sample, ["kernel"])
    assert found["kernel_ratio"] == pytest.approx(1.5)
    assert np.array_equal(found["kernel_picture"].values[:12, 12:], np.full((12, 12), 2.0))


def test_the_kernel_of_readouts_is_that_of_the_theory_at_the_same_order_parameter(sample):
    solution = solution_of(sample, sigma=0.7)
    readout = ReadoutSolution(solution.order_parameters[0], sigma=0.7)
    x, g = sample.task.x, sample.g
    assert np.allclose(readout.kernel(x, g), solution.kernel(x, g))
    assert np.allclose(readout.kernel(x, g, x[:3], g[:3]), solution.kernel(x, g, x[:3], g[:3]))
    assert np.allclose(readout.kernel_diagonal(x, g), solution.kernel_diagonal(x, g))


def test_block_ratio():
    U = np.ones((6, 6))
    U[:2, :2] = -4
    assert block_ratio(U, 3) == 4


def test_gates_that_see_blocks_of_the_input_have_a_block_ratio(task):
    sample = Sample(task, fit_gates({"kind": "local", "M": 4, "subsets": 2}, task.x, seed=1))
    U = np.diag([6.0, 6.0, 2.0, 2.0])
    found = observe(["order_parameter"], ReadoutSolution(U, 1.0), sample, ["order_parameters"])
    assert found["block_ratio"] == 3


def test_order_parameter_of_depth_one_is_the_matrix_of_the_gates(sample):
    found = observe(["order_parameter"], solution_of(sample, width=1e8, sigma=0.7), sample, ALL)
    assert list(found) == ["order_parameter"]
    assert np.allclose(found["order_parameter"], 0.49 * np.eye(5), atol=1e-4)


def test_unknown_observables_are_named(sample):
    with pytest.raises(InputError, match="got 'entropy', accepted: kernel_blocks"):
        observe(["entropy"], None, sample, ALL)
