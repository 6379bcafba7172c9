"""Experiments: the numbers depend on parameters, seed and draw, and on nothing else."""

from dataclasses import asdict, replace

import numpy as np
import pytest
import xarray as xr
from helpers import TEACHER, sample_of

from ggdln.core.seeds import rng
from ggdln.experiments.experiment import Experiment, Piece, assemble, concat, measure_piece
from ggdln.experiments.methods.gp import Gp
from ggdln.experiments.methods.relu import Relu
from ggdln.experiments.packing import pack_gates, pack_tasks, unpack_gates, unpack_task

EXPERIMENT = Experiment(
    name="small",
    task={name: value for name, value in TEACHER.items() if name != "P"},
    gates={"kind": "random", "b": 0.0},
    network={"sigma": 1.0, "T": 0.0},
    sweep={"task.P": [12, 20], "gates.M": [2, 3, 5], "network.L": [1, 2]},
    methods={"gp": Gp()},
    observables=("predictor",),
    draws=5,
    seed=3,
    batch={"draws": 2, "points": 4, "runs": 10},
)


def blocks(curve):
    """The blocks of draws in which a curve is computed."""
    return [range(first, min(first + curve.draws_per_job, curve.draws)) for first in range(0, curve.draws, curve.draws_per_job)]


def measured(piece, draws):
    def sample(draw, point):
        return sample_of(piece.points[point]["task"], piece.points[point]["gates"], seed=piece.seed, draw=draw)

    return measure_piece(piece, draws, sample, piece.kind().measure)


def run(experiment, backwards=False):
    curve = experiment.curve("gp")
    order = slice(None, None, -1) if backwards else slice(None)
    return assemble(
        curve.axes, curve.draws, [[measured(piece, draws) for draws in blocks(curve)[order]] for piece in curve.pieces]
    )


@pytest.fixture(scope="module")
def result():
    return run(EXPERIMENT)


def test_sweep_and_draws_are_the_dimensions_of_the_result(result):
    assert dict(result.bias.sizes) == {"draw": 5, "P": 2, "M": 3, "L": 2}
    assert result.M.values.tolist() == [2, 3, 5]
    assert np.isfinite(result.bias).all()


def test_points_are_where_their_coordinates_say(result):
    one = replace(EXPERIMENT, sweep={"task.P": [20], "gates.M": [3], "network.L": [2]}).curve("gp").pieces[0]
    assert result.bias.sel(draw=4, P=20, M=3, L=2).item() == measured(one, range(4, 5)).bias.item()


@pytest.mark.parametrize(("draws", "points"), [(1, 1), (5, 6), (3, 2), (100, 100)])
def test_numbers_do_not_depend_on_batching_or_order(result, draws, points):
    other = run(replace(EXPERIMENT, batch=EXPERIMENT.batch | {"draws": draws, "points": points}), backwards=True)
    assert other.equals(result)


def test_more_draws_leave_the_earlier_ones_as_they_were(result):
    more = run(replace(EXPERIMENT, draws=7))
    assert more.isel(draw=slice(5)).equals(result)
    assert not np.array_equal(more.bias[5], more.bias[6])


def test_fewer_draws_are_taken_from_larger_blocks(result):
    """And a draw that two blocks have counts once."""
    curve = EXPERIMENT.curve("gp")
    parts = [[measured(piece, draws) for draws in (range(0, 3), range(2, 5))] for piece in curve.pieces]
    assert assemble(curve.axes, 4, parts).equals(result.isel(draw=slice(4)))


def names(experiment, method="gp"):
    return [piece.id for piece in experiment.curve(method).pieces]


def test_identifiers_follow_what_determines_the_numbers():
    first, second = EXPERIMENT.curve("gp").pieces
    assert first.id != second.id
    assert Piece(**asdict(first)).id == first.id
    for same in ({"draws": 9}, {"name": "renamed"}, {"batch": EXPERIMENT.batch | {"draws": 1}}, {"varied": "otherwise"}):
        assert names(replace(EXPERIMENT, **same)) == [first.id, second.id]
    for other in (
        {"seed": 4},
        {"network": {"sigma": 2.0, "T": 0.0}},
        {"gates": {"kind": "random", "b": 1.0}},
        {"observables": ("predictor", "kernel_shape")},
        {"methods": {"gp": Gp(rank_tolerance=1e-6)}},
    ):
        assert not set(names(replace(EXPERIMENT, **other))) & {first.id, second.id}
    # A network parameter changes the curve but not the gates.
    other = replace(EXPERIMENT, network={"sigma": 2.0, "T": 0.0}).curve("gp").pieces[0]
    assert other.gating == first.gating


def test_a_further_point_of_a_sweep_leaves_the_others_as_they_are():
    single = replace(EXPERIMENT, batch=EXPERIMENT.batch | {"points": 1})
    longer = replace(single, sweep=EXPERIMENT.sweep | {"gates.M": [2, 3, 4, 5]})
    assert set(names(single)) < set(names(longer))
    assert len(names(longer)) == 8


def test_width_is_no_axis_of_the_infinite_width_limit():
    swept = replace(EXPERIMENT, sweep=EXPERIMENT.sweep | {"network.N": [10, 20]})
    assert names(swept) == names(EXPERIMENT)
    assert list(swept.curve("gp").axes) == ["P", "M", "L"]


def test_runs_are_shared_whatever_their_number_and_what_is_observed():
    experiment = replace(EXPERIMENT, network={"sigma": 1.0, "N": 5}, methods={"relu": Relu(runs=4)})
    more = replace(experiment, methods={"relu": Relu(runs=8)}, observables=("predictor", "kernel_shape"))
    one, other = (each.curve("relu").pieces[0] for each in (experiment, more))
    assert one.id != other.id
    assert one.of_runs().id == other.of_runs().id
    assert one.gating is None  # no gates, and no axes of theirs
    assert experiment.curve("relu").axes == {"P": [12, 20]}


def test_missing_pieces_and_draws_are_noticed():
    curve = EXPERIMENT.curve("gp")
    part = measured(curve.pieces[0], range(2))
    with pytest.raises(ValueError, match="8 of 12 points and 2 of 5 draws"):
        assemble(curve.axes, curve.draws, [[part]])


def test_datasets_of_different_numbers_of_gates_are_padded():
    one, other = (xr.Dataset({"U": (("draw", "gate"), np.ones((1, M)))}, coords={"draw": [M]}) for M in (2, 3))
    both = concat([one, other], "draw")
    assert both.U.shape == (2, 3)
    assert np.isnan(both.U.values).tolist() == [[False, False, True], [False, False, False]]


def test_progress_is_reported():
    lines = []
    piece = EXPERIMENT.curve("gp").pieces[1]
    measure_piece(piece, range(2), lambda draw, point: None, lambda point: [{"x": 0.0}] * 2, report=lines.append)
    assert lines[-1] == "draw 1, point 1: 4 of 4 done"


@pytest.mark.parametrize("gates", [
    {"kind": "random", "M": 3},
    {"kind": "local", "M": 4, "subsets": 2},
    {"kind": "soft_kmeans", "M": 3, "stiffness": 2.0},
    {"kind": "open", "M": 2},
])  # fmt: skip
def test_tasks_and_gates_come_back_from_a_dataset(gates):
    spec = {
        "kind": "clustered_teacher",
        "N0": 6,
        "P": 8,
        "P_t": 4,
        "N_T": 5,
        "gamma": 0.1,
        "subsets": 2,
        "clusters": 3,
        "rho": 0.5,
    }
    samples = {draw: sample_of(spec, gates, seed=1, draw=draw) for draw in (3, 4)}
    stored = pack_tasks({draw: sample.task for draw, sample in samples.items()})
    # Beside gates of another number, which pad those of the first.
    points = {(draw, 0): sample.gates for draw, sample in samples.items()}
    larger = gates | {"M": 2 * gates["M"]}
    points |= {(draw, 1): sample_of(sample.task, larger, seed=1, draw=draw).gates for draw, sample in samples.items()}
    packed = pack_gates(points)
    for draw, sample in samples.items():
        task = unpack_task(stored, draw)
        for name in ("x", "y", "subtask", "x_test", "y_test", "subtask_test"):
            assert np.array_equal(getattr(task, name), getattr(sample.task, name))
        assert set(task.notes) == set(sample.task.notes)
        back = unpack_gates(packed, draw, 0, gates)
        assert np.array_equal(back(task.x_test, task.subtask_test), sample.g_test)
        assert back.report == sample.gates.report
        assert len(unpack_gates(packed, draw, 1, larger)) == 2 * gates["M"]


def test_streams_with_different_names_are_independent():
    a, b = rng(1, "task", 0).standard_normal(10_000), rng(1, "task", 1).standard_normal(10_000)
    assert abs(np.corrcoef(a, b)[0, 1]) < 0.04
    assert np.array_equal(a, rng(1, "task", 0).standard_normal(10_000))
