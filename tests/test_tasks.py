"""Tasks: balanced, disjoint, reproducible, and distributed as the paper says."""

from typing import get_args

import numpy as np
import pytest

from ggdln.core.errors import InputError
from ggdln.core.kinds import REGISTRIES
from ggdln.tasks import make_task
from ggdln.tasks._digits import COUNTS, load_digits
from ggdln.tasks._mnist import Normalization, normalize
from ggdln.tasks._teacher import teacher

PARITY = {"kind": "mnist_parity", "P": 40, "P_t": 60}
PERMUTED = {"kind": "mnist_permuted", "P": 10, "P_t": 20, "permutations": 3}
CONFLICTING = {"kind": "mnist_conflicting", "P": 24, "P_t": 16, "N0": 30}
NOISY = {"kind": "noisy_teacher", "N0": 20, "P": 400, "P_t": 300, "N_T": 500, "gamma": 0.01, "epsilon": 0.1}
CLUSTERED = {
    "kind": "clustered_teacher", "N0": 40, "P": 300, "P_t": 200, "N_T": 400, "gamma": 0.01, "subsets": 4, "clusters": 6, "rho": 0.01
}  # fmt: skip
ANGLES = {"kind": "angles", "N0": 10, "n_angles": 7, "noise": 0.005}
WINE = {"kind": "sklearn", "name": "wine", "P": 40, "P_t": 30, "labels": {"one_vs_rest": "class_1"}}
ALL = (PARITY, PERMUTED, CONFLICTING, NOISY, CLUSTERED, ANGLES, WINE)
ELSEWHERE = ({"kind": "file", "path": "none.npz"}, {"kind": "torchvision", "name": "KMNIST"})
"""Kinds whose files aren't here."""


@pytest.fixture(scope="module")
def digits():
    return load_digits()


@pytest.mark.parametrize("spec", ALL, ids=lambda spec: spec["kind"])
def test_a_draw_depends_on_seed_and_index_alone(spec, digits):
    first, again, other = (make_task(spec, seed=s, draw=d, digits=digits) for s, d in ((1, 0), (1, 0), (1, 1)))
    assert np.array_equal(first.x, again.x)
    assert np.array_equal(first.y_test, again.y_test)
    assert not np.array_equal(first.x, other.x)
    assert not np.array_equal(first.x, make_task(spec, seed=2, digits=digits).x)


@pytest.mark.parametrize("name", REGISTRIES["task"].own())
def test_a_kind_has_the_name_of_its_file_describes_its_parameters_and_can_be_made_again(name):
    kind = REGISTRIES["task"].get(name)
    assert kind.kind_name() == name
    assert all(field.description for field in kind.model_fields.values())
    made = [REGISTRIES["task"].make(spec) for spec in ALL + ELSEWHERE if spec["kind"] == name]
    assert made == [REGISTRIES["task"].make(task.spec()) for task in made] != []


@pytest.mark.parametrize("spec", ALL, ids=lambda spec: spec["kind"])
def test_a_kind_says_how_large_a_draw_is_and_what_it_notes(spec, digits):
    kind, data = REGISTRIES["task"].make(spec), make_task(spec, seed=1, digits=digits)
    sizes = kind.sizes()
    assert (*data.x.shape, len(data.x_test)) == (sizes.P, sizes.N0, sizes.P_t)
    assert set(kind.notes) <= set(data.notes) <= set(kind.variables)
    assert kind.has_subtasks == (data.subtask.max() > 0)
    assert kind.labelled == data.y.any()
    terms = kind.terms(draws=2)
    assert set(terms.work) == set(kind.costs.seconds)
    assert set(terms.memory) == set(kind.costs.megabytes)


def test_parity_is_balanced_and_train_and_test_are_disjoint(digits):
    task = make_task(PARITY, seed=1, digits=digits)
    assert task.y.sum() == 0
    assert task.y_test.sum() == 0
    assert np.array_equal(task.y, np.where(task.notes["digit"][1] % 2 == 0, 1, -1))
    assert not set(task.notes["index"][1]) & set(task.notes["index_test"][1])


def test_a_larger_training_set_keeps_the_smaller_one_and_the_test_set(digits):
    small, large = (make_task(PARITY | {"P": P}, seed=1, digits=digits) for P in (40, 100))
    assert np.array_equal(small.x, large.x[:40])
    assert np.array_equal(small.x_test, large.x_test)


def test_permuted_tasks_count_samples_of_each_permutation_or_of_all(digits):
    """300 samples in all are the 30 digits that 30 samples of each permutation show, in the same forms."""
    each = make_task({"kind": "mnist_permuted", "P": 30, "P_t": 20, "permutations": 10}, seed=1, digits=digits)
    all_ = make_task(
        {"kind": "mnist_permuted", "P": 300, "P_t": 200, "permutations": 10, "count": "all"}, seed=1, digits=digits
    )
    assert each.x.shape == (300, 784)
    for name in ("x", "y", "subtask", "x_test", "y_test", "subtask_test"):
        np.testing.assert_array_equal(getattr(each, name), getattr(all_, name))
    with pytest.raises(InputError, match="multiples of 20, for equal classes in each of 10 parts"):
        make_task({"kind": "mnist_permuted", "P": 310, "P_t": 200, "permutations": 10, "count": "all"}, seed=1, digits=digits)


def test_permuted_tasks_show_the_same_digits_with_other_pixel_orders(digits):
    task = make_task(PERMUTED, seed=1, digits=digits)
    blocks = task.x.reshape(3, 10, 784)
    order = task.notes["permutation"][1]
    back = [np.empty_like(block) for block in blocks]
    for unshuffled, block, shuffle in zip(back, blocks, order, strict=True):
        unshuffled[:, shuffle] = block
    assert np.array_equal(back[0], back[1])
    assert np.array_equal(back[0], back[2])
    assert not np.array_equal(blocks[0], blocks[1])
    assert all(sorted(shuffle) == list(range(784)) for shuffle in order)
    assert np.array_equal(task.subtask, np.repeat([0, 1, 2], 10))


def test_conflicting_tasks_label_the_same_inputs_differently(digits):
    task = make_task(CONFLICTING, seed=1, digits=digits)
    half = len(task.x) // 2
    assert half == 24
    assert np.array_equal(task.x[:half], task.x[half:])
    # The four kinds of input are equally many, so the labels of the two tasks are uncorrelated.
    assert task.y[:half].sum() == task.y[half:].sum() == task.y[:half] @ task.y[half:] == 0
    assert set(task.notes["digit"][1]) == {0, 1}
    assert np.array_equal(task.y[:half], 1 - 2 * task.notes["digit"][1][:half])


@pytest.mark.parametrize(("spec", "message"), [
    (PARITY | {"P": 5000}, r"task.P \+ P_t = 5060; accepted: at most 5000, since the digits source 'embedded' has 2500"),
    (CONFLICTING | {"P": 2000}, "source 'embedded' has 500 digits of a class"),
    (PARITY | {"P": 41}, "task.P = 41; accepted: multiples of 2"),
    (CONFLICTING | {"P_t": 6}, "task.P_t = 6; accepted: multiples of 4"),
    (PARITY | {"normalization": "whiten"}, "accepted: pixel_mean"),
    (NOISY | {"P_t": 500}, "task.P_t = 500; accepted: at most task.P = 400"),
    (CLUSTERED | {"N0": 41}, "task.N0 = 41; accepted: multiples of task.subsets = 4"),
    ({"kind": "imagenet"}, "got 'imagenet', accepted: angles, clustered_teacher"),
])  # fmt: skip
def test_impossible_tasks_say_what_is_possible(spec, message, digits):
    with pytest.raises(InputError, match=message):
        make_task(spec, seed=1, digits=digits)


def test_the_full_source_allows_more_digits():
    task = REGISTRIES["task"].make(PARITY | {"P": 60000, "P_t": 8000})
    assert not task.problems(COUNTS["full"])
    assert task.problems(COUNTS["embedded"])


@pytest.mark.parametrize("variant", get_args(Normalization))
def test_normalized_inputs_have_mean_zero_and_unit_standard_deviation(variant, digits):
    x = normalize(digits.images[::10], variant)
    axis = {"pixel_mean": 0, "pixel": 0, "image": 1, "global": None}[variant]
    assert np.allclose(x.mean(axis=axis), 0, atol=1e-12)
    spread = x.std(axis={"pixel_mean": None, "global": None}.get(variant, axis))
    assert np.allclose(spread[spread > 0] if np.ndim(spread) else spread, 1)


def test_projection_gives_the_asked_dimension_and_is_normalized_again(digits):
    task = make_task(PARITY | {"N0": 50, "P": 2000, "P_t": 2000}, seed=1, digits=digits)
    both = np.concatenate([task.x, task.x_test])
    assert both.shape[1] == 50
    assert np.allclose(both.mean(axis=0), 0, atol=0.1)
    assert both.std() == pytest.approx(1, abs=0.02)


def test_noisy_teacher_has_the_stated_noise_and_corruption():
    task = make_task(NOISY, seed=1)
    # The labels of the clean teacher have variance close to E[ReLU(z)^2] = 1/2 given a; noise of variance 0.01 is added.
    assert 0.2 < task.y.var() < 0.9
    overlap = np.einsum("pj,pj->p", task.x[:300], task.x_test) / np.einsum("pj,pj->p", task.x[:300], task.x[:300])
    assert overlap.mean() == pytest.approx(np.sqrt(0.99), abs=0.005)
    clean = make_task(NOISY | {"epsilon": 0.0}, seed=1)
    assert (task.y - clean.y).std() == pytest.approx(0.1, rel=0.1)


def test_teacher_formula():
    x, W, a = np.array([[2.0, 0.0]]), np.array([[1.0, 5.0], [-1.0, 0.0]]), np.array([3.0, 7.0])
    assert teacher(x, W, a) == pytest.approx(3 * (2 / np.sqrt(2)) / np.sqrt(2))


def test_clustered_inputs_share_centres_between_subsets_with_independent_indices():
    task = make_task(CLUSTERED | {"gamma": 0.0}, seed=1)
    blocks = task.x.reshape(300, 4, 10)
    assert len(np.unique(blocks.reshape(-1, 10), axis=0)) == 6
    which = task.notes["cluster"][1]
    assert abs(np.corrcoef(which[:, 0], which[:, 1])[0, 1]) < 0.2
    same = which[:, :1] == which[:, 1:2]
    assert np.array_equal(same[:, 0], (blocks[:, 0] == blocks[:, 1]).all(axis=1))


def test_preferred_subset_drives_the_labels():
    task = make_task(CLUSTERED | {"rho": 0.0, "gamma": 0.0}, seed=1)
    first = task.notes["cluster"][1][:, 0]
    for cluster in range(6):
        assert np.ptp(task.y[first == cluster]) < 1e-12


def test_angles_are_the_angles_between_inputs():
    task = make_task({"kind": "angles", "N0": 10, "n_angles": 9, "noise": 0.0}, seed=1)
    theta = task.notes["theta"][1]
    assert np.allclose(task.x_test @ task.x[0], np.cos(theta))


def test_shuffled_labels_are_the_same_labels_in_another_order():
    spec = {"kind": "clustered_teacher", "N0": 4, "P": 50, "P_t": 10, "N_T": 5, "gamma": 0.1, "subsets": 2, "clusters": 3}
    task, shuffled = (make_task(spec | {"rho": 1.0} | extra, seed=1, draw=2) for extra in ({}, {"shuffled": True}))
    np.testing.assert_array_equal(np.sort(task.y), np.sort(shuffled.y))
    assert np.mean(task.y == shuffled.y) < 0.5
    for name in ("x", "x_test", "y_test"):
        np.testing.assert_array_equal(getattr(task, name), getattr(shuffled, name))
