"""Compare the predicted costs of jobs with those measured, and fit the coefficients of src/ggdln/costs.py.

    python benchmarks/resources.py [FOLDER]           prediction and measurement, by rule
    python benchmarks/resources.py [FOLDER] --fit     the coefficients that fit best

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

from ggdln.workflow.config import load_config
from ggdln.workflow.costs import SNAKEMAKE_MB
from ggdln.workflow.jobs import Jobs, read_benchmarks

SAMPLING = 30
"""Snakemake looks at a running job every so many seconds; what it does after the last look is not in its CPU time."""


def measured_jobs(folder):
    """(rule, terms, measurement) of each benchmark file whose job is known."""
    files = [ROOT / f"config/{name}.yaml" for name in ("config", "figures", "claims")]
    configs = [load_config(ROOT, files), load_config(ROOT, [*files, ROOT / "config/quick.yaml"])]
    runs = {config.run: Jobs(config) for config in configs}
    for rule, wildcards, values in read_benchmarks(folder):
        named = wildcards.pop("run", None)
        for run, jobs in runs.items():
            if named not in (None, run):
                continue
            try:
                terms = jobs.terms(rule, **wildcards)
            except KeyError:
                continue
            yield rule, terms, values
            break


def core_seconds(values):
    """Between the CPU time that was seen and the wall time: the machine may have been busy with other things."""
    return (values["cpu_time"] + min(values["s"], values["cpu_time"] + SAMPLING)) / 2


LEAST_SECONDS = {"start": 1.0, "points": 0.002, "files": 0.01, None: 0.01}
"""Least seconds a unit: Python has to start, and no core makes more than 10^11 multiplications a second."""

LEAST_MEGABYTES = {"start": 80.0, "files": 0.1, None: 1.0}
"""Least memory a unit: what is counted is there."""


def fit(jobs, amounts, measure, least):
    """Coefficients of the terms of one rule, for least squares of relative errors."""
    terms = sorted({term for _, found, _ in jobs for term in amounts(found)})
    rows = np.array([[amounts(found).get(term, 0.0) for term in terms] for _, found, _ in jobs])
    target = np.array([max(measure(values), least["start"]) for *_, values in jobs])
    bounds = [least.get(term, least[None]) for term in terms]
    coefficients = lsq_linear(rows / target[:, None], np.ones(len(target)), (bounds, np.inf)).x
    return {term: float(f"{value:.3g}") for term, value in zip(terms, coefficients, strict=True)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", default="benchmarks", type=Path)
    parser.add_argument("--fit", action="store_true")
    arguments = parser.parse_args()
    by_rule = {}
    for job in measured_jobs(arguments.folder):
        by_rule.setdefault(job[0], []).append(job)
    if arguments.fit:
        print("SECONDS = {")
        for rule, jobs in by_rule.items():
            print(f'    "{rule}": {fit(jobs, lambda t: t.work, core_seconds, LEAST_SECONDS)},'.replace("'", '"'))
        print("}\nMEGABYTES = {")
        for rule, jobs in by_rule.items():
            print(f'    "{rule}": {fit(jobs, lambda t: t.memory, lambda v: v["max_rss"], LEAST_MEGABYTES)},'.replace("'", '"'))
        print("}")
        return
    print("                         core-hours      predicted / measured   largest MB      asked / used MB")
    print("rule            files  predicted measured  median  10 %  90 %   predicted used  least")
    for rule, jobs in by_rule.items():
        predicted = [terms.cost(rule) for _, terms, _ in jobs]
        seconds, megabytes = np.array([p.seconds for p in predicted]), np.array([p.megabytes for p in predicted])
        taken, used = np.array([core_seconds(v) for *_, v in jobs]), np.array([v["max_rss"] for *_, v in jobs])
        middle, low, high = np.quantile(seconds / np.maximum(taken, 0.5), [0.5, 0.1, 0.9])
        # What is asked for on top, for Snakemake itself, is not in the measurement.
        asked = np.array([p.mem_mb() for p in predicted]) - SNAKEMAKE_MB
        hours = f"{seconds.sum() / 3600:9.2f} {taken.sum() / 3600:8.2f}"
        ratios = f"{middle:7.2f} {low:5.2f} {high:5.2f}"
        sizes = f"{megabytes.max():9.0f} {used.max():4.0f}  {(asked / used).min():5.2f}"
        print(f"{rule:<15} {len(jobs):5d}  {hours} {ratios}   {sizes}")


if __name__ == "__main__":
    main()
