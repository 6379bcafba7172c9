"""Observables, computed in the slow way from their definitions."""

import numpy as np
import pytest

from ggdln import solve
from ggdln.core.errors import InputError
from ggdln.observables import block_ratio, blocks_of, influences, observe, shape_of
from ggdln.tasks import Task
from ggdln.theory.gp import gp_limit

rng = np.random.default_rng(0)


@pytest.fixture
def task():
    """Two sub-tasks on the same twelve inputs."""
    x = np.tile(rng.standard_normal((12, 8)), (2, 1))
    which = np.repeat([0, 1], 12)
    notes = {"digit": (("train",), np.tile(np.arange(12) % 2, 2)), "permuted": (("train",), np.tile(np.repeat([0, 1], 6), 2))}
    x_test = rng.standard_normal((10, 8))
    return Task(x, rng.standard_normal(24), x_test, rng.standard_normal(10), which, np.repeat([0, 1], 5), notes)


@pytest.fixture
def gates():
    return rng.uniform(0.1, 1, (24, 5)), rng.uniform(0.1, 1, (10, 5))


@pytest.mark.parametrize("temperature", [0.0, 0.1])
def test_influences_are_the_weights_of_the_labels_in_the_mean(task, gates, temperature):
    solution = solve(task.x, gates[0], task.y, width=30, temperature=temperature)
    weights = influences(solution, task, *gates)
    assert np.allclose(weights @ task.y, solution.predict(task.x_test, gates[1])[0])


def test_dead_training_inputs_have_no_influence(task, gates):
    g = gates[0].copy()
    g[3] = 0
    weights = influences(solve(task.x, g, task.y, width=30), task, g, gates[1])
    assert not weights[:, 3].any()
    assert weights[:, 4].any()


def test_task_correlation_sums_absolute_influences_by_task(task, gates):
    solution = solve(task.x, gates[0], task.y, width=30)
    found = observe(["task_correlation"], solution, task, *gates)
    weights = np.abs(influences(solution, task, *gates))
    C = found["task_correlation"].values
    assert C[1, 0] == pytest.approx(weights[5:, :12].sum())
    assert found["correlation_ratio"] == pytest.approx((C[0, 0] + C[1, 1]) / (C[0, 1] + C[1, 0]))


def test_kernel_shape_counts_pairs_of_equal_digits(task, gates):
    kernel = gp_limit(task.x, gates[0], task.y).kernel(task.x, gates[0])
    digit = task.notes["digit"][1]
    found = shape_of(kernel, digit)
    elements = [
        kernel[i, j] / np.sqrt(kernel[i, i] * kernel[j, j]) for i in range(24) for j in range(i) if digit[i] == digit[j]
    ]
    assert found["flat_fraction"] == pytest.approx(np.mean(np.array(elements) <= 0.05))
    histogram = found["kernel_histogram"]
    assert float(histogram.sum()) * 0.02 == pytest.approx(1)
    assert float((histogram * histogram.kernel_element).sum()) * 0.02 == pytest.approx(np.mean(elements), abs=0.01)


def test_dead_inputs_have_no_kernel_shape(task, gates):
    g = gates[0].copy()
    g[3] = 0
    alive = np.delete(np.arange(24), 3)
    digit = task.notes["digit"][1]
    solution = gp_limit(task.x, g, task.y)
    whole = shape_of(solution.kernel(task.x, g), digit)
    part = shape_of(solution.kernel(task.x[alive], g[alive]), digit[alive])
    assert whole["flat_fraction"] == part["flat_fraction"]


def test_kernel_ratio_compares_blocks_within_and_between_tasks(task):
    same = task.task[:, None] == task.task
    kernel = np.where(same, -3.0, 2.0)
    found = blocks_of(kernel, task)
    assert found["kernel_ratio"] == pytest.approx(1.5)
    assert np.array_equal(found["kernel_picture"].values[:12, 12:], np.full((12, 12), 2.0))


def test_block_ratio():
    U = np.ones((6, 6))
    U[:2, :2] = -4
    assert block_ratio(U, 3) == 4


def test_order_parameter_of_depth_one_is_the_matrix_of_the_gates(task, gates):
    solution = solve(task.x, gates[0], task.y, width=1e8, sigma=0.7)
    U = observe(["order_parameter"], solution, task, *gates)["order_parameter"]
    assert np.allclose(U, 0.49 * np.eye(5), atol=1e-4)


def test_unknown_observables_are_named(task, gates):
    with pytest.raises(InputError, match="got 'entropy', accepted: predictor"):
        observe(["entropy"], None, task, *gates)
