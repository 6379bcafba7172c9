"""Methods: each point of a sweep is what the library gives for it alone."""

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr
from helpers import sample_of

from ggdln import predictor_statistics, solve
from ggdln.core.kinds import REGISTRIES
from ggdln.experiments.experiment import Experiment
from ggdln.experiments.methods import Point
from ggdln.experiments.methods.gd import Gd
from ggdln.experiments.methods.gp import Gp
from ggdln.experiments.methods.langevin import Langevin
from ggdln.experiments.methods.posterior import Posterior
from ggdln.experiments.methods.relu import Relu
from ggdln.experiments.methods.theory import Theory
from ggdln.networks.status import CONVERGED, DIVERGED

EXPERIMENT = Experiment(
    name="small",
    task={
        "kind": "clustered_teacher", "N0": 12, "P": 30, "P_t": 20, "N_T": 50, "gamma": 0.1, "subsets": 3, "clusters": 9, "rho": 0.1
    },
    gates={"kind": "local", "M": 6, "subsets": 3, "b": -0.5},
    network={"L": 1, "sigma": 0.8, "T": 0.0},
    sweep={"network.N": [10, 100, 1000]},
    methods={"theory": Theory(), "gd": Gd(runs=4, draws=1), "relu": Relu(runs=3)},
    observables=("predictor", "order_parameter"),
    draws=3,
    seed=5,
    batch={"draws": 2, "points": 4, "runs": 10},
)  # fmt: skip
NARROW = {"L": 1, "N": 20, "sigma": 0.8, "T": 0.01}
MACHINE = {"device": "cpu"}


@pytest.fixture(scope="module")
def sample():
    return sample_of(EXPERIMENT.task, EXPERIMENT.gates, seed=5)


def point_of(sample, networks, observables=("predictor", "order_parameter"), **more):
    return Point(sample, networks, observables, 5, machine=MACHINE, **more)


def statistics(solution, sample):
    return predictor_statistics(*solution.predict(sample.task.x_test, sample.g_test), sample.task.y_test)


def test_theory_along_a_sweep_of_widths_is_that_of_each_width(sample):
    piece = EXPERIMENT.curve("theory").pieces[0]
    results = Theory().measure(point_of(sample, piece.networks))
    for width, result in zip((10, 100, 1000), results, strict=True):
        alone = solve(sample.task.x, sample.g, sample.task.y, width=width, sigma=0.8)
        assert result["bias"] == pytest.approx(statistics(alone, sample)["bias"], rel=1e-6)
        assert np.allclose(result["order_parameter"], alone.order_parameters[0], atol=1e-6)
        assert result["residual"] < 1e-8


def test_theory_along_a_sweep_of_priors_and_depths(sample):
    swept = replace(EXPERIMENT, network={"N": 50, "T": 0.01}, sweep={"network.L": [1, 2], "network.sigma": [0.5, 1.0]})
    networks = swept.curve("theory").pieces[0].networks
    assert [(network["L"], network["sigma"]) for network in networks] == [(1, 0.5), (1, 1.0), (2, 0.5), (2, 1.0)]
    results = Theory().measure(point_of(sample, networks, ("predictor",)))
    for network, result in zip(networks, results, strict=True):
        depth, sigma = network["L"], network["sigma"]
        alone = solve(sample.task.x, sample.g, sample.task.y, width=50, depth=depth, sigma=sigma, temperature=0.01)
        assert result["variance"] == pytest.approx(statistics(alone, sample)["variance"], rel=1e-5)
        fitted, _ = alone.predict(sample.task.x, sample.g)
        assert result["training_error"] == pytest.approx(np.mean((fitted - sample.task.y) ** 2), rel=1e-5)


def test_the_limit_is_that_of_wide_networks(sample):
    limit = Gp().measure(point_of(sample, [{"L": 1, "sigma": 0.8, "T": 0.01}], ("predictor",)))[0]
    wide = Theory().measure(point_of(sample, [NARROW | {"N": 1e7}], ("predictor",)))[0]
    assert limit["bias"] == pytest.approx(wide["bias"], rel=1e-4)


@pytest.fixture(scope="module")
def trained(sample, tmp_path_factory):
    """Four networks, trained together."""
    return block(sample, range(4), tmp_path_factory.mktemp("state"))


def block(sample, runs, folder):
    method = EXPERIMENT.curve("gd").pieces[0].of_runs().kind(len(runs))
    point = point_of(sample, [NARROW], runs=runs, state=folder / f"{runs.start}-{runs.stop}")
    return xr.Dataset(method.measure(point)[0])


def test_blocks_of_runs_are_parts_of_one_ensemble(sample, trained, tmp_path):
    parts = xr.concat([block(sample, range(1), tmp_path), block(sample, range(1, 4), tmp_path)], "run")
    assert trained.drop_attrs().equals(parts.drop_attrs())
    assert (trained.status == CONVERGED).all()


def test_failed_runs_are_left_out_and_counted(sample, trained):
    def average(dataset):
        return Gd(runs=4).combine([dataset], point_of(sample, [NARROW]))[0]

    trained = trained.copy(deep=True)
    good = average(trained.isel(run=slice(3)))
    trained.status[3] = DIVERGED
    trained.prediction[3] = np.nan
    found = average(trained)
    assert (found["runs_used"], found["runs_failed"]) == (3, 1)
    assert found["bias"] == good["bias"]
    assert np.array_equal(found["order_parameter"], good["order_parameter"])
    # With fewer than two good runs there is no variance, and no number is made up.
    trained.status[1:] = DIVERGED
    assert np.isnan(average(trained)["bias"])


def test_a_block_that_was_padded_to_more_gates_gives_the_same(sample, trained):
    padded = trained.pad(gate=(0, 2), gate2=(0, 2))
    one, other = (Gd(runs=4).combine([dataset], point_of(sample, [NARROW]))[0] for dataset in (trained, padded))
    assert np.array_equal(one["order_parameter"], other["order_parameter"])


@pytest.mark.parametrize(
    "method",
    [Langevin(chains=2, warmup=20, samples=10, step=0.2), Posterior(chains=2, warmup=5, samples=10)],
    ids=lambda m: m.kind_name(),
)
def test_samplers_give_statistics_of_their_chains(method, sample, tmp_path):
    result = method.measure(point_of(sample, [NARROW], state=tmp_path / "state"))[0]
    assert (result["runs_used"], result["runs_failed"]) == (2, 0)
    for name in ("bias", "variance", "training_error", "largest_rhat", "least_ess"):
        assert np.isfinite(result[name])
    assert result["order_parameter"].shape == (6, 6)


@pytest.mark.parametrize("name", ["gp", "theory", "gd", "relu", "langevin", "posterior"])
def test_everything_that_is_measured_is_described(name, sample, tmp_path, trained):
    """A method gives nothing whose meaning it, or an observable, doesn't tell."""
    settings = {
        "gd": {"runs": 2}, "relu": {"runs": 2}, "langevin": {"chains": 2, "warmup": 5, "samples": 4, "step": 0.2},
        "posterior": {"chains": 2, "warmup": 2, "samples": 4},
    }  # fmt: skip
    method = REGISTRIES["method"].get(name)(**settings.get(name, {}))
    point = point_of(sample, [NARROW], runs=range(2), state=tmp_path / "state")
    results = method.measure(point)
    if method.split:
        assert set(results[0]) <= set(method.run_variables) | set(method.variables)
        results = method.combine([xr.Dataset(results[0])], point)
    told = {
        variable
        for kind in (method, *(REGISTRIES["observable"].get(o) for o in point.observables))
        for variable in kind.variables
    }
    for result in results:
        assert set(result) <= told


def test_relu_networks_have_no_gates_and_few_draws_are_a_setting_of_the_method():
    swept = replace(EXPERIMENT, network=NARROW, gates={"kind": "random"}, sweep={"gates.M": [2, 3]})
    relu, gd = swept.curve("relu"), swept.curve("gd")
    assert relu.axes == {}
    assert [len(piece.points) for piece in gd.pieces] == [2]
    assert (gd.draws, relu.draws) == (1, 3)


def test_open_gates_make_a_linear_network():
    sample = sample_of(EXPERIMENT.task, {"kind": "open", "M": 1}, seed=1)
    assert np.array_equal(sample.g, np.ones((30, 1)))
