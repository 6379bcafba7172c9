"""Gates: their values, their nesting, and fits that can be used again from what was stored."""

import numpy as np
import pytest

from ggdln.core.errors import InputError
from ggdln.core.kinds import REGISTRIES
from ggdln.gates import FittedGates, fit_gates
from ggdln.tasks import Sizes
from ggdln.theory.gp import gp_limit
from ggdln.theory.kernels import arc_cosine_limit, normalized_gp_kernel

KMEANS = {"kind": "soft_kmeans", "M": 3, "stiffness": 30.0}
SPECS = (
    {"kind": "random", "M": 5, "b": 0.3},
    {"kind": "rectified", "M": 5},
    {"kind": "open", "M": 2},
    {"kind": "local", "M": 6, "subsets": 3},
    {"kind": "top_down", "M": 5, "p_permitted": 0.6},
    KMEANS,
)
ELSEWHERE = ({"kind": "file", "path": "none.npz"}, {"kind": "function", "path": "none.py", "name": "mine", "M": 3})
"""Kinds whose files aren't here."""


@pytest.fixture
def x():
    return np.random.default_rng(0).standard_normal((60, 12))


@pytest.fixture
def subtask():
    return np.arange(60) % 2


def test_random_gates_open_above_the_threshold(x):
    for b, share in ((-1.0, 0.841), (0.0, 0.5), (1.0, 0.159)):
        rows = np.random.default_rng(1).standard_normal((300, 50))
        g = fit_gates({"kind": "random", "M": 400, "b": b}, rows, seed=1)(rows)
        assert set(np.unique(g)) == {0.0, 1.0}
        assert g.mean() == pytest.approx(share, abs=0.03)


@pytest.mark.parametrize("kind", [{"kind": "random"}, {"kind": "top_down", "p_permitted": 0.6}])
def test_gates_of_one_draw_are_nested_in_their_number(kind, x, subtask):
    few, many = (fit_gates(kind | {"M": M}, x, seed=1, subtask=subtask)(x, subtask) for M in (4, 9))
    assert np.array_equal(few, many[:, :4])


def test_local_gates_see_one_block_only(x):
    gates = fit_gates({"kind": "local", "M": 6, "subsets": 3}, x, seed=1)
    g = gates(x)
    for block in range(3):
        changed = x.copy()
        changed[:, 4 * block : 4 * block + 4] *= -1
        moved = (gates(changed) != g).any(axis=0)
        assert np.array_equal(np.flatnonzero(moved), [2 * block, 2 * block + 1])


def test_top_down_gates_are_random_gates_under_a_mask_for_each_task(x, subtask):
    gates = fit_gates({"kind": "top_down", "M": 400, "p_permitted": 0.75}, x, seed=1, subtask=subtask)
    permitted = gates.arrays["permitted"]
    assert permitted.mean() == pytest.approx(0.75, abs=0.05)
    assert permitted.prod(axis=0).mean() == pytest.approx(0.75**2, abs=0.06)
    first, second = gates(x, np.zeros(60, int)), gates(x, np.ones(60, int))
    shared = permitted.all(axis=0)
    assert np.array_equal(first[:, shared], second[:, shared])
    assert not first[:, permitted[0] == 0].any()
    with pytest.raises(InputError, match="sub-task from 0 to 1"):
        gates(x, np.full(60, 2))


def test_soft_kmeans_finds_separated_clusters():
    rng = np.random.default_rng(0)
    centres = 5 * rng.standard_normal((3, 8))
    x = centres[np.arange(90) % 3] + 0.1 * rng.standard_normal((90, 8))
    gates = fit_gates(KMEANS, x, seed=1)
    g = gates(x)
    assert gates.report["converged"]
    assert np.allclose(g.sum(axis=1), 1)
    assert g.max(axis=1).min() > 0.99
    distance = np.linalg.norm(gates.arrays["centres"][:, None] - centres, axis=2)
    assert sorted(distance.argmin(axis=0)) == [0, 1, 2]
    assert distance.min(axis=0).max() < 0.1


def test_soft_kmeans_centres_are_weighted_means(x):
    gates = fit_gates(KMEANS | {"tolerance": 1e-10, "max_iterations": 5000}, x, seed=1)
    g = gates(x)
    assert np.allclose(gates.arrays["centres"], g.T @ x / g.sum(axis=0)[:, None], atol=1e-7)


def test_unconverged_fits_say_so(x):
    report = fit_gates(KMEANS | {"max_iterations": 1, "tolerance": 1e-12}, x, seed=1).report
    assert not report["converged"]
    assert report["iterations"] == 1


def test_empty_clusters_are_moved_and_counted():
    # Forty copies of one point and two others: with hard assignments, centres that start on copies stay empty.
    x = np.concatenate([np.zeros((40, 2)), [[9.0, 0.0], [0.0, 9.0]]])
    fits = [fit_gates({"kind": "soft_kmeans", "M": 5, "stiffness": 1e4}, x, seed=seed) for seed in range(5)]
    for gates in fits:
        g = gates(x)
        assert np.isfinite(g).all()
        assert np.allclose(g.sum(axis=1), 1)


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec["kind"])
def test_parameters_and_arrays_are_all_that_new_inputs_need(spec, x, subtask):
    gates = fit_gates(spec, x, seed=1, subtask=subtask)
    assert {name: gates.arrays[name].ndim for name in gates.arrays} == {n: len(dims) for n, dims in gates.kind.dims.items()}
    assert set(gates.arrays) | {f"fit_{name}" for name in gates.report} <= set(gates.kind.variables)
    new = np.random.default_rng(9).standard_normal((20, 12))
    which = np.arange(20) % 2
    again = FittedGates(REGISTRIES["gates"].make(gates.kind.spec()), gates.arrays)
    assert again(new, which).shape == (20, len(gates))
    assert np.array_equal(again(new, which), gates(new, which))


@pytest.mark.parametrize("name", REGISTRIES["gates"].own())
def test_a_kind_has_the_name_of_its_file_describes_its_parameters_and_can_be_made_again(name):
    kind = REGISTRIES["gates"].get(name)
    assert kind.kind_name() == name
    assert all(field.description for field in kind.model_fields.values())
    made = [REGISTRIES["gates"].make(spec) for spec in SPECS + ELSEWHERE if spec["kind"] == name]
    assert made == [REGISTRIES["gates"].make(gates.spec()) for gates in made] != []
    for gates in made:
        assert set(gates.terms(Sizes(60, 20, 12)).work) | {"start", "points"} == set(gates.costs.seconds)


@pytest.mark.parametrize(("spec", "expected"), [
    ({"kind": "local", "M": 5, "subsets": 4}, ["gates.M = 5; accepted: multiples of gates.subsets = 4", "gates.subsets = 4; accepted: divisors of the input dimension 10"]),
    ({"kind": "local", "M": 5, "subsets": 5}, []),
    (KMEANS, ["gates.M = 3; accepted: at most the 1 training inputs, for soft_kmeans gates"]),
    ({"kind": "random", "M": 3}, []),
])  # fmt: skip
def test_gates_that_do_not_suit_a_task_say_what_would(spec, expected):
    task = REGISTRIES["task"].make({"kind": "angles", "N0": 10, "n_angles": 5, "noise": 0.0})
    assert [str(problem) for problem in REGISTRIES["gates"].make(spec).problems(task)] == expected


def test_many_random_gates_reach_the_arc_cosine_limit():
    # cos(g(x), g(x')) -> (pi - theta) / pi for zero threshold.
    theta = np.linspace(-3, 3, 13)
    x = np.column_stack([np.cos(theta), np.sin(theta)])
    reference = np.array([[1.0, 0.0]])
    gates = fit_gates({"kind": "random", "M": 100_000}, reference, seed=1)
    for depth in (0, 1, 3):
        kernel = normalized_gp_kernel(reference, gates(reference), x, gates(x), depth=depth)[0]
        assert np.allclose(kernel, arc_cosine_limit(theta, depth), atol=0.01)


@pytest.mark.parametrize(("spec", "message"), [
    ({"kind": "sigmoid", "M": 3}, "accepted: file, function, local, open, random, rectified, soft_kmeans, top_down"),
    ({"kind": "random", "M": 0}, "gates.M = 0; accepted: a whole number >= 1"),
    ({"kind": "local", "M": 5, "subsets": 3}, "multiples of subsets = 3"),
    ({"kind": "top_down", "M": 5, "p_permitted": 0.5}, "sub-task"),
    (KMEANS | {"M": 61}, "at most the number of training inputs, 60"),
])  # fmt: skip
def test_impossible_gates_say_what_is_possible(spec, message, x):
    with pytest.raises(InputError, match=message):
        fit_gates(spec, x, seed=1)


def test_rectified_gates_are_open_where_random_ones_are_and_generic(x):
    random, rectified = (fit_gates({"kind": kind, "M": 4, "b": 0.1}, x, seed=0) for kind in ("random", "rectified"))
    np.testing.assert_array_equal(rectified(x) > 0, random(x) > 0)
    # At depth 3 monomials of 0/1 gates coincide: 4 + 6 + 4 = 14 against C(6, 3) = 20 directions for each input dimension.
    # Those of rectified gates don't, unless b = 0, where open gates are linear in x.
    many = np.random.default_rng(0).standard_normal((1500, 8))
    ranks = []
    for kind in ("random", "rectified"):
        g = fit_gates({"kind": kind, "M": 4, "b": -0.3}, many, seed=1)(many)
        ranks.append(gp_limit(many, g, np.ones(1500), depth=3, temperature=0.0).rank)
    assert ranks == [8 * 14, 8 * 20]
