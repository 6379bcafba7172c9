"""Methods: each point of a sweep is what the library gives for it alone."""

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

from ggdln import predictor_statistics, solve
from ggdln.networks.status import CONVERGED, DIVERGED
from ggdln.experiments.experiment import Experiment
from ggdln.gates import fit_gates
from ggdln.experiments.methods import averaging, theory, training
from ggdln.tasks.make import make_task

EXPERIMENT = Experiment(
    name="small",
    task={
        "kind": "clustered_teacher", "N0": 12, "P": 30, "P_t": 20, "N_T": 50, "gamma": 0.1, "subsets": 3, "clusters": 9, "rho": 0.1
    },
    gates={"kind": "local", "M": 6, "subsets": 3, "b": -0.5},
    network={"L": 1, "sigma": 0.8, "T": 0.0},
    sweep={"network.N": [10, 100, 1000]},
    methods={
        "theory": {"tolerance": 1e-8, "max_evaluations": 500},
        "gd": {"runs": 4, "draws": 1, "method": "flow", "tolerance": 1e-3, "accuracy": 0.05, "dtype": "float32"},
        "relu": {"runs": 3, "tolerance": 1e-3, "accuracy": 0.03, "dtype": "float32"},
    },
    observables=("predictor", "order_parameter"),
    draws=3,
    seed=5,
    draws_per_job=2,
    points_per_job=4,
)  # fmt: skip


@pytest.fixture(scope="module")
def task():
    return make_task(EXPERIMENT.task, seed=5)


@pytest.fixture(scope="module")
def gates(task):
    return fit_gates(EXPERIMENT.gates, task.x, seed=5)


def test_theory_along_a_sweep_of_widths_is_that_of_each_width(task, gates):
    results = theory.measure(EXPERIMENT.curve("theory"), task, gates, 0, 0)
    for width, result in zip((10, 100, 1000), results, strict=True):
        alone = solve(task.x, gates(task.x), task.y, width=width, sigma=0.8)
        expected = predictor_statistics(*alone.predict(task.x_test, gates(task.x_test)), task.y_test)
        assert result["bias"] == pytest.approx(expected["bias"], rel=1e-6)
        assert np.allclose(result["order_parameter"], alone.order_parameters[0], atol=1e-6)
        assert result["residual"] < 1e-8


def test_theory_along_a_sweep_of_priors_and_depths(task, gates):
    curve = replace(
        EXPERIMENT,
        network={"N": 50, "T": 0.01},
        sweep={"network.L": [1, 2], "network.sigma": [0.5, 1.0]},
        observables=("predictor",),
    ).curve("theory")
    results = theory.measure(curve, task, gates, 0, 0)
    for network, result in zip(curve.inner_points(), results, strict=True):
        alone = solve(task.x, gates(task.x), task.y, width=50, depth=network["L"], sigma=network["sigma"], temperature=0.01)
        expected = predictor_statistics(*alone.predict(task.x_test, gates(task.x_test)), task.y_test)
        assert result["variance"] == pytest.approx(expected["variance"], rel=1e-5)
        fitted, _ = alone.predict(task.x, gates(task.x))
        assert result["training_error"] == pytest.approx(np.mean((fitted - task.y) ** 2), rel=1e-5)


def test_blocks_of_runs_are_parts_of_one_ensemble(task, gates, tmp_path):
    curve = replace(EXPERIMENT, sweep={}, network={"L": 1, "sigma": 0.8, "N": 20}).curve("gd").of_runs()
    machine = {"device": "cpu"}

    def block(first, last):
        state = tmp_path / f"{first}-{last}"
        return xr.Dataset(training.train(curve, task, gates, 0, 0, runs=range(first, last), machine=machine, state=state)[0])

    whole, parts = block(0, 4), xr.concat([block(0, 1), block(1, 4)], "run")
    assert whole.drop_attrs().equals(parts.drop_attrs())
    assert (whole.status == CONVERGED).all()


def test_failed_runs_are_left_out_and_counted(task, gates, tmp_path):
    curve = replace(EXPERIMENT, sweep={}, network={"L": 1, "sigma": 0.8, "N": 20}).curve("gd").of_runs()
    trained = xr.Dataset(training.train(curve, task, gates, 0, 0, runs=range(4), machine={"device": "cpu"}, state=tmp_path)[0])
    good = averaging.average(curve, trained.isel(run=slice(3)), task, gates)
    trained.status[3] = DIVERGED
    trained.prediction[3] = np.nan
    found = averaging.average(curve, trained, task, gates)
    assert (found["runs_used"], found["runs_failed"]) == (3, 1)
    assert found["bias"] == good["bias"]
    assert np.array_equal(found["order_parameter"], good["order_parameter"])
    # With fewer than two good runs there is no variance, and no number is made up.
    trained.status[1:] = DIVERGED
    assert np.isnan(averaging.average(curve, trained, task, gates)["bias"])


def test_relu_networks_have_no_gates_and_few_draws_are_a_setting_of_the_method():
    swept = replace(
        EXPERIMENT, network={"L": 1, "sigma": 0.8, "T": 0.0, "N": 10}, gates={"kind": "random"}, sweep={"gates.M": [2, 3]}
    )
    assert swept.curve("relu").sweep == {}
    assert len(swept.curve("gd").outer_points()) == 2
    assert [len(chunk.draws) for chunk in swept.chunks(swept.curve("gd"))] == [1]
    assert sum(len(chunk.draws) for chunk in swept.chunks(swept.curve("relu"))) == 3


def test_open_gates_make_a_linear_network(task):
    gates = fit_gates({"kind": "open", "M": 1}, task.x, seed=1)
    assert np.array_equal(gates(task.x), np.ones((30, 1)))
