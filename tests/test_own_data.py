"""Tasks and gates from files and functions of the user's: what they give, and what each mistake is answered with."""

import json
import os
import struct

import numpy as np
import pytest
import xarray as xr

from ggdln.core.errors import ConfigError, InputError
from ggdln.core.kinds import REGISTRIES
from ggdln.experiments.packing import pack_gates, pack_tasks, unpack_gates, unpack_task
from ggdln.gates import fit_gates
from ggdln.observables import Sample
from ggdln.tasks import make_task, torchvision
from ggdln.workflow.config import read_config

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
        "def my_gates(x):\n    return x[:, :3] > 0\n\n\ndef odd(x):\n    return 1 / 0\n\n\ndef counted(x, M):\n    return x[:, :M] > 0\n"
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
    digits = make_task({"kind": "sklearn", "name": "digits", "P": 200, "P_t": 50, "labels": {"one_vs_rest": 3}}, seed=1)
    assert digits.x.shape == (200, 64)
    assert abs((digits.y == 1).sum() - 20) <= 1


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
    monkeypatch.setattr(torchvision, "fetch", lambda *where: asked.append(where))
    make_task(fashion | {"download": True}, seed=1)
    assert asked == []
    with pytest.raises(InputError, match="train-images-idx3-ubyte is missing"):
        make_task(fashion | {"download": True, "name": "KMNIST"}, seed=1)
    assert asked == [("KMNIST", "data")]


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
    "several outputs": ({"path": "wide.npz"}, "one label for each sample; y has the shape (120, 2)"),
    "no test labels": ({"path": "half.npz"}, "both x_test and y_test, or none of them"),
    "other dimension": ({"path": "narrow.npz"}, "inputs of one dimension; x has 4, x_test 2"),
    "too many": ({"P": 100}, "task.P + P_t = 140; accepted: at most 120, the samples in data.npz"),
    "no size": ({"P": None}, "task.P is missing; accepted: how many of the 120 samples of data.npz are taken"),
    "subset too large": ({"path": "sets.npz", "P": 90}, "task.P = 90; accepted: at most 80, the samples in x of sets.npz"),
    "three classes": (CLASSES, "task.labels is missing; accepted: {one_vs_rest: CLASS}, since there are not two but 3 classes: cat, dog, eel"),
    "texts as numbers": (CLASSES | {"labels": "regression"}, "task.labels = 'regression'; accepted: sign or {one_vs_rest: CLASS}"),
    "unknown class": (CLASSES | {"labels": {"one_vs_rest": "dgo"}}, "accepted: one of the classes cat, dog, eel; did you mean 'dog'?"),
    "unknown reading": ({"labels": "sgn"}, "mine.task.labels (under assumed) = 'sgn'; accepted: regression, sign or keys and values"),
    "few of a class": (CLASSES | {"labels": {"one_vs_rest": "eel"}, "P_t": 5}, "task.P_t = 5; accepted: at least 6, since class 'eel' has 20 of 120 samples"),
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
    assert "accepted: breast_cancer, diabetes, digits, iris, wine; did you mean 'digits'?" in told(
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
    ({"kind": "function", "path": "my_gates.py", "name": "my_gate"}, "a function of my_gates.py: my_gates, odd, counted; did you mean 'my_gates'?"),
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
