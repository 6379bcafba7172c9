# Needs the configuration. Makes no files: it checks the configuration and says what each file is made from.

import sys
from dataclasses import asdict
from pathlib import Path

import yaml

ROOT = Path(workflow.basedir)
sys.path.insert(0, str(ROOT / "src"))

from ggdln.config import read_config
from ggdln.errors import ConfigError
from ggdln.experiment import Chunk
from ggdln.identity import task_id
from ggdln.imports import modules_of

with open(ROOT / "workflow/schemas/config.schema.yaml") as file:
    SCHEMA = yaml.safe_load(file)
try:
    CONFIG = read_config(config, SCHEMA)
except ConfigError as error:
    sys.exit(str(error))

CURVES, GATINGS, TASKS, RUNS_PER_JOB = {}, {}, {}, {}
for experiment in CONFIG.experiments.values():
    for curve in experiment.curves():
        CURVES[curve.id] = curve
        CURVES[curve.of_runs().id] = curve.of_runs()
        RUNS_PER_JOB[curve.id] = experiment.runs_per_job
        GATINGS[curve.gating_id] = curve
        for point in curve.outer_points():
            TASKS[task_id(point["task"], curve.seed)] = point["task"]


wildcard_constraints:
    figure="|".join(CONFIG.figures),
    method="[a-z]+",
    task="[a-z_]+-[0-9a-f]{10}",
    gating="[a-z_]+-[0-9a-f]{10}",
    curve="[a-z_]+-[0-9a-f]{10}",
    draws="[0-9]+-[0-9]+",
    points="[0-9]+-[0-9]+",
    runs="[0-9]+-[0-9]+",


RUN = f"{CONFIG.run}/" if CONFIG.run else ""
FIGURE_PDF = f"figures/{RUN}{{figure}}.pdf"
FIGURE_PNG = f"figures/{RUN}{{figure}}.png"
FIGURE_DATA = f"results/{RUN}{{figure}}.nc"
TASK_FILE = "results/data/{task}/draws_{draws}.nc"
GATES_FILE = "results/gates/{gating}/draws_{draws}_points_{points}.nc"
CURVE_FILE = "results/{method}/{curve}/draws_{draws}_points_{points}.nc"
RUNS_FILE = "results/runs/{curve}/draws_{draws}_points_{points}_runs_{runs}.nc"


def span(first, last):
    return f"{first}-{last}"


def chunk_of(wildcards):
    draws = map(int, wildcards.draws.split("-"))
    points = map(int, wildcards.points.split("-"))
    return Chunk(*draws, *points)


def code(script):
    """The script of a rule and the library modules it imports."""
    path = ROOT / "workflow/scripts" / f"{script}.py"
    return [str(p.relative_to(ROOT)) for p in modules_of(path, [ROOT / "src", path.parent])]


def task_files(curve, chunk):
    """The files with the tasks of a chunk's points."""
    points = curve.outer_points()
    tasks = dict.fromkeys(task_id(points[p]["task"], curve.seed) for p in chunk.points)
    draws = span(chunk.first_draw, chunk.last_draw)
    return [TASK_FILE.format(task=task, draws=draws) for task in tasks]


def curve_inputs(wildcards):
    """The tasks and gates that a curve is computed from."""
    curve = CURVES[wildcards.curve]
    return {
        "tasks": task_files(curve, chunk_of(wildcards)),
        "gates": GATES_FILE.format(gating=curve.gating_id, draws=wildcards.draws, points=wildcards.points),
    }


def run_files(wildcards):
    """The blocks of runs that a curve averages."""
    curve = CURVES[wildcards.curve]
    total, block = curve.settings["runs"], RUNS_PER_JOB[wildcards.curve]
    blocks = [span(first, min(first + block, total)) for first in range(0, total, block)]
    return expand(RUNS_FILE, curve=curve.of_runs().id, draws=wildcards.draws, points=wildcards.points, runs=blocks)


def curve_files(figure):
    """The files with the curves that a figure shows."""
    files = []
    for experiment in CONFIG.experiments_of(figure):
        for curve in experiment.curves():
            for chunk in experiment.chunks(curve):
                draws = span(chunk.first_draw, chunk.last_draw)
                points = span(chunk.first_point, chunk.last_point)
                files.append(CURVE_FILE.format(method=curve.method, curve=curve.id, draws=draws, points=points))
    return files


def figure_files():
    return [FIGURE_PDF.format(figure=figure) for figure in CONFIG.figures]


def shown_experiments(figure):
    """Parameters of the experiments of a figure."""
    return {experiment.name: asdict(experiment) for experiment in CONFIG.experiments_of(figure)}


onsuccess:
    made = [path for path in figure_files() if Path(path).exists()]
    print("Figures:", *(f"  {path}" for path in made), sep="\n")
