"""What several tests share: small samples, the configuration with changes, and a copy of the project that Snakemake runs on."""

import copy
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import yaml

from ggdln.gates import FittedGates, fit_gates
from ggdln.observables import Sample
from ggdln.tasks import TaskData, make_task
from ggdln.workflow.files import default_files, load

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tools"))

from workspace import copy_project

QUICK = ("--configfile", "config/quick.yaml")

TEACHER = {"kind": "noisy_teacher", "N0": 4, "P": 20, "P_t": 10, "N_T": 20, "gamma": 0.1, "epsilon": 0.1}
"""A task that is made in no time."""


def task_of(x, y=None, x_test=None, y_test=None, **more):
    """A `TaskData` of these arrays; labels that aren't given are 0, and without test inputs the training inputs are tested."""
    x = np.asarray(x, dtype=float)
    x_test = x if x_test is None else np.asarray(x_test, dtype=float)
    y, y_test = (np.zeros(len(inputs)) if given is None else np.asarray(given) for given, inputs in ((y, x), (y_test, x_test)))
    return TaskData(x=x, y=y, x_test=x_test, y_test=y_test, **more)


def sample_of(task=None, gates=None, *, seed=0, draw=0):
    """A `Sample`: of a task and gates by their parameters, or of a `TaskData` and `FittedGates` as they are."""
    task = task if isinstance(task, TaskData) else make_task(task or TEACHER, seed=seed, draw=draw)
    if not isinstance(gates, FittedGates):
        gates = fit_gates(gates or {"kind": "random", "M": 3, "b": 0.0}, task.x, seed=seed, draw=draw, subtask=task.subtask)
    return Sample(task, gates)


def raw_configuration(*more, root=ROOT):
    """The configuration at the paper's sizes, with further files of config/, as nested dictionaries."""
    return load([*default_files(root), *(root / "config" / name for name in more)])


def changed(raw, path, value):
    """A copy of nested dictionaries with another value at a path such as experiments/capacity/draws."""
    raw = copy.deepcopy(raw)
    node = raw
    *parents, last = path.split("/")
    for key in parents:
        node = node.setdefault(key, {})
    node[last] = value
    return raw


def snakemake(folder, *arguments):
    """Run Snakemake in a folder; what it printed and returned."""
    # The end of a run waits for the last of its looks at waiting jobs: seconds, for runs of seconds.
    command = [sys.executable, "-m", "snakemake", "--cores", "2", "--max-jobs-per-timespan", "1000/1s", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600)


def planned(folder, *arguments):
    """Rules that a dry-run would run, with the figures or files they would make."""
    result = snakemake(folder, "--dry-run", *arguments)
    assert result.returncode == 0, result.stdout + result.stderr
    jobs = re.findall(r"^(?:local)?rule (\w+):\n(?:    .*\n)*?    output: (.+)", result.stdout, re.M)
    rules = {}
    for rule, output in jobs:
        rules.setdefault(rule, set()).update(output.split(", "))
    return rules


def small_project(folder, **settings):
    """A copy of the project whose configuration is that of tests/data/small, with further settings in a file of their own."""
    copy_project(ROOT, folder)
    shutil.rmtree(folder / "config")
    shutil.copytree(ROOT / "tests/data/small", folder / "config")
    shutil.move(folder / "config/my_kinds.py", folder / "my_kinds.py")
    if settings:
        (folder / "config/claims/settings.yaml").write_text(yaml.safe_dump(settings))
    return folder


def append(path, text="\n# edited\n"):
    path.write_text(path.read_text() + text)


def rewrite(path, old, new):
    """Replace a text that stands in a file once."""
    text = path.read_text()
    assert text.count(old) == 1, (path, old)
    path.write_text(text.replace(old, new))
