"""Odd surroundings: locale, time zone, umask, names of folders and a wrong clock change no number."""

import json
import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from helpers import small_project

ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
"""Text is ASCII unless a program says otherwise."""

PROGRAM = """
import json, sys
import numpy as np, xarray as xr
import ggdln
from ggdln.core.identity import digest
from ggdln.experiments import store
from ggdln.workflow.config import read_config
from ggdln.workflow.files import load

config = read_config(load(["my settings.yaml"]))
task = ggdln.make_task({"kind": "file", "path": "my data.csv", "target": "größe", "P": 20, "P_t": 10, "labels": "sign"}, seed=1)
gates = ggdln.fit_gates({"kind": "random", "M": 3}, task.x, seed=1)
solution = ggdln.solve(task.x, gates(task.x), task.y, width=20, temperature=0.1)
solution.save("solution.nc")
mean, variance = ggdln.load("solution.nc").predict(task.x_test, gates(task.x_test))
store.write(xr.Dataset({"mean": ("test", mean)}), "my result.nc", provenance={"caption": config.figures["mine"].caption})
kept = store.read("my result.nc")
print(json.dumps([digest(kept), kept.attrs["caption"], variance.tolist(), task.notes["class_name"][1].tolist()]))
"""

CONFIG = """
experiments:
  mine:
    assumed:
      task: {kind: file, path: my data.csv, target: größe, P: 20, P_t: 10, labels: sign}
      gates: {kind: random}
      network: {L: 1, sigma: 1.0}
      sweep: {gates.M: [2, 3]}
      methods: {gp: {}}
      draws: 1
figures:
  mine:
    caption: "Größe über Σ – ıİ"
    size: [3.5, 2.5]
    mosaic: [a]
    panels:
      a: {kind: curves, series: [{experiment: mine, method: gp}], quantity: bias, x: M}
"""


def told(folder, umask=0o022, **variables):
    """What the program prints in these surroundings."""
    folder.mkdir()
    lines = [f"{i % 7},{i % 5},{'klein' if i % 3 else 'groß'}" for i in range(60)]
    (folder / "my data.csv").write_text("\n".join(["länge,breite,größe", *lines]), encoding="utf-8")
    (folder / "my settings.yaml").write_text(CONFIG, encoding="utf-8")
    (folder / "program.py").write_text(PROGRAM, encoding="utf-8")
    plain = {name: value for name, value in os.environ.items() if name not in ("LANG", "LANGUAGE", "TZ", *ASCII)}
    done = subprocess.run(
        [sys.executable, "program.py"],
        cwd=folder,
        env=plain | {"LC_ALL": "C.UTF-8", "PYTHONIOENCODING": "utf-8"} | variables,
        umask=umask,
        capture_output=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def available(locale):
    """Whether the C library knows a locale."""
    known = (
        subprocess.run(["locale", "-a"], capture_output=True, text=True, check=False).stdout.lower().replace("-", "").split()
    )
    return locale.lower().replace("-", "") in known


@pytest.fixture(scope="module")
def usual(tmp_path_factory):
    return told(tmp_path_factory.mktemp("usual") / "folder")


def test_the_folder_may_have_any_name(usual, tmp_path):
    assert usual[1] == "Größe über Σ – ıİ"
    assert told(tmp_path / "ein Verzeichnis, größer (数)", LC_ALL="C", TZ="Pacific/Kiritimati") == usual


def test_files_are_utf_8_where_text_is_ascii(usual, tmp_path):
    assert told(tmp_path / "folder", **ASCII) == usual


@pytest.mark.slow
@pytest.mark.parametrize("locale", ["de_DE.UTF-8", "tr_TR.UTF-8", "de_DE.ISO-8859-1"])
def test_locales_with_other_letters_and_decimal_points(locale, usual, tmp_path):
    if not available(locale.replace("ISO-8859-1", "iso88591")):
        pytest.skip(f"the locale {locale} is not installed")
    assert told(tmp_path / "folder", LC_ALL=locale, PYTHONUTF8="0", TZ="Asia/Kathmandu") == usual


def test_files_have_the_rights_that_the_umask_leaves(usual, tmp_path):
    assert told(tmp_path / "folder", umask=0o077) == usual
    made = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "folder").glob("*.nc")}
    assert made == {"solution.nc": 0o600, "my result.nc": 0o600}


def run(folder, *targets, umask=0o022, **variables):
    command = [sys.executable, "-m", "snakemake", "--cores", "2", *targets]
    return subprocess.run(
        command, cwd=folder, env=os.environ | variables, umask=umask, capture_output=True, encoding="utf-8", timeout=600
    )


@pytest.mark.long
def test_a_workflow_in_odd_surroundings_gives_the_same_figure(tmp_path):
    """Folder, locale, time zone and umask at once; the figure has the same bytes."""
    pictures = []
    odd = {"umask": 0o077, "TZ": "Pacific/Kiritimati", "LC_ALL": "C"}
    for name, surroundings in (("plain", {}), ("ein Verzeichnis größer", odd)):
        (tmp_path / name).mkdir()
        folder = small_project(tmp_path / name, experiments={"gated": {"reduced": {"sweep": {"gates.M": [4]}}}})
        result = run(folder, "--", "figures/gated.pdf", **surroundings)
        assert result.returncode == 0, result.stdout + result.stderr
        pictures.append((folder / "figures/gated.pdf").read_bytes())
    assert pictures[0] == pictures[1]


def shift(paths, seconds):
    for path in paths:
        os.utime(path, (time.time() + seconds,) * 2)


@pytest.mark.long
def test_a_clock_that_was_set_back_reruns_at_most_once(tmp_path):
    """Results, then all files from tomorrow: a run ends, changes nothing, and the one after it has nothing to do."""
    folder = small_project(tmp_path, experiments={"gated": {"reduced": {"sweep": {"gates.M": [4]}}}})
    target = ("--", "figures/gated.pdf")
    assert run(folder, *target).returncode == 0
    picture = (folder / "figures/gated.pdf").read_bytes()
    results = [path for path in (folder / "results").rglob("*") if path.is_file()] + [*(folder / "figures").glob("gated.*")]
    sources = [path for part in ("config", "src", "workflow") for path in (folder / part).rglob("*") if path.is_file()]
    for paths in (results, sources, [*sources, *results], [Path(results[0])]):
        shift(paths, 86400)
        result = run(folder, *target)
        assert result.returncode == 0, result.stdout + result.stderr
        assert (folder / "figures/gated.pdf").read_bytes() == picture
        again = run(folder, "--dry-run", *target)
        assert "Nothing to be done" in again.stdout + again.stderr
