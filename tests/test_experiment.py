"""Experiments: the numbers depend on parameters, seed and draw, and on nothing else."""

from dataclasses import asdict, replace

import numpy as np
import pytest

from ggdln.experiments.experiment import Curve, Experiment, assemble, run_chunk
from ggdln.gates import fit_gates
from ggdln.experiments.methods.gp import measure
from ggdln.core.seeds import rng
from ggdln.tasks.make import make_task

EXPERIMENT = Experiment(
    name="small",
    task={"kind": "noisy_teacher", "N0": 4, "P_t": 10, "N_T": 20, "gamma": 0.1, "epsilon": 0.1},
    gates={"kind": "random", "b": 0.0},
    network={"sigma": 1.0, "T": 0.0},
    sweep={"task.P": [12, 20], "gates.M": [2, 3, 5], "network.L": [1, 2]},
    methods={"gp": {"rank_tolerance": 1e-11}},
    observables=("predictor",),
    draws=5,
    seed=3,
    draws_per_job=2,
    points_per_job=4,
)


def run(experiment, backwards=False):
    curve = experiment.curve("gp")
    points = curve.outer_points()

    def task_of(draw, point):
        return make_task(points[point]["task"], seed=curve.seed, draw=draw)

    def gates_of(draw, point):
        return fit_gates(points[point]["gates"], task_of(draw, point).x, seed=curve.seed, draw=draw)

    chunks = experiment.chunks(curve)
    parts = [run_chunk(curve, chunk, task_of, gates_of, measure) for chunk in (chunks[::-1] if backwards else chunks)]
    return assemble(curve, parts)


@pytest.fixture(scope="module")
def result():
    return run(EXPERIMENT)


def test_sweep_and_draws_are_the_dimensions_of_the_result(result):
    assert dict(result.bias.sizes) == {"draw": 5, "P": 2, "M": 3, "L": 2}
    assert result.M.values.tolist() == [2, 3, 5]
    assert np.isfinite(result.bias).all()


def test_points_are_where_their_coordinates_say(result):
    task = make_task(EXPERIMENT.task | {"P": 20}, seed=3, draw=4)
    gates = fit_gates(EXPERIMENT.gates | {"M": 3}, task.x, seed=3, draw=4)
    curve = replace(EXPERIMENT, sweep={"network.L": [2]}).curve("gp")
    assert result.bias.sel(draw=4, P=20, M=3, L=2).item() == measure(curve, task, gates, 4, 0)[0]["bias"]


@pytest.mark.parametrize(("draws", "points"), [(1, 1), (5, 6), (3, 2), (100, 100)])
def test_numbers_do_not_depend_on_batching_or_order(result, draws, points):
    other = run(replace(EXPERIMENT, draws_per_job=draws, points_per_job=points), backwards=True)
    assert other.equals(result)


def test_more_draws_leave_the_earlier_ones_as_they_were(result):
    more = run(replace(EXPERIMENT, draws=7))
    assert more.isel(draw=slice(5)).equals(result)
    assert not np.array_equal(more.bias[5], more.bias[6])


def test_identifiers_follow_what_determines_the_numbers():
    curve = EXPERIMENT.curve("gp")
    assert Curve(**asdict(curve)).id == curve.id
    for same in ({"draws": 9}, {"name": "renamed"}, {"draws_per_job": 1}):
        assert replace(EXPERIMENT, **same).curve("gp").id == curve.id
    for other in ({"seed": 4}, {"network": {"sigma": 2.0, "T": 0.0}}, {"gates": {"kind": "random", "b": 1.0}}):
        assert replace(EXPERIMENT, **other).curve("gp").id != curve.id
    # A network parameter changes the curve but not the gates.
    assert replace(EXPERIMENT, network={"sigma": 2.0, "T": 0.0}).curve("gp").gating_id == curve.gating_id


def test_width_is_no_axis_of_the_infinite_width_limit():
    swept = replace(EXPERIMENT, sweep=EXPERIMENT.sweep | {"network.N": [10, 20]})
    assert swept.curve("gp").id == EXPERIMENT.curve("gp").id


def test_missing_chunks_are_noticed():
    curve = EXPERIMENT.curve("gp")
    chunk = EXPERIMENT.chunks(curve)[0]
    points = curve.outer_points()
    part = run_chunk(
        curve,
        chunk,
        lambda d, p: make_task(points[p]["task"], seed=3, draw=d),
        lambda d, p: fit_gates(points[p]["gates"], np.zeros((1, 4)), seed=3, draw=d),
        measure,
    )
    with pytest.raises(ValueError, match="8 of 12 points"):
        assemble(curve, [part])


def test_streams_with_different_names_are_independent():
    a, b = rng(1, "task", 0).standard_normal(10_000), rng(1, "task", 1).standard_normal(10_000)
    assert abs(np.corrcoef(a, b)[0, 1]) < 0.04
    assert np.array_equal(a, rng(1, "task", 0).standard_normal(10_000))
