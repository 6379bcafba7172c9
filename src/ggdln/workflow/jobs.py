"""The jobs of a configuration: which file each one makes, from which others, and what it is predicted to cost.

The workflow takes the names of its files and its resources from here, and `workflow/plan.py` what a run will cost.
"""

import csv
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ggdln.workflow import costs
from ggdln.experiments.experiment import Chunk
from ggdln.core.identity import task_id

TASK_FILE = "results/data/{task}/draws_{draws}.nc"
GATES_FILE = "results/gates/{gating}/draws_{draws}_points_{points}.nc"
CURVE_FILE = "results/{method}/{curve}/draws_{draws}_points_{points}.nc"
RUNS_FILE = "results/runs/{curve}/draws_{draws}_points_{points}_runs_{runs}.nc"

RULES = {
    "gp": "solve_gp",
    "theory": "solve_theory",
    "gd": "average_runs",
    "relu": "average_runs",
    "langevin": "sample_chains",
    "posterior": "sample_chains",
}
"""The rule that makes the file of a curve, by method."""


@dataclass(frozen=True)
class Job:
    """A job: its rule, the file it makes, the files of other jobs that it reads, and the terms of its cost."""

    rule: str
    output: str
    inputs: tuple
    terms: costs.Terms

    @property
    def cost(self):
        return self.terms.cost(self.rule)

    @property
    def benchmark(self):
        """Path of its benchmark file below the folder `benchmarks`."""
        stage, *rest = Path(self.output).with_suffix(".tsv").parts[1:]
        if self.rule in ("average_runs", "sample_chains", "collect_figure", "draw_figure"):
            rest.insert(0, stage)
        if self.rule == "judge_claim":
            rest = [part for part in (stage, *rest) if part != "claims"]
        return str(Path(self.rule, *rest))


class Jobs:
    """All jobs of a configuration."""

    def __init__(self, config):
        self.config = config
        self.curves, self.single, self.gatings, self.tasks, self.runs_per_job = {}, {}, {}, {}, {}
        self._gating_of, self._points, self._costs, self._task_ids = {}, {}, {}, {}
        for experiment in config.experiments.values():
            for curve in experiment.curves():
                # Identifiers are hashes of whole sweeps and are taken once. Single runs have one apart from their average.
                of_runs = curve.of_runs()
                name, single, gating = curve.id, of_runs.id, curve.gating_id
                self.curves |= {name: curve, single: of_runs}
                self.single[name] = single
                self.runs_per_job[name] = experiment.runs_per_job
                self._gating_of |= {name: gating, single: gating}
                self.gatings[gating] = curve
        for gating, curve in self.gatings.items():
            points = self._points[gating] = curve.outer_points()
            for point in points:
                self.tasks[self._task_id(point["task"], curve.seed)] = point["task"]

    def gating_of(self, curve):
        """Identifier of the gates of the curve of this name."""
        return self._gating_of[curve]

    def points(self, gating):
        """Parameters at the outer points of a gating, laid out once."""
        return self._points[gating]

    def task_files(self, gating, chunk):
        """The files with the tasks of a chunk's points."""
        points, seed = self._points[gating], self.gatings[gating].seed
        tasks = dict.fromkeys(self._task_id(points[p]["task"], seed) for p in chunk.points)
        return [TASK_FILE.format(task=task, draws=f"{chunk.first_draw}-{chunk.last_draw}") for task in tasks]

    def run_blocks(self, curve):
        """The blocks of runs that the curve of this name averages, as spans."""
        total, block = self.curves[curve].settings["runs"], self.runs_per_job[curve]
        return [f"{first}-{min(first + block, total)}" for first in range(0, total, block)]

    def terms(self, rule, **wildcards):
        """Terms of the cost of a job, from its rule and wildcards."""
        if rule == "prepare_task":
            return costs.of_task(self.tasks[wildcards["task"]], len(_span(wildcards["draws"])))
        if rule in ("collect_figure", "draw_figure"):
            return costs.of_figure(len(self.curve_files(wildcards["figure"])))
        if rule == "judge_claim":
            return costs.of_figure(len(self.claim_files(wildcards["claim"])))
        chunk = chunk_of(wildcards["draws"], wildcards["points"])
        name = wildcards["gating"] if rule == "fit_gates" else wildcards["curve"]
        if name not in self._costs:
            curve = self.gatings[name] if rule == "fit_gates" else self.curves[name]
            self._costs[name] = costs.CurveCosts(curve, self.config.machine["memory_mb"])
        return self._costs[name].of_chunk(rule, chunk, len(_span(wildcards.get("runs", "0-0"))))

    @cache  # noqa: B019 - there is one of these in a process
    def curve_files(self, figure):
        """The files with the curves that a figure shows."""
        return self._files(self.config.experiments_of(figure))

    @cache  # noqa: B019
    def claim_files(self, claim):
        """The files with the curves that a claim looks at beyond those of its figure."""
        return self._files(self.config.experiments_of_claim(claim, beyond_figure=True))

    def _files(self, experiments):
        files = []
        for experiment in experiments:
            for curve in experiment.curves():
                name = curve.id  # a hash of the whole sweep, so once for all chunks
                for draws, points in spans(experiment, curve):
                    files.append(CURVE_FILE.format(method=curve.method, curve=name, draws=draws, points=points))
        return list(dict.fromkeys(files))  # two variants may be the same in a small run

    def of_figure(self, figure):
        """All jobs that a figure needs: output -> Job, in an order in which they can be done."""
        jobs, run = self._curve_jobs(self.config.experiments_of(figure)), f"{self.config.run}/" if self.config.run else ""
        data = f"results/{run}{figure}.nc"
        terms = self.terms("collect_figure", figure=figure)
        jobs[data] = Job("collect_figure", data, tuple(self.curve_files(figure)), terms)
        picture = f"figures/{run}{figure}.pdf"
        jobs[picture] = Job("draw_figure", picture, (data,), terms)
        return jobs

    def of_claims(self):
        """All jobs that the verdicts need beyond those of the figures."""
        jobs, run = {}, f"{self.config.run}/" if self.config.run else ""
        for claim, content in self.config.claims.items():
            jobs |= self._curve_jobs(self.config.experiments_of_claim(claim))
            output = f"results/{run}claims/{claim}.json"
            inputs = (f"results/{run}{content['figure']}.nc", *self.claim_files(claim))
            jobs[output] = Job("judge_claim", output, inputs, self.terms("judge_claim", claim=claim))
        for figure in self.config.figures:
            for output in self.of_figure(figure):
                jobs.pop(output, None)
        return jobs

    def _curve_jobs(self, experiments):
        jobs = {}
        for experiment in experiments:
            for curve in experiment.curves():
                names = curve.id, curve.of_runs().id
                for draws, points in spans(experiment, curve):
                    self._add_curve(jobs, curve.method, *names, draws, points)
        return jobs

    def _add_curve(self, jobs, method, name, single, draws, points):
        gating = self._gating_of[name]

        def add(rule, output, inputs, **wildcards):
            if output not in jobs:
                jobs[output] = Job(rule, output, tuple(inputs), self.terms(rule, draws=draws, **wildcards))
            return output

        tasks = self.task_files(gating, chunk_of(draws, points))
        for task in tasks:
            add("prepare_task", task, (), task=Path(task).parent.name)
        where = {"draws": draws, "points": points}
        gates = add("fit_gates", GATES_FILE.format(gating=gating, **where), tasks, gating=gating, points=points)
        inputs = [*tasks, gates]
        rule = RULES[method]
        if rule == "average_runs":
            for runs in self.run_blocks(name):
                output = RUNS_FILE.format(curve=single, runs=runs, **where)
                inputs.append(add("train_networks", output, (*tasks, gates), curve=single, points=points, runs=runs))
        output = CURVE_FILE.format(method=method, curve=name, **where)
        add(rule, output, inputs, curve=name, points=points)

    def _task_id(self, task, seed):
        # A sweep of the gates has the same task at every point, and the hash is the slow part.
        key = repr((task, seed))
        if key not in self._task_ids:
            self._task_ids[key] = task_id(task, seed)
        return self._task_ids[key]


def spans(experiment, curve):
    """Draws and points of each chunk, as they stand in the names of files."""
    for chunk in experiment.chunks(curve):
        yield f"{chunk.first_draw}-{chunk.last_draw}", f"{chunk.first_point}-{chunk.last_point}"


def chunk_of(draws, points):
    """The chunk of two spans."""
    draws, points = _span(draws), _span(points)
    return Chunk(draws.start, draws.stop, points.start, points.stop)


def read_benchmarks(folder):
    """(rule, wildcards, measured values) of each benchmark file in a folder."""
    for path in sorted(Path(folder).glob("*/**/*.tsv")):
        values = read_benchmark(path)
        rule, *between, _ = path.relative_to(folder).parts
        if not values or rule not in costs.SECONDS:
            continue
        if rule in ("collect_figure", "draw_figure", "judge_claim"):
            what = "claim" if rule == "judge_claim" else "figure"
            yield rule, {"run": between[0] if between else "", what: path.stem}, values
            continue
        kind = {"prepare_task": "task", "fit_gates": "gating"}.get(rule, "curve")
        yield rule, {kind: between[-1]} | dict(re.findall(r"(draws|points|runs)_(\d+-\d+)", path.stem)), values


def read_benchmark(path):
    """Measured values of one job, the last time it ran: s, cpu_time, max_rss (MB). None if there are none."""
    try:
        with open(path) as file:
            row = list(csv.DictReader(file, delimiter="\t"))[-1]
        return {key: float(row[key]) for key in ("s", "cpu_time", "max_rss")}
    except (OSError, IndexError, KeyError, ValueError):
        return None


def _span(text):
    return range(*map(int, text.split("-")))
