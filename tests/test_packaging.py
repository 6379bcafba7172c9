"""What is installed: one set of versions, a version that is the git tag, and a wheel that works without the repository.

lock.toml has the versions; pyproject.toml says what is asked for, constraints.txt and environment.yml are exported (test_docs
holds them to the lock).
"""

import importlib.util
import json
import re
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, distribution, version

import pytest
import yaml
from helpers import ROOT, copy_project
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

sys.path.append(str(ROOT / "tools"))

import lock

LOCKED = lock.read()
GROUPS = lock.asked()


def has(group):
    """Whether the packages of a group are installed here."""
    try:
        return all(version(Requirement(text).name) for text in GROUPS[group])
    except PackageNotFoundError:
        return False


INSTALLED = [group for group in GROUPS if has(group)]

# ---- The lock


def test_every_requirement_is_locked_and_pinned_nowhere_else():
    for requirement in (Requirement(text) for group in GROUPS.values() for text in group):
        assert canonicalize_name(requirement.name) in LOCKED
        assert not requirement.specifier


def test_the_lock_has_versions_alone():
    """No addresses and no hashes: they would be those of one index."""
    assert set(tomllib.loads(lock.LOCK.read_text())) == {"python", "packages"}
    for package in LOCKED.values():
        assert set(package) == {"version", "of"}
        assert re.fullmatch(r"[0-9a-z.]+", package["version"])
        assert package["of"]
        assert set(package["of"]) <= set(GROUPS)


@pytest.mark.parametrize("group", INSTALLED)
def test_what_a_group_brings_is_what_the_lock_says(group):
    """By what the installed packages say of each other: the lock was made for this pyproject.toml."""
    packages = {}
    for name in LOCKED:
        try:
            found = distribution(name)
        except PackageNotFoundError:
            continue
        packages[name] = found.version.split("+")[0], found.requires or []
    brought = lock.needed_by(GROUPS[group], packages)
    told = {name for name, package in LOCKED.items() if group in package["of"]}
    if group == "base":
        assert brought == told
    else:
        assert {name for name in brought if "base" not in LOCKED[name]["of"]} == told
    for name in brought:
        assert packages[name][0] == LOCKED[name]["version"]


def test_torch_moves_only_to_a_version_that_is_named():
    assert lock.pins_after(None)["torch"] == LOCKED["torch"]["version"]
    assert lock.pins_after([]) == {name: LOCKED[name]["version"] for name in lock.HELD}
    assert "numpy" not in lock.pins_after(["numpy"])
    assert lock.pins_after(["torch==9.0"])["torch"] == "9.0"
    with pytest.raises(SystemExit, match="torch is held"):
        lock.pins_after(["torch"])


def test_conda_gets_what_running_needs_in_the_same_versions():
    *conda, pip = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    assert conda == [f"python={lock.PYTHON}", "pip"]
    listed = {canonicalize_name(r.name): str(r.specifier) for r in map(Requirement, pip["pip"])}
    needed = [canonicalize_name(Requirement(text).name) for group in lock.RUNNING for text in GROUPS[group]]
    assert listed == {name: f"=={LOCKED[name]['version']}" for name in needed}


def test_running_needs_nothing_of_the_tests_or_of_the_site():
    makefile = (ROOT / "Makefile").read_text()
    stamps = dict(
        re.findall(
            r"^\$\(VENV\)/(ready[a-z-]*):.*\n(?:\t@.*\n)*(?:\t\$\(PYTHON\).*\n)?\t\$\(INSTALL\) -e '(.*)'", makefile, re.M
        )
    )
    assert stamps == {
        "ready": ".[networks,workflow]",
        "ready-test": ".[networks,workflow,test]",
        "ready-docs": ".[networks,workflow,docs]",
    }
    for target in ("figures", "quick", "report", "plan", "new"):
        assert re.search(rf"^{target}: setup$", makefile, re.M)


# ---- The wheel and its version


def load_benchmark(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / f"benchmarks/{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SNIPPET = """
import numpy as np, ggdln
task = ggdln.make_task({"kind": "mnist_parity", "P": 100, "P_t": 200}, seed=0)
gates = ggdln.fit_gates({"kind": "random", "M": 10, "b": 0.0}, task.x, seed=0)
solution = ggdln.solve(task.x, gates(task.x), task.y, width=100, temperature=0.01)
mean, variance = solution.predict(task.x_test, gates(task.x_test))
print(ggdln.predictor_statistics(mean, variance, task.y_test)["error_rate"])
try:
    ggdln.train_ensemble
except ModuleNotFoundError as error:
    print(error)
"""


@pytest.mark.slow
def test_the_wheel_works_without_the_repository_and_is_as_light_as_the_document_says(tmp_path):
    install = load_benchmark("install")
    found = install.install(install.wheel(tmp_path), "", tmp_path / "empty")
    assert {canonicalize_name(name) for name in found["packages"]} - {"ggdln"} == {
        name for name, package in LOCKED.items() if package["of"] == ["base"]
    }
    told = json.loads(install.run(tmp_path / "empty"))
    assert told["file"].startswith(str(tmp_path))
    assert told["residual"] < 1e-8
    assert not told["torch"]
    error_rate, message = install.run(tmp_path / "empty", SNIPPET).splitlines()
    assert 0.05 < float(error_rate) < 0.35
    assert message == "ggdln.train_ensemble needs torch, which is not installed: pip install 'ggdln[networks]'"
    # The tutorial on estimators, which says that it needs no repository.
    tutorial = (ROOT / "docs/tutorials/estimators.md").read_text()
    cells = re.findall(r"^```\{code-cell\} python\n(.*?)^```", tutorial, re.M | re.S)
    told = install.run(tmp_path / "empty", "import matplotlib; matplotlib.use('Agg')\n" + "\n".join(cells))
    assert float(re.search(r"^score ([\d.]+)", told)[1]) > 0.9
    size = sum(found["packages"].values())
    (documented,) = re.findall(r"^\| `pip install ggdln` \| \d+ \| (\d+) \|", install.OUTPUT.read_text(), re.M)
    assert size == pytest.approx(float(documented), rel=0.15)


def git(folder, *command):
    who = ["-c", "user.name=ggdln", "-c", "user.email=ggdln@example.org"]
    return subprocess.run(["git", *who, *command], cwd=folder, capture_output=True, text=True, check=True).stdout


def built(folder, kind, out):
    """The name of the wheel or sdist that is built from a folder."""
    command = [sys.executable, "-m", "build", f"--{kind}", "--outdir", out, folder]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return next(path for path in out.iterdir() if path.suffix == {"wheel": ".whl", "sdist": ".gz"}[kind])


@pytest.mark.slow
def test_the_version_is_the_tag_in_clones_sdists_and_archives(tmp_path):
    origin = tmp_path / "origin"
    origin.mkdir()
    copy_project(ROOT, origin)
    copied = built(origin, "wheel", tmp_path / "without_git")
    assert copied.name.startswith(
        f"ggdln-{tomllib.loads((ROOT / 'pyproject.toml').read_text())['tool']['setuptools_scm']['fallback_version']}-"
    )
    for command in ("init --quiet", "add --all", "commit --quiet -m first", "tag v3.2.1"):
        git(origin, *command.split())
    shallow = tmp_path / "shallow"
    git(tmp_path, "clone", "--quiet", "--depth", "1", f"file://{origin}", str(shallow))
    sdist = built(shallow, "sdist", tmp_path / "sdist")
    assert sdist.name == "ggdln-3.2.1.tar.gz"
    subprocess.run(["tar", "xzf", sdist, "-C", tmp_path], check=True)
    assert (tmp_path / "ggdln-3.2.1/config/figures.yaml").exists()
    wheel = built(tmp_path / "ggdln-3.2.1", "wheel", tmp_path / "from_sdist")
    assert wheel.name == "ggdln-3.2.1-py3-none-any.whl"
    (tmp_path / "archive").mkdir()
    git(origin, "archive", "-o", str(tmp_path / "archive.tar"), "HEAD")
    subprocess.run(["tar", "xf", tmp_path / "archive.tar", "-C", tmp_path / "archive"], check=True)
    assert built(tmp_path / "archive", "wheel", tmp_path / "from_archive").name == wheel.name
    (origin / "new.txt").touch()
    git(origin, "add", "new.txt")
    git(origin, "commit", "--quiet", "-m", "second")
    assert built(origin, "wheel", tmp_path / "later").name.startswith("ggdln-3.2.2.dev1-")
