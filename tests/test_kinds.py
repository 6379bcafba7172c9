"""Kinds: one file each, found by its name; those of the user's too. Rooms import in one direction, and torch only where needed."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import ROOT, changed

from ggdln.core.errors import ConfigError, InputError
from ggdln.core.kinds import REGISTRIES, add_file
from ggdln.experiments.variables import describe
from ggdln.workflow.config import read_config
from ggdln.workflow.stages import Stages

OWN = [(sort, name) for sort, registry in REGISTRIES.items() for name in registry.own()]


@pytest.fixture
def clean():
    """Forget the kinds that a test has added."""
    yield
    for registry in REGISTRIES.values():
        registry.added.clear()
    for name in [name for name in sys.modules if name.startswith("ggdln_kinds_")]:
        del sys.modules[name]


@pytest.mark.parametrize(("sort", "name"), OWN)
def test_a_kind_is_the_class_of_its_module(sort, name):
    registry = REGISTRIES[sort]
    cls = registry.get(name)
    assert (cls.kind_name(), cls.sort) == (name, sort)
    assert cls.__module__ == f"{registry.package}.{name}"
    assert issubclass(cls, registry.base)
    assert registry.file(name).read_text().startswith('"""')
    for field, told in cls.model_fields.items():
        assert told.description, field
    for variable, told in cls.variables.items():
        assert told.long_name, variable


def test_there_are_kinds_of_every_sort():
    assert {sort for sort, _ in OWN} == set(REGISTRIES)
    assert {"gp", "theory", "one_loop", "exact", "gd", "relu", "langevin", "posterior"} == set(REGISTRIES["method"].own())


def test_a_kind_is_made_again_from_its_plain_values():
    gates = REGISTRIES["gates"].make({"kind": "random", "M": 3})
    assert gates.spec() == {"kind": "random", "M": 3, "b": 0.0}
    assert REGISTRIES["gates"].make(gates.spec()) == gates


def test_unknown_kinds_and_parameters_are_named_with_a_near_miss():
    with pytest.raises(InputError, match=r"gates: got 'randm', accepted: file, .*; did you mean 'random'\?"):
        REGISTRIES["gates"].make({"kind": "randm", "M": 3})
    with pytest.raises(InputError, match=r"task.kind is missing; accepted: angles, "):
        REGISTRIES["task"].make({})
    with pytest.raises(InputError, match=r"gates.m = 3 is not a known key; accepted here: M, b"):
        REGISTRIES["gates"].make({"kind": "random", "m": 3})
    with pytest.raises(InputError, match=r"gates.M = '3'; accepted: a whole number >= 1"):
        REGISTRIES["gates"].make({"kind": "random", "M": "3"})


MINE = '''"""One of every sort."""

from typing import ClassVar

import numpy as np
from pydantic import Field

from ggdln.core.kinds import Variable
from ggdln.experiments.methods import Method
from ggdln.gates import Gates
from ggdln.observables import Observable
from ggdln.study.conditions import Condition
from ggdln.study.panels import OneCurve, Shown
from ggdln.tasks import Task, TaskData


class TwoClouds(Task):
    """Two clouds of points."""

    N0: int = Field(ge=1, description="Dimension of the inputs")
    P: int = Field(ge=2, description="Training samples")
    P_t: int = Field(ge=2, description="Test samples")

    def make(self, seed, draw):
        x = np.random.default_rng([seed, draw]).standard_normal((self.P + self.P_t, self.N0))
        y = np.sign(x[:, 0])
        return TaskData(x=x[: self.P], y=y[: self.P], x_test=x[self.P :], y_test=y[self.P :])


class Halves(Gates):
    """The first gates are open for one class."""

    def fit(self, x, *, subtask, seed, draw):
        return {"weights": np.eye(self.M, x.shape[1])}, {}

    def values(self, x, subtask, *, weights):
        return (x @ weights.T > 0).astype(float)


class Largest(Observable):
    """The largest entry of the kernel."""

    variables: ClassVar[dict] = {"largest_entry": Variable("largest entry of the kernel", "K")}

    def of(self, solution, sample):
        return {"largest_entry": solution.kernel(sample.task.x, sample.g).max()}


class Zero(Method):
    """Predicts nothing."""

    variables: ClassVar[dict] = {"guess": Variable("what is guessed")}

    def measure(self, point):
        return [{"guess": 0.0} for _ in point.networks]


class Stays(Condition):
    """Doesn't change."""

    def test(self, x, values, *, experiment, **series):
        return bool(np.ptp(values) == 0), 0.0

    def words(self):
        return "stays as it is"


class Bars(OneCurve):
    """Bars."""

    quantity: str = Field(description="Variable that is shown")

    def shown(self):
        return [Shown(self.experiment, self.method, {}, self.select, (self.quantity,))]
'''
RAW = {
    "experiments": {
        "mine": {
            "assumed": {
                "task": {"kind": "two_clouds", "N0": 3, "P": 10, "P_t": 5},
                "gates": {"kind": "halves", "M": 2},
                "network": {"L": 1, "N": 5},
                "methods": {"gp": {}, "zero": {}},
                "observables": ["predictor", "largest"],
                "draws": 2,
                "sweep": {"network.sigma": [0.5, 1.0]},
            }
        }
    },
    "figures": {
        "shown": {
            "caption": "",
            "size": [3, 2],
            "mosaic": ["a"],
            "panels": {"a": {"kind": "bars", "experiment": "mine", "method": "zero", "quantity": "guess"}},
        }
    },
    "claims": {
        "shown": {
            "statements": {
                "stays": {
                    "panel": "a",
                    "source": "ours",
                    "statement": "Nothing is guessed.",
                    "measured": {"experiment": "mine", "method": "zero", "variable": "guess", "along": "sigma"},
                    "condition": "stays",
                }
            }
        }
    },
}


def told(raw):
    with pytest.raises(ConfigError) as error:
        read_config(raw)
    return str(error.value)


@pytest.fixture
def mine(tmp_path, clean):
    file = tmp_path / "mine.py"
    file.write_text(MINE)
    return file


def test_a_file_of_the_users_adds_kinds_of_every_sort(mine):
    assert add_file(mine) == [
        ("task", "two_clouds"), ("gates", "halves"), ("observable", "largest"), ("method", "zero"), ("condition", "stays"), ("panel", "bars")
    ]  # fmt: skip
    for registry in REGISTRIES.values():
        assert registry.names() == [*registry.own(), *registry.added]
    assert REGISTRIES["task"].file("two_clouds") == mine
    assert describe("largest_entry").symbol == "K"
    add_file(mine)  # a second time, as every job does


def test_kinds_of_the_users_are_validated_and_suggested(mine):
    assert "did you mean" not in told(RAW)  # they aren't known yet
    raw = RAW | {"kinds": [str(mine)]}
    config = read_config(raw)
    assert config.experiments["mine"].task == {"kind": "two_clouds", "N0": 3, "P": 10, "P_t": 5, "shuffled": False}
    assumed = "experiments/mine/assumed"
    for path, value, text in (
        (f"{assumed}/task/kind", "two_cluds", "did you mean 'two_clouds'?"),
        (f"{assumed}/task/P", 1, "experiments.mine.task.P (under assumed) = 1; accepted: a whole number >= 2"),
        (f"{assumed}/gates/kind", "halfs", "did you mean 'halves'?"),
        (f"{assumed}/methods/zeros", {}, "did you mean 'zero'?"),
        (f"{assumed}/observables", ["larges"], "did you mean 'largest'?"),
        ("figures/shown/panels/a/kind", "bar", "did you mean 'bars'?"),
        ("figures/shown/panels/a/quantity", "gues", "did you mean 'guess'?"),
        ("claims/shown/statements/stays/condition", "stay", "did you mean 'stays'?"),
    ):
        assert text in told(changed(raw, path, value)), path


def test_jobs_of_kinds_of_the_users_know_their_file(mine, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = read_config(RAW | {"kinds": [str(mine)]})
    stages = Stages(config, ROOT)
    for job in stages.jobs(stages.table["make_report"].main).values():
        used = stages.code(job.stage, job.wildcards)["kinds"]
        assert (str(mine) in used) == (job.stage.name not in ("assemble_curve", "collect_claims")), job.stage.name


@pytest.mark.parametrize(("text", "said"), [
    ("x = (", r"kinds: .*mine\.py, line 1: SyntaxError"),
    ("\n\nx = 1 / 0\n", r"kinds: .*mine\.py, line 3: ZeroDivisionError: division by zero"),
    ("\nimport not_there\n", r"kinds: .*mine\.py, line 2: ModuleNotFoundError"),
    ("from ggdln.gates import Gates\n", r"kinds: .*mine\.py holds no kind; accepted: subclasses of "),
    ("from ggdln.core.kinds import Kind\nclass Mine(Kind):\n    'Mine.'\n", r"kinds: .*mine\.py holds no kind"),
    ("from ggdln.gates import Gates\nclass Random(Gates):\n    'Mine.'\n", r"has a gates 'random'; accepted: names that are not taken"),
])  # fmt: skip
def test_a_file_that_can_not_be_used_is_told_with_its_line(text, said, tmp_path, clean):
    file = tmp_path / "mine.py"
    file.write_text(text)
    with pytest.raises(ConfigError, match=said):
        add_file(file)
    assert "The configuration has 1 problem:" in told(RAW | {"kinds": [str(file)]})
    assert not any(registry.added for registry in REGISTRIES.values())


def test_two_files_can_not_have_a_kind_of_one_name(mine, tmp_path):
    other = tmp_path / "other.py"
    shutil.copy(mine, other)
    add_file(mine)
    with pytest.raises(ConfigError, match=r"other\.py has a task 'two_clouds'; accepted: names that are not taken"):
        add_file(other)


def run(program, **more):
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, **more)


def test_rooms_import_in_one_direction():
    result = subprocess.run(
        [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert result.returncode == 0, result.stdout + result.stderr


def test_importing_the_library_is_cheap():
    heavy = ("numpy", "scipy", "pydantic", "xarray", "torch", "sklearn", "matplotlib")
    result = run(f"import sys, ggdln; dir(ggdln); print([name for name in {heavy} if name in sys.modules])")
    assert result.stdout == "[]\n", result.stderr


WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None  # importing it fails
import ggdln

task = ggdln.make_task({"kind": "noisy_teacher", "N0": 4, "P": 20, "P_t": 10, "N_T": 20, "gamma": 0.1, "epsilon": 0.1}, seed=1)
gates = ggdln.fit_gates({"kind": "random", "M": 8}, task.x, seed=1)
g, g_test = gates(task.x), gates(task.x_test)
for solution in (ggdln.solve(task.x, g, task.y, 50, temperature=0.01), ggdln.gp_limit(task.x, g, task.y, depth=1, sigma=1.0)):
    print(ggdln.predictor_statistics(*solution.predict(task.x_test, g_test), task.y_test)["bias"] > 0)

from ggdln.core.kinds import REGISTRIES
for sort in ("task", "gates", "observable", "method"):
    for name in REGISTRIES[sort].names():
        REGISTRIES[sort].get(name)
try:
    ggdln.train_ensemble
except ModuleNotFoundError as error:
    print(error)
"""


def test_the_theory_works_without_torch():
    result = run(WITHOUT_TORCH)
    expected = "ggdln.train_ensemble needs torch, which is not installed: pip install 'ggdln[networks]'"
    assert result.stdout.splitlines() == ["True", "True", expected], result.stderr
