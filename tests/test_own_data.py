"""Tasks and gates from files and functions of the user's: what they give, and what each mistake is answered with."""

import bz2
import hashlib
import json
import os
import pickle
import struct

import numpy as np
import pytest
import xarray as xr
import yaml
from helpers import ROOT, snakemake
from sklearn.datasets import load_wine

import ggdln
from ggdln.core.errors import ConfigError, InputError
from ggdln.core.kinds import REGISTRIES
from ggdln.experiments import store
from ggdln.experiments.experiment import concat
from ggdln.experiments.methods import Point
from ggdln.experiments.packing import pack_gates, pack_tasks, unpack_gates, unpack_task
from ggdln.gates import fit_gates
from ggdln.networks.training import train_ensemble
from ggdln.observables import Sample
from ggdln.tasks import Sizes, file, make_task, torchvision
from ggdln.theory.ensemble import ensemble_statistics
from ggdln.theory.statistics import predictor_statistics
from ggdln.workflow.config import read_config
from ggdln.workflow.costs import Cost

N = 120
FILE = {"kind": "file", "path": "data.npz", "P": 60, "P_t": 40}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where the user works: three classes of different sizes, whose first input tells the row."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    x = np.column_stack([np.arange(N), 5 + 3 * rng.standard_normal(N), np.full(N, 0.1), rng.standard_normal(N)])
    kind = np.array(["cat"] * 60 + ["dog"] * 40 + ["eel"] * 20)
    np.savez("data.npz", x=x, y=x[:, 1] - x[:, 3])
    np.savez("classes.npz", x=x, y=kind)
    np.savez(
        "sets.npz", x=x[:80].reshape(80, 2, 2), y=kind[:80] == "cat", x_test=x[80:].reshape(40, 2, 2), y_test=kind[80:] == "dog"
    )
    np.savez("gates.npz", gates=np.column_stack([np.arange(N) % 2, np.arange(N) % 3 == 0]))
    lines = [f"{a},{b},{c},{d},{k}" for (a, b, c, d), k in zip(x, kind, strict=True)]
    (tmp_path / "data.csv").write_text("\n".join(["row,size,constant,weight,animal", *lines]) + "\n")
    xr.Dataset({"x": (("sample", "feature"), x), "y": ("sample", x[:, 1])}).to_netcdf("data.nc")
    (tmp_path / "my_gates.py").write_text(
        "def my_gates(x):\n    return x[:, :3] > 0\n\n\ndef odd(x):\n    return 1 / 0\n\n\ndef counted(x, M):\n    return x[:, :M] > 0\n\n\n"
        "def learned(x, fitted):\n    return x @ fitted.T > 0\n"
    )
    (tmp_path / "fitted.py").write_text(
        "def fit(x, rng, M):\n    return rng.standard_normal((M, x.shape[1])) + x.mean(axis=0)\n\n\n"
        "def half(x, fitted):\n    return x @ fitted.T > 0\n"
    )
    return tmp_path


def rows(task):
    """Rows of training and test samples, which their first input tells."""
    return task.x[:, 0].astype(int), task.x_test[:, 0].astype(int)


def test_a_draw_takes_other_samples_for_training_and_testing_and_notes_their_rows(folder):
    first, other = (make_task(FILE, seed=1, draw=draw) for draw in (0, 1))
    train, test = rows(first)
    assert (len(set(train)), len(set(test)), len({*train, *test})) == (60, 40, 100)
    assert np.array_equal(first.notes["row"][1], train)
    assert np.array_equal(first.notes["row_test"][1], test)
    assert set(train) != set(rows(other)[0])
    np.testing.assert_array_equal(first.y, np.load("data.npz")["y"][train])
    larger = make_task(FILE | {"P": 80}, seed=1)
    assert np.array_equal(larger.x[:60], first.x)
    assert np.array_equal(larger.x_test, first.x_test)


def test_classes_keep_their_shares_and_one_is_told_from_the_rest(folder):
    spec = FILE | {"path": "classes.npz", "labels": {"one_vs_rest": "eel"}}
    task = make_task(spec, seed=1)
    for chosen, y in zip(rows(task), (task.y, task.y_test), strict=True):
        shares = np.bincount(np.digitize(chosen, [60, 100]), minlength=3) / len(chosen)
        np.testing.assert_allclose(shares, [0.5, 1 / 3, 1 / 6], atol=1.01 / len(chosen))
        assert np.array_equal(y, np.where(chosen >= 100, 1, -1))
    assert task.notes["class_name"][1].tolist() == ["rest", "eel"]
    stored = unpack_task(pack_tasks({0: task}), 0)
    assert stored.notes["class_name"][1].tolist() == ["rest", "eel"]


def test_sets_of_their_own_are_taken_whole_or_in_part(folder):
    whole = make_task({"kind": "file", "path": "sets.npz", "labels": "sign"}, seed=1)
    assert np.array_equal(rows(whole)[0], np.arange(80))  # images are laid out in one dimension
    assert np.array_equal(whole.notes["row_test"][1], np.arange(80, 120))
    assert np.array_equal(whole.y, np.where(np.arange(80) < 60, 1, -1))
    part = make_task({"kind": "file", "path": "sets.npz", "labels": "sign", "P": 20, "P_t": 10}, seed=1)
    assert max(rows(part)[0]) < 80 <= min(rows(part)[1])
    assert (part.y == 1).sum() == 15
    assert REGISTRIES["task"].make({"kind": "file", "path": "sets.npz"}).sizes().P_t == 40


def test_inputs_and_labels_are_standardized_by_the_training_samples_alone(folder):
    plain, scaled = (make_task(FILE | {"standardize": standardize}, seed=1) for standardize in (False, True))
    mean, deviation = plain.x.mean(axis=0), plain.x.std(axis=0)
    np.testing.assert_allclose(scaled.x.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(scaled.x.std(axis=0), [1, 1, 0, 1])
    np.testing.assert_allclose(scaled.x_test[:, [0, 1, 3]], ((plain.x_test - mean) / deviation)[:, [0, 1, 3]])
    assert not scaled.x_test[:, 2].any()
    np.testing.assert_allclose(scaled.y_test, (plain.y_test - plain.y.mean()) / plain.y.std())
    inputs = make_task(FILE | {"standardize": "inputs"}, seed=1)
    assert np.array_equal(inputs.x, scaled.x)
    assert np.array_equal(inputs.y, plain.y)


@pytest.mark.parametrize("y", [np.where(np.arange(N) % 3 == 0, -1, 1), np.arange(N) % 3 == 0])
def test_labels_of_two_signs_are_classes_and_keep_their_values(folder, y):
    np.savez("signs.npz", x=np.load("data.npz")["x"], y=y)
    task = make_task(FILE | {"path": "signs.npz", "standardize": True}, seed=1)
    assert set(task.y) == {-1, 1}
    assert sorted([(task.y == 1).mean(), (task.y == -1).mean()]) == pytest.approx([1 / 3, 2 / 3])


def test_other_formats_give_the_same(folder):
    expected = make_task(FILE | {"path": "classes.npz", "labels": {"one_vs_rest": "dog"}}, seed=1)
    table = {"path": "data.csv", "target": "animal", "labels": {"one_vs_rest": "dog"}}
    found = make_task(FILE | table, seed=1)
    np.testing.assert_allclose(found.x, expected.x)
    assert np.array_equal(found.y, expected.y)
    assert np.array_equal(make_task(FILE | table | {"inputs": ["row", "weight"]}, seed=1).x, found.x[:, [0, 3]])
    assert np.array_equal(make_task(FILE | {"path": "data.nc"}, seed=1).x, make_task(FILE, seed=1).x)


def test_sets_of_scikit_learn(folder):
    two = make_task({"kind": "sklearn", "name": "breast_cancer", "P": 100, "P_t": 50}, seed=1)
    assert set(two.y) == {-1, 1}
    assert two.notes["class_name"][1].tolist() == ["benign", "malignant"]
    assert make_task({"kind": "sklearn", "name": "diabetes", "P": 100, "P_t": 50}, seed=1).y.max() > 100
    several = make_task({"kind": "sklearn", "name": "linnerud", "P": 15, "P_t": 5}, seed=1)
    assert several.y.shape == (15, 3)
    assert several.notes["output_name"][1].tolist() == ["Weight", "Waist", "Pulse"]
    digits = make_task({"kind": "sklearn", "name": "digits", "P": 200, "P_t": 50, "labels": {"one_vs_rest": 3}}, seed=1)
    assert digits.x.shape == (200, 64)
    assert abs((digits.y == 1).sum() - 20) <= 1


def test_classes_have_an_output_each(folder):
    spec = FILE | {"path": "classes.npz", "labels": "classes"}
    task = make_task(spec, seed=1)
    assert task.notes["output_name"][1].tolist() == ["cat", "dog", "eel"]
    for chosen, y in zip(rows(task), (task.y, task.y_test), strict=True):
        assert np.array_equal(y, 2 * np.eye(3)[np.digitize(chosen, [60, 100])] - 1)
        np.testing.assert_allclose((y == 1).mean(axis=0), [0.5, 1 / 3, 1 / 6], atol=1.01 / len(y))
    assert REGISTRIES["task"].make(spec).sizes().C == 3
    shuffled = make_task(spec | {"shuffled": True}, seed=1)
    assert not np.array_equal(shuffled.y, task.y)
    assert ((shuffled.y == 1).sum(axis=1) == 1).all()
    two = make_task({"kind": "sklearn", "name": "breast_cancer", "P": 100, "P_t": 50, "labels": "classes"}, seed=1)
    sign = make_task({"kind": "sklearn", "name": "breast_cancer", "P": 100, "P_t": 50}, seed=1)
    assert np.array_equal(two.y, np.column_stack([-sign.y, sign.y]))


def test_several_outputs_of_a_regression(folder):
    x = np.load("data.npz")["x"]
    np.savez("wide.npz", x=x, y=x[:, [3, 1]])
    task = make_task(FILE | {"path": "wide.npz"}, seed=1)
    for given, y in ((task.x, task.y), (task.x_test, task.y_test)):
        assert np.array_equal(y, given[:, [3, 1]])
    scaled = make_task(FILE | {"path": "wide.npz", "standardize": True}, seed=1)
    np.testing.assert_allclose(scaled.y_test, (task.y_test - task.y.mean(axis=0)) / task.y.std(axis=0))
    table = {"path": "data.csv", "target": ["weight", "size"], "inputs": ["row", "constant"]}
    columns = make_task(FILE | table, seed=1)
    np.testing.assert_allclose(columns.y, task.y)
    assert columns.notes["output_name"][1].tolist() == ["weight", "size"]
    every = make_task(FILE | {"path": "data.csv", "target": ["row", "constant", "weight"], "inputs": ["size"]}, seed=1)
    assert every.y.shape == (60, 3)
    one = make_task(FILE | table | {"target": ["weight"]}, seed=1)
    assert np.array_equal(one.y, make_task(FILE | table | {"target": "weight"}, seed=1).y)


def test_a_matrix_of_two_values_is_one_of_signs(folder):
    """Rows that are alike keep their shares; indicators of classes and signs are the same."""
    x, members = np.load("data.npz")["x"], np.eye(3)[np.digitize(np.arange(N), [60, 100])]
    np.savez("indicators.npz", x=x, y=members)
    np.savez("signs.npz", x=x, y=2 * members - 1)
    expected = make_task(FILE | {"path": "classes.npz", "labels": "classes"}, seed=1)
    for spec in ({"path": "indicators.npz", "labels": "sign"}, {"path": "signs.npz", "standardize": True}):
        task = make_task(FILE | spec, seed=1)
        np.testing.assert_allclose((task.y == 1).mean(axis=0), [0.5, 1 / 3, 1 / 6], atol=1.01 / 60)
        assert set(map(tuple, task.y)) == set(map(tuple, expected.y))


WINE = {"kind": "sklearn", "name": "wine", "P": 24, "P_t": 15, "standardize": True}
OPEN = {"kind": "random", "M": 3, "b": 0.0}
NETWORK = {"L": 1, "N": 20, "sigma": 0.8, "T": 0.1}


def measured(method, sample, **settings):
    """What a method finds, by way of its single runs where it has such."""
    kind, split = REGISTRIES["method"].get(method)(**settings), range(settings.get("runs", 0))
    point = Point(sample, [NETWORK], ("predictor",), 3, runs=split)
    found = kind.measure(point)
    return kind.combine([xr.Dataset(found[0])], point)[0] if split else found[0]


@pytest.fixture(params=["classes", "regression"])
def several(request, folder):
    """A `Sample` with several labels for each input, by way of what is stored, and those labels read by hand."""
    if request.param == "classes":
        sample, y = sample_of(WINE | {"labels": "classes"}, OPEN), 2 * np.eye(3)[load_wine().target] - 1
    else:
        x = np.random.default_rng(2).standard_normal((N, 6))
        y = np.column_stack([x[:, 0] * x[:, 1], x[:, 2]])
        np.savez("two.npz", x=x, y=y)
        sample = sample_of({"kind": "file", "path": "two.npz", "P": 24, "P_t": 15}, OPEN)
    train, test = (sample.task.notes[name][1] for name in ("row", "row_test"))
    return sample, y[train], y[test]


def test_methods_measure_what_the_library_gives(several):
    """Theory, limit of infinite width and networks, by calls of the library on labels that were read by hand."""
    sample, y, y_test = several
    data, network = (sample.task.x, sample.g, y), {"sigma": 0.8, "temperature": 0.1}
    for method, solution in (
        ("theory", ggdln.solve(*data, width=20, **network)),
        ("one_loop", ggdln.solve(*data, width=20, loops=1, **network)),
        ("gp", ggdln.gp_limit(*data, **network)),
    ):
        expected = predictor_statistics(*solution.predict(sample.task.x_test, sample.g_test), y_test)
        found = measured(method, sample)
        assert {name: found[name] for name in expected} == pytest.approx(expected, rel=1e-6)
        assert found["log_evidence"] == pytest.approx(solution.log_evidence, rel=1e-6)
    arguments = (*data, sample.task.x_test, sample.g_test)
    trained = train_ensemble(*arguments, width=20, sigma=0.8, runs=3, seed=Point(sample, [], (), 3).stream("gd"))
    expected, found = ensemble_statistics(trained.prediction.values.astype(float), y_test), measured("gd", sample, runs=3)
    for name in ("bias", "variance", "error_rate", "error_rate_error"):
        assert found[name] == pytest.approx(expected[name], rel=1e-6)
    assert found["training_error"] == pytest.approx(trained.train_mse.values.mean(), rel=1e-6)


def test_samplers_and_networks_without_gates_take_several_outputs(several):
    """Both samplers of the exact posterior agree within errors; the others end with finite numbers of the same kind."""
    sample = several[0]
    exact = measured("exact", sample, chains=4, samples=40)
    drawn = measured("posterior", sample, chains=8, warmup=50, samples=100)
    for name in ("bias", "variance", "error_rate"):
        assert abs(exact[name] - drawn[name]) < 5 * np.hypot(exact[f"{name}_error"], drawn[f"{name}_error"])
    for found in (
        measured("langevin", sample, chains=3, warmup=50, samples=10, step=0.2),
        measured("relu", sample, runs=3),
    ):
        assert np.isfinite([found[name] for name in ("bias", "variance", "error_rate", "training_error")]).all()


def test_points_of_different_sizes_share_a_file(folder):
    """Runs on 3 classes and on 10, with fewer tests, are averaged from one file as they are from files of their own."""
    few = {"P": 20, "P_t": 12, "standardize": True, "labels": "classes"}
    samples = [
        sample_of({"kind": "sklearn", "name": name} | sizes, OPEN)
        for name, sizes in (("wine", few | {"P_t": 15}), ("digits", few))
    ]
    gd, points = REGISTRIES["method"].get("gd")(runs=2), [Point(sample, [NETWORK], (), 3, runs=range(2)) for sample in samples]
    parts = [xr.Dataset(gd.measure(point)[0]) for point in points]
    stored = concat([part.expand_dims(point=[i]) for i, part in enumerate(parts)], "point")
    assert dict(stored.prediction.sizes) == {"point": 2, "run": 2, "test": 15, "output": 10}
    for i, (part, point) in enumerate(zip(parts, points, strict=True)):
        expected, found = (gd.combine([block], point)[0] for block in (part, stored.sel(point=i)))
        np.testing.assert_equal(found, expected)
        assert found["error_rate"] > 0


def test_outputs_of_infinite_width_are_each_one_class_against_the_rest(folder):
    """The same samples are drawn: bias and variance of three classes are the means of those of the three questions."""
    together = measured("gp", sample_of(WINE | {"labels": "classes"}, OPEN))
    apart = [measured("gp", sample_of(WINE | {"labels": {"one_vs_rest": f"class_{c}"}}, OPEN)) for c in range(3)]
    for name in ("bias", "variance", "training_error"):
        assert together[name] == pytest.approx(np.mean([found[name] for found in apart]), rel=1e-9)
    assert together["error_rate"] > 1.1 * np.mean([found["error_rate"] for found in apart])


def test_what_cannot_take_several_outputs_is_named_before_anything_runs(folder, monkeypatch):
    task = FILE | {"path": "classes.npz", "labels": "classes"}
    assert read_config(configuration(task)).experiments["mine"].task["labels"] == "classes"
    with pytest.raises(ConfigError) as error:
        read_config(configuration(task, observables=["predictor", "order_parameter"]))
    assert "mine.observables = 'order_parameter'; accepted: predictor, since there are 3 labels for each sample" in str(
        error.value
    )
    monkeypatch.setattr(REGISTRIES["method"].get("gp"), "several_outputs", False)
    assert "mine.methods = 'gp'; accepted: exact or gd or langevin" in told(task)


def test_a_kind_of_task_says_how_many_labels_it_makes(folder, monkeypatch):
    monkeypatch.setattr(file.File, "sizes", lambda task: Sizes(60, 40, 4))
    with pytest.raises(InputError, match=r"task.kind = 'file' makes 3 labels for an input; accepted: 1, C of its sizes"):
        make_task(FILE | {"path": "classes.npz", "labels": "classes"}, seed=1)


@pytest.mark.parametrize("method", ["theory", "one_loop", "exact", "gd", "relu", "langevin", "posterior"])
def test_costs_of_several_outputs_are_those_of_more_samples(method):
    """The kernel of finite networks is over pairs of input and output, so three outputs cost at least nine times as much."""
    least = {"gd": {"runs": 2}, "relu": {"runs": 2}, "langevin": {"chains": 2, "warmup": 9, "step": 0.1}}
    least["posterior"] = {"chains": 2, "warmup": 9}
    kind = REGISTRIES["method"].get(method)(**least.get(method, {}))
    one, three = (Cost(kind.terms(Sizes(300, 100, 50, C), 3, NETWORK, runs=2, memory_mb=1000), kind.costs) for C in (1, 3))
    assert three.seconds > (9 if method not in ("relu", "langevin") else 1) * one.seconds
    assert three.megabytes > 3 * one.megabytes


@pytest.mark.slow
def test_a_figure_of_three_classes(tmp_path):
    """The workflow from the samples to the figure; the curve holds what theory and networks measured, the data their labels."""
    values = {
        "task": WINE | {"labels": "classes"},
        "gates": OPEN,
        "network": {key: NETWORK[key] for key in ("L", "sigma", "T")},
    }
    values |= {"sweep": {"network.N": [10, 30]}, "methods": {"theory": {}, "gd": {"runs": 2}}, "draws": 2}
    panel = {"kind": "curves", "series": ["wine/theory", "wine/gd"], "x": "N", "quantity": "error_rate"}
    figure = {"caption": "Three classes", "size": [3.5, 2.5], "mosaic": ["a"], "panels": {"a": panel}}
    content = {"experiments": {"wine": {"assumed": values}}, "figures": {"wine": figure}}
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(content))
    result = snakemake(tmp_path, "figures/wine.pdf", "--snakefile", str(ROOT / "Snakefile"), "--configfile", "mine.yaml")
    assert result.returncode == 0, result.stdout + result.stderr
    assert (tmp_path / "figures/wine.pdf").read_bytes().startswith(b"%PDF")
    for method in ("theory", "gd"):
        curve = store.read(tmp_path / f"results/curves/wine/{method}.nc")
        assert dict(curve.sizes) == {"draw": 2, "N": 2}
        assert ((curve.error_rate > 0) & (curve.error_rate < 0.6)).all()
    (path,) = (tmp_path / "results/data").glob("sklearn-*/draws_0-2.nc")
    stored = store.read(path)
    assert stored.y.dims == ("draw", "train", "output")
    assert stored.output_name.values[0].tolist() == ["class_0", "class_1", "class_2"]


@pytest.fixture
def fashion(folder):
    """Small IDX files where torchvision keeps those of FashionMNIST."""
    raw = folder / "data/FashionMNIST/raw"
    raw.mkdir(parents=True)
    for part, n in (("train", 30), ("t10k", 10)):
        images = np.arange(n).repeat(784).astype(np.uint8)
        (raw / f"{part}-images-idx3-ubyte").write_bytes(struct.pack(">IIII", 2051, n, 28, 28) + images.tobytes())
        (raw / f"{part}-labels-idx1-ubyte").write_bytes(
            struct.pack(">II", 2049, n) + (np.arange(n) % 10).astype(np.uint8).tobytes()
        )
    return {"kind": "torchvision", "name": "FashionMNIST", "P": 20, "labels": {"one_vs_rest": 3}}


def test_sets_of_torchvision_are_read_from_the_disk(fashion, monkeypatch):
    task = make_task(fashion, seed=1)
    assert (task.x.shape, task.x_test.shape) == ((20, 784), (10, 784))
    assert np.array_equal(task.y == 1, task.x[:, 0] % 10 == 3)
    asked = []
    monkeypatch.setattr(torchvision, "fetch", lambda *where: asked.append(where[:2]))
    make_task(fashion | {"download": True}, seed=1)
    assert asked == []
    with pytest.raises(InputError, match="train-images-idx3-ubyte is missing"):
        make_task(fashion | {"download": True, "name": "KMNIST"}, seed=1)
    assert asked == [("KMNIST", "data")]


def test_usps_is_read_as_torchvision_does(folder):
    """Its files are texts: a class from 1 to 10, then index:value with values from -1 to 1, which torchvision makes bytes."""
    (folder / "data").mkdir()
    rng = np.random.default_rng(0)
    values = rng.uniform(-1, 1, (60, 256)).round(4)
    for archive, rows in (("usps.bz2", range(40)), ("usps.t.bz2", range(40, 60))):
        lines = [" ".join([str(k % 10 + 1), *(f"{i + 1}:{v}" for i, v in enumerate(values[k]))]) for k in rows]
        (folder / "data" / archive).write_bytes(bz2.compress("\n".join(lines).encode()))
    usps = {"kind": "torchvision", "name": "USPS", "labels": "classes"}
    task = make_task(usps, seed=1)
    assert (task.x.shape, task.y.shape, task.x_test.shape) == ((40, 256), (40, 10), (20, 256))
    np.testing.assert_array_equal(task.x, ((values[:40] + 1) / 2 * 255).astype(np.uint8))
    np.testing.assert_array_equal(task.y.argmax(1), np.arange(40) % 10)
    digest = torchvision._samples.__wrapped__("USPS", "data", ()).sha256
    lines[0] = "2" + lines[0][1:]
    (folder / "data/usps.t.bz2").write_bytes(bz2.compress("\n".join(lines).encode()))
    assert torchvision._samples.__wrapped__("USPS", "data", ()).sha256 != digest
    (folder / "data/usps.t.bz2").write_bytes(b"no archive")
    assert "task.folder = 'data'; accepted: a folder in which torchvision finds USPS, or download: true" in told(usps)


def test_cifar10_is_read_only_with_the_checksums_that_torchvision_knows(folder, monkeypatch):
    """Its files are pickles. Those that are not the known ones are never opened."""
    cifar = {"kind": "torchvision", "name": "CIFAR10", "P": 30, "labels": {"one_vs_rest": 3}}
    place = folder / "data/cifar-10-batches-py"
    place.mkdir(parents=True)
    known = torchvision.torchvision_sets().CIFAR10
    for name in ["batches.meta", *(batch for batch, _ in known.train_list + known.test_list)]:
        batch = {
            "data": np.full((20, 3072), 7, np.uint8),
            "labels": [k % 10 for k in range(20)],
            "label_names": list("abcdefghij"),
        }
        (place / name).write_bytes(pickle.dumps(batch))
    assert "task.folder = 'data'; accepted: a folder in which torchvision finds CIFAR10, or download: true" in told(cifar)

    def sums(pairs):
        return [[name, hashlib.md5((place / name).read_bytes()).hexdigest()] for name, _ in pairs]

    monkeypatch.setattr(known, "train_list", sums(known.train_list))
    monkeypatch.setattr(known, "test_list", sums(known.test_list))
    monkeypatch.setattr(known, "meta", known.meta | {"md5": sums([("batches.meta", "")])[0][1]})
    task = make_task(cifar, seed=1)
    assert (task.x.shape, task.x_test.shape) == ((30, 3072), (20, 3072))
    assert (task.y == 1).sum() == 3


def configuration(task=FILE, gates=None, **more):
    gates = gates or {"kind": "random", "M": 3}
    values = {"task": task, "gates": gates, "network": {"L": 1, "sigma": 1.0}, "methods": {"gp": {}}, "draws": 2} | more
    return {"experiments": {"mine": {"assumed": values}}, "figures": {}}


def told(*parts):
    with pytest.raises(ConfigError) as error:
        read_config(configuration(*parts))
    return str(error.value)


CLASSES = {"path": "classes.npz"}
WRONG = {
    "no such file": ({"path": "dta.npz"}, "task.path = 'dta.npz'; accepted: a file that is there; did you mean 'data.npz'?"),
    "unknown format": ({"path": "data.txt"}, "accepted: a file whose name ends in .npz, .csv, .nc"),
    "not what it says": ({"path": "text.npz"}, "task.path = 'text.npz'; accepted: a .npz file; this one can't be read"),
    "no labels": ({"path": "gates.npz"}, "task.path = 'gates.npz'; accepted: a file with x; this one has gates"),
    "objects": ({"path": "objects.npz"}, "y holds Python objects, which are not unpickled"),
    "NaN": ({"path": "nan.npz"}, "accepted: finite numbers; x has 1 that are missing, NaN or infinite, the first in row 7"),
    "shapes": ({"path": "short.npz"}, "a label for each sample; y has 119 for 120 inputs"),
    "classes of several outputs": ({"path": "wide.npz", "labels": "classes"}, "task.labels = 'classes'; accepted: regression or sign, since there are 2 labels for each sample"),
    "one of several outputs": ({"path": "wide.npz", "labels": {"one_vs_rest": 1}}, "accepted: regression or sign, since there are 2 labels for each sample"),
    "signs of several outputs": ({"path": "wide.npz", "labels": "sign"}, "accepted: regression, since there are not two but 120 different labels: "),
    "0 and 1 of several outputs": ({"path": "indicators.npz"}, "task.labels is missing; accepted: sign, if they are classes, or regression, if they are numbers, since there are two labels: 0 and 1"),
    "texts of several outputs": ({"path": "names.npz"}, "one class for each sample, or several numbers; y has texts of the shape (120, 2)"),
    "other outputs in the test set": ({"path": "uneven.npz"}, "labels of as many outputs; y has the shape (120, 2), y_test (120,)"),
    "no such target of several": ({"path": "data.csv", "target": ["sise", "weight"]}, "task.target = 'sise'; accepted: a column of data.csv: row, size, constant, weight, animal; did you mean 'size'?"),
    "texts among several targets": ({"path": "data.csv", "target": ["size", "animal"]}, "numbers; column animal has entries such as 'cat'"),
    "target among inputs": ({"path": "data.csv", "target": ["size", "weight"], "inputs": ["row", "size"]}, "accepted: input columns beside size, weight, which hold the labels"),
    "no test labels": ({"path": "half.npz"}, "both x_test and y_test, or none of them"),
    "other dimension": ({"path": "narrow.npz"}, "inputs of one dimension; x has 4, x_test 2"),
    "too many": ({"P": 100}, "task.P + P_t = 140; accepted: at most 120, the samples in data.npz"),
    "no size": ({"P": None}, "task.P is missing; accepted: how many of the 120 samples of data.npz are taken"),
    "subset too large": ({"path": "sets.npz", "P": 90}, "task.P = 90; accepted: at most 80, the samples in x of sets.npz"),
    "three classes": (CLASSES, "task.labels is missing; accepted: classes, for an output each, or {one_vs_rest: CLASS}, since there are not two but 3 classes: cat, dog, eel"),
    "texts as numbers": (CLASSES | {"labels": "regression"}, "task.labels = 'regression'; accepted: sign, classes or {one_vs_rest: CLASS}, since labels are texts such as 'cat'"),
    "unknown class": (CLASSES | {"labels": {"one_vs_rest": "dgo"}}, "accepted: one of the classes cat, dog, eel; did you mean 'dog'?"),
    "unknown reading": ({"labels": "sgn"}, "mine.task.labels (under assumed) = 'sgn'; accepted: regression, sign, classes or keys and values"),
    "few of a class": (CLASSES | {"labels": {"one_vs_rest": "eel"}, "P_t": 5}, "task.P_t = 5; accepted: at least 6, since class 'eel' has 20 of 120 samples"),
    "few of a class with an output": (CLASSES | {"labels": "classes", "P_t": 5}, "task.P_t = 5; accepted: at least 6, since class 'eel' has 20 of 120 samples"),
    "no such column": ({"path": "data.csv", "target": "anmal"}, "task.target = 'anmal'; accepted: a column of data.csv: row, size, constant, weight, animal; did you mean 'animal'?"),
    "no such input": ({"path": "data.csv", "target": "animal", "inputs": ["row", "sise"]}, "task.inputs = 'sise'; accepted: a column of data.csv: row, size, constant, weight, animal; did you mean 'size'?"),
    "no target": ({"path": "data.csv"}, "task.target is missing; accepted: a column of data.csv: row, size"),
    "nan in a column": ({"path": "nan.csv"}, "column size has 1 that are missing, NaN or infinite, the first in row 3 below the header"),
    "gap in a column": ({"path": "gap.csv"}, "column size has 1 that are missing, NaN or infinite, the first in row 3 below the header"),
    "text in a column": ({"path": "odd.csv"}, "numbers; column size has entries such as 'n/a', the first in row 3 below the header"),
    "gap in labels": ({"path": "unlabelled.csv"}, "a label for each sample; column y has none in row 3 below the header"),
    "one class": ({"path": "same.csv"}, "task.path = 'same.csv'; accepted: labels of at least two classes; all are 'cat'"),
    "0 and 1": ({"path": "binary.npz"}, "task.labels is missing; accepted: sign, if they are classes, or regression, if they are numbers, since there are two labels: 0 and 1"),
    "text column": ({"path": "data.csv", "target": "size"}, "accepted: numbers; column animal has entries such as 'cat'"),
    "columns of arrays": ({"target": "y"}, "task.target = 'y'; accepted: nothing, since columns are those of .csv files"),
    "another checksum": ({"sha256": "00"}, "task.sha256 = '00'; accepted: "),
}  # fmt: skip


@pytest.fixture
def damaged(folder):
    data = np.load("data.npz")
    x, y = data["x"], data["y"]
    np.savez("objects.npz", x=x, y=np.array([{}] * N))
    np.savez("binary.npz", x=x, y=np.arange(N) % 2)
    for name, entry, label, other in (
        ("nan", "nan", "cat", "dog"),
        ("gap", "", "cat", "dog"),
        ("odd", "n/a", "cat", "dog"),
        ("unlabelled", "1", "", "dog"),
        ("same", "1", "cat", "cat"),
    ):
        lines = ["size,weight,y", *[f"{i},{i % 7},{('cat', other)[i % 2]}" for i in range(N)]]
        lines[3] = f"{entry},3,{label}"
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")
    np.savez("nan.npz", x=np.where((np.arange(N) == 7)[:, None] & (np.arange(4) == 1), np.nan, x), y=y)
    np.savez("short.npz", x=x, y=y[1:])
    np.savez("wide.npz", x=x, y=np.stack([y, y], axis=1))
    np.savez("indicators.npz", x=x, y=np.eye(3)[np.arange(N) % 3])
    np.savez("names.npz", x=x, y=np.array([["cat", "dog"]] * N))
    np.savez("uneven.npz", x=x, y=np.stack([y, y], axis=1), x_test=x, y_test=y)
    np.savez("half.npz", x=x, y=y, x_test=x)
    np.savez("narrow.npz", x=x, y=y, x_test=x[:, :2], y_test=y)
    (folder / "text.npz").write_text("nothing")


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_with_a_file_is_named_before_anything_runs(case, damaged):
    changes, expected = WRONG[case]
    task = {key: value for key, value in (FILE | changes).items() if value is not None}
    found = told(task, {"kind": "local", "M": 3, "subsets": 1})
    assert found.startswith("The configuration has 1 problem:"), found
    assert expected in found


def test_sets_that_are_not_there_are_named_with_those_that_are(folder):
    assert "accepted: breast_cancer, diabetes, digits, iris, linnerud, wine; did you mean 'digits'?" in told(
        {"kind": "sklearn", "name": "digit", "P": 1, "P_t": 1}
    )
    assert "task.folder = 'data'; accepted: a folder with the unpacked IDX files, or download: true; data/KMNIST/raw/train-images-idx3-ubyte is missing" in told({"kind": "torchvision", "name": "KMNIST"})  # fmt: skip


def test_the_content_of_a_file_is_part_of_what_identifies_a_piece(folder):
    def pieces(**more):
        experiment = read_config(configuration(gates={"kind": "file", "path": "gates.npz"}, **more)).experiments["mine"]
        return experiment.curve("gp").pieces

    (before,) = pieces()
    assert before.points[0]["gates"]["M"] == 2
    json.dumps(before.points)
    os.utime("data.npz", (1, 1))
    os.utime("gates.npz", (1, 1))
    assert pieces() == (before,)
    swept = pieces(task={"kind": "file", "P": 60, "P_t": 40}, sweep={"task.path": ["data.npz", "data.nc"]})
    assert [piece.points[0]["task"]["path"] for piece in swept] == ["data.npz", "data.nc"]
    assert swept[0].points == before.points
    assert swept[1].points[0]["task"]["sha256"] != before.points[0]["task"]["sha256"]
    data = dict(np.load("data.npz"))
    data["y"][3] += 1
    np.savez("data.npz", **data)
    assert (pieces()[0].id, pieces()[0].gating) != (before.id, before.gating)


def test_a_job_refuses_a_file_that_has_changed_since_it_was_planned(folder):
    settled = REGISTRIES["task"].make(FILE).settled()
    np.savez("data.npz", x=np.ones((N, 2)), y=np.ones(N))
    with pytest.raises(InputError, match=r"task.sha256 = .*that of data.npz as it is now"):
        make_task(settled.spec(), seed=1)


def sample_of(spec, gates):
    """A `Sample` by way of what is stored."""
    task = make_task(spec, seed=1)
    gates = REGISTRIES["gates"].make(gates).settled(REGISTRIES["task"].make(spec)).spec()
    fitted = fit_gates(gates, task.x, seed=1)
    stored = unpack_gates(pack_gates({(0, 0): fitted}), 0, 0, gates)
    return Sample(unpack_task(pack_tasks({0: task}), 0), stored)


def test_gates_from_a_file_follow_their_samples(folder):
    sample = sample_of(FILE, {"kind": "file", "path": "gates.npz"})
    for g, chosen in zip((sample.g, sample.g_test), rows(sample.task), strict=True):
        assert np.array_equal(g, np.column_stack([chosen % 2, chosen % 3 == 0]))
    sample = sample_of({"kind": "file", "path": "sets.npz", "labels": "sign"}, {"kind": "file", "path": "gates.npz", "M": 1})
    assert np.array_equal(sample.g_test[:, 0], np.arange(80, 120) % 2)


def test_gates_from_a_function(folder):
    sample = sample_of(FILE, {"kind": "function", "path": "my_gates.py", "name": "my_gates"})
    assert np.array_equal(sample.g_test, sample.task.x_test[:, :3] > 0)
    assert sample_of(FILE, {"kind": "function", "path": "my_gates.py", "name": "counted", "M": 2}).g.shape == (60, 2)
    one, again = (sample_of(FILE, {"kind": "function", "path": "fitted.py", "name": "half", "M": 5}) for _ in range(2))
    assert one.g_test.shape == (40, 5)
    assert np.array_equal(one.g_test, again.g_test)


@pytest.mark.parametrize(("gates", "expected"), [
    ({"kind": "file", "path": "gate.npz"}, "gates.path = 'gate.npz'; accepted: a file that is there; did you mean 'gates.npz'?"),
    ({"kind": "file", "path": "data.npz"}, "gates.path = 'data.npz'; accepted: a file with gates; this one has x, y"),
    ({"kind": "file", "path": "gates.npz", "M": 3}, "gates.M = 3; accepted: at most 2, the gates in gates.npz"),
    ({"kind": "file", "path": "few.npz"}, "gates.path = 'few.npz'; accepted: a row for each of the 120 samples; it has 5"),
    ({"kind": "function", "path": "my_gate.py", "name": "f"}, "gates.path = 'my_gate.py'; accepted: a Python file that is there; did you mean 'my_gates.py'?"),
    ({"kind": "function", "path": "my_gates.py", "name": "my_gate"}, "a function of my_gates.py: my_gates, odd, counted, learned; did you mean 'my_gates'?"),
    ({"kind": "function", "path": "my_gates.py", "name": "learned"}, "gates.name = 'learned'; accepted: a function of x, or a function fit(x, rng) beside it that gives what learned gets as fitted"),
    ({"kind": "function", "path": "my_gates.py", "name": "odd"}, "gates.M is missing; accepted: the number of gates, since 64 Gaussian inputs don't tell it: odd of my_gates.py, line 6: ZeroDivisionError"),
    ({"kind": "function", "path": "broken.py", "name": "f"}, "accepted: a file that Python can run, line 2: NameError"),
])  # fmt: skip
def test_what_is_wrong_with_gates_is_named_before_anything_runs(gates, expected, folder):
    np.savez("few.npz", gates=np.ones((5, 2)))
    (folder / "broken.py").write_text("x = 1\ny = z\n")
    assert expected in told(FILE, gates)


def test_gates_by_row_need_a_task_with_rows(folder):
    task = {"kind": "mnist_parity", "P": 10, "P_t": 10}
    expected = "task.kind = 'mnist_parity'; accepted: file or sklearn or torchvision, for file gates"
    assert expected in told(task, {"kind": "file", "path": "gates.npz"})


def test_a_function_of_the_wrong_shape_is_named_by_the_job(folder):
    with pytest.raises(
        InputError, match=r"my_gates of my_gates.py gave the shape \(60, 3\) for x \(60, 4\); accepted: \(60, 2\)"
    ):
        sample_of(FILE, {"kind": "function", "path": "my_gates.py", "name": "my_gates", "M": 2}).g  # noqa: B018
