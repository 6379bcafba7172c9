"""Compare the predicted costs of jobs with those measured, and fit the coefficients of each kind.

    python benchmarks/resources.py [FOLDER]           prediction and measurement, by the place of the coefficients
    python benchmarks/resources.py [FOLDER] --fit     the coefficients that fit best, to be pasted as `costs` of the kind

FOLDER has the benchmark files that the workflow writes, by default `benchmarks`. Files of experiments that neither the
configuration nor config/quick.yaml has are left out.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
from scipy.optimize import lsq_linear

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

from ggdln.core.kinds import REGISTRIES
from ggdln.workflow import costs
from ggdln.workflow.config import read_config
from ggdln.workflow.files import default_files, load
from ggdln.workflow.overview import read_benchmark
from ggdln.workflow.stages import Stages, matched

SAMPLING = 30
"""Snakemake looks at a running job every so many seconds; what it does after the last look is not in its CPU time."""


def measured_jobs(folder):
    """(where its coefficients are written, predicted `Cost`, measurement) of each benchmark file whose job is known."""
    files = default_files(ROOT)
    runs = [Stages(read_config(load(found)), ROOT) for found in (files, [*files, ROOT / "config/quick.yaml"])]
    for file in sorted(folder.rglob("*.tsv")):
        path, values = file.relative_to(folder), read_benchmark(file)
        for stages in runs if values else ():
            stage = stages.table.get(path.parts[0])
            wildcards = stage and matched(stage.note("benchmarks", ".tsv"), f"benchmarks/{path.as_posix()}")
            if wildcards is None:
                continue
            try:
                cost = stage.cost(**wildcards)
            except KeyError:  # a job of another configuration
                continue
            yield place(cost.costs, stage.kinds(**wildcards)), cost, values
            break


def place(found, kinds):
    """Where the coefficients of a job are written: as a name in ggdln.workflow.costs, or with the kind that it runs."""
    for name, value in vars(costs).items():
        if value is found:
            return f"workflow.costs.{name}"
    for cls in REGISTRIES[kinds[0][0]].get(kinds[0][1]).__mro__:
        if vars(cls).get("costs") is found:
            return f"{cls.__module__.removeprefix('ggdln.')}.{cls.__name__}"
    return "?"


def core_seconds(values):
    """Between the CPU time that was seen and the wall time: the machine may have been busy with other things."""
    return (values["cpu_time"] + min(values["s"], values["cpu_time"] + SAMPLING)) / 2


LEAST_SECONDS = {"start": 1.0, "points": 0.002, "files": 0.01, None: 0.01}
"""Least seconds a unit: Python has to start, and no core makes more than 10^11 multiplications a second."""

LEAST_MEGABYTES = {"start": 80.0, "files": 0.1, None: 1.0}
"""Least memory a unit: what is counted is there."""


def fit(jobs, amounts, measure, least):
    """Coefficients of the terms of jobs, for least squares of relative errors."""
    terms = sorted({term for cost, _ in jobs for term in amounts(cost)})
    rows = np.array([[amounts(cost).get(term, 0.0) for term in terms] for cost, _ in jobs])
    target = np.array([max(measure(values), least["start"]) for _, values in jobs])
    bounds = [least.get(term, least[None]) for term in terms]
    coefficients = lsq_linear(rows / target[:, None], np.ones(len(target)), (bounds, np.inf)).x
    return {term: float(f"{value:.3g}") for term, value in zip(terms, coefficients, strict=True)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", default="benchmarks", type=Path)
    parser.add_argument("--fit", action="store_true")
    arguments = parser.parse_args()
    groups = {}
    for where, cost, values in measured_jobs(arguments.folder):
        groups.setdefault(where, []).append((cost, values))
    if arguments.fit:
        for where, jobs in groups.items():
            seconds = fit(jobs, lambda cost: cost.terms.work, core_seconds, LEAST_SECONDS)
            megabytes = fit(jobs, lambda cost: cost.terms.memory, lambda values: values["max_rss"], LEAST_MEGABYTES)
            print(f"# {where}, {len(jobs)} files\nCosts({seconds}, {megabytes})".replace("'", '"'))
        return
    width = max(map(len, groups), default=0)
    print(f"{'':{width}}             core-hours      predicted / measured   largest MB      asked / used MB")
    print(f"{'coefficients':{width}} files  predicted measured  median  10 %  90 %   predicted used  least")
    for where, jobs in groups.items():
        seconds, megabytes = (np.array([getattr(cost, name) for cost, _ in jobs]) for name in ("seconds", "megabytes"))
        taken, used = np.array([core_seconds(v) for _, v in jobs]), np.array([v["max_rss"] for _, v in jobs])
        middle, low, high = np.quantile(seconds / np.maximum(taken, 0.5), [0.5, 0.1, 0.9])
        # What is asked for on top, for Snakemake itself, is not in the measurement.
        asked = np.array([cost.mem_mb() for cost, _ in jobs]) - costs.SNAKEMAKE_MB
        hours = f"{seconds.sum() / 3600:9.2f} {taken.sum() / 3600:8.2f}"
        ratios = f"{middle:7.2f} {low:5.2f} {high:5.2f}"
        sizes = f"{megabytes.max():9.0f} {used.max():4.0f}  {(asked / used).min():5.2f}"
        print(f"{where:{width}} {len(jobs):5d}  {hours} {ratios}   {sizes}")


if __name__ == "__main__":
    main()
