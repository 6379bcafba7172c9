"""The comparison of two folders of results finds what has changed, and nothing else."""

import importlib.util
import json

import numpy as np
import pytest
import xarray as xr

EFFECT = {"value": 0.2, "error": 0.01, "meaning": "change"}


@pytest.fixture(scope="module")
def compare(request):
    spec = importlib.util.spec_from_file_location("compare_results", request.config.rootpath / "tests/compare_results.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def results(folder, change=None, figure="fig2"):
    """A folder with two curves and a claim, in which `change` may change the dataset of the theory."""
    folder.mkdir()
    dims, coords = ("draw", "N"), {"draw": [0, 1], "N": [10, 20, 30]}
    values = {
        "bias": (dims, np.geomspace(1e-3, 1, 6).reshape(2, 3)),
        "rank": (dims, np.full((2, 3), 7)),
        "residual": (dims, np.ones((2, 3))),
    }
    theory, trained = xr.Dataset(values, coords=coords), xr.Dataset({"bias": values["bias"]}, coords=coords)
    theory = theory if change is None else change(theory.copy(deep=True))
    for i, (name, dataset) in enumerate((("theory", theory), ("gd", trained))):
        dataset.to_netcdf(folder / f"{figure}.nc", mode="a" if i else "w", group=f"some/{name}")
    verdict = {"outcome": "partly", "holds": 7, "draws": 10, "effect": EFFECT}
    claim = {
        "id": "a",
        "figure": figure,
        "control": verdict | {"what": "b"},
        "sensitivity": [verdict | {"experiment": "c", "varied": ""}],
    }
    (folder / "claims.json").write_text(json.dumps({"claims": [claim | verdict]}))
    return folder


def altered(name, factor=1.0, add=0):
    def change(dataset):
        dataset[name][0, 0] = dataset[name][0, 0] * factor + add
        return dataset

    return change


def test_equal_folders_are_equal(compare, tmp_path, capsys):
    a, b = results(tmp_path / "a"), results(tmp_path / "b")
    assert compare.main([str(a), str(b), "--claims"]) == 0
    assert " 0 beyond" in capsys.readouterr().out


@pytest.mark.parametrize(("change", "figure", "found"), [
    (altered("bias", 1 + 2e-6), "fig2", ["bias"]),
    (altered("bias", 1 + 2e-6), "fig6", []),
    (altered("bias", 1 + 2e-3), "fig6", ["bias"]),
    (altered("bias", 1 + 1e-7), "fig2", []),
    (altered("bias", np.nan), "fig2", ["bias"]),
    (altered("rank", add=1), "fig2", ["rank"]),
    (altered("residual", 3), "fig2", []),
    (lambda data: data.drop_vars("bias"), "fig2", ["bias"]),
    (lambda data: data.isel(N=[0, 1]), "fig2", ["bias", "rank", "N"]),
    (lambda data: data.assign(more=data.bias), "fig2", []),
])  # fmt: skip
def test_a_changed_number_is_found(compare, tmp_path, change, figure, found):
    a, b = results(tmp_path / "a", figure=figure), results(tmp_path / "b", change, figure=figure)
    beyond = [row for row in compare.compare_figures(a, b) if not row.ok]
    assert {row.name for row in beyond} == set(found)
    assert {row.place for row in beyond} <= {f"{figure} some/theory"}
    assert compare.main([str(a), str(b), "--figures", figure]) == bool(found)


def test_small_values_count_and_rounding_does_not(compare):
    large = np.array([1.0, 1e-2, 1e-20])
    assert compare.relative_difference(large, large * [1, 1.01, 1]) == pytest.approx(0.01, rel=0.02)
    assert compare.relative_difference(large, large * [1, 1, 100]) < 1e-12


def test_a_missing_figure_or_group_is_found(compare, tmp_path):
    a, b = results(tmp_path / "a"), results(tmp_path / "b")
    xr.Dataset().to_netcdf(b / "fig2.nc", mode="w")
    assert [row.remark for row in compare.compare_figures(a, b)] == ["missing", "missing"]
    (b / "fig2.nc").unlink()
    assert [row.ok for row in compare.compare_figures(a, b)] == [False]


@pytest.mark.parametrize(("change", "beyond"), [
    ({}, []),
    ({"effect": EFFECT | {"value": 0.2001}}, []),
    ({"effect": EFFECT | {"value": 0.201}}, ["effect"]),
    ({"effect": None}, ["effect"]),
    ({"holds": 8}, ["verdict"]),
    ({"outcome": "holds"}, ["verdict"]),
])  # fmt: skip
def test_verdicts_are_compared_in_both_forms(compare, tmp_path, change, beyond):
    a, b = results(tmp_path / "a"), results(tmp_path / "b")
    content = json.loads((a / "claims.json").read_text())
    for part in (content["claims"][0], content["claims"][0]["control"], *content["claims"][0]["sensitivity"]):
        part["verdict"] = "holds in 7 of 10"
        del part["outcome"]
    (a / "claims.json").write_text(json.dumps(content))
    content = json.loads((b / "claims.json").read_text())
    content["claims"][0]["sensitivity"][0] |= change
    (b / "claims.json").write_text(json.dumps(content))
    rows = [row for row in compare.compare_claims(a, b) if not row.ok]
    assert [row.name for row in rows] == beyond
    assert {row.place for row in rows} <= {"claim a, c"}
