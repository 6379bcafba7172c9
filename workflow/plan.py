"""What a run will take, before it starts: jobs, core-hours, memory and time for each figure and for all.

    python workflow/plan.py --cores 8                                     on this machine
    python workflow/plan.py --profile slurm                               on a cluster, with the profile workflow/profiles/slurm
    python workflow/plan.py --cores 2 --configfile config/quick.yaml      with another configuration

Snakemake says which files have to be made; what that costs is predicted from the sizes of each job (src/ggdln/workflow/costs.py). Where
jobs have run, their benchmark files tell what they took. Run it from the folder where the results are.
"""

import argparse
import heapq
import os
import subprocess
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

from ggdln.core.errors import ConfigError
from ggdln.workflow.config import default_files, load, read_config
from ggdln.workflow.overview import read_benchmark
from ggdln.workflow.stages import Stages

LOCAL_SECONDS = 0.2
"""Time that Snakemake needs for a job of its own, on one machine."""

CLUSTER_SECONDS, GROUPED_SECONDS = 10.0, 4.0
"""Time that a SLURM job needs beside its work, and each of the jobs in it."""


def pending_files(configfiles, targets):
    """The files that Snakemake would make or make again, for all figures and verdicts."""
    command = [sys.executable, "-m", "snakemake", "--snakefile", ROOT / "Snakefile", "--summary", "--nolock"]
    command += ["--configfile", *configfiles] if configfiles else []
    command += ["--", *targets]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        sys.exit(result.stderr.strip())
    rows = [line.split("\t") for line in result.stdout.splitlines()]
    return {row[0] for row in rows if row[-1] == "update pending"}


def submissions(jobs, profile):
    """The jobs as they are sent to the cluster: lists of jobs, where a group holds several."""
    of_rule, components = profile.get("groups", {}), profile.get("group-components", {})
    root = {output: output for output in jobs}

    def find(output):
        while root[output] != output:
            root[output] = root[root[output]]
            output = root[output]
        return output

    for job in jobs.values():
        for file in job.inputs:
            group = of_rule.get(job.stage.name)
            if group and file in jobs and of_rule.get(jobs[file].stage.name) == group:
                root[find(file)] = find(job.output)
    connected = {}
    for job in jobs.values():
        connected.setdefault((of_rule.get(job.stage.name), find(job.output)), []).append(job)
    units, open_groups = [], {}
    for (group, _), members in connected.items():
        if group is None:
            units += [[job] for job in members]
            continue
        held, count = open_groups.get(group, ([], 0))
        held += members
        open_groups[group] = held, count + 1
        if count + 1 == components.get(group, 1):
            units.append(held)
            del open_groups[group]
    return units + [held for held, _ in open_groups.values()]


def wall_time(units, duration, slots):
    """Seconds until all units are done, `slots` at a time, each after those it needs."""
    made_by = {job.output: i for i, unit in enumerate(units) for job in unit}
    needs = [{made_by[f] for job in unit for f in job.inputs if f in made_by} - {i} for i, unit in enumerate(units)]
    after = [[] for _ in units]
    for i, found in enumerate(needs):
        for j in found:
            after[j].append(i)
    ready = [(0.0, i) for i, found in enumerate(needs) if not found]
    waiting, free, end = [len(found) for found in needs], [0.0] * max(1, min(slots, len(units))), 0.0
    while ready:
        since, i = heapq.heappop(ready)
        finish = max(since, heapq.heappop(free)) + duration(units[i])
        heapq.heappush(free, finish)
        end = max(end, finish)
        for j in after[i]:
            waiting[j] -= 1
            if not waiting[j]:
                heapq.heappush(ready, (finish, j))
    return end


class Machine:
    """Where jobs run: this machine with some cores, or a cluster with a profile."""

    def __init__(self, cores, profile=None):
        self.profile = profile
        self.cores = cores or (profile or {}).get("cores", 1)
        self.slots = profile.get("jobs", 1) if profile else self.cores

    def units(self, jobs):
        return submissions(jobs, self.profile) if self.profile else [[job] for job in jobs.values()]

    def duration(self, unit):
        seconds = [job.cost.seconds for job in unit]
        if not self.profile:
            return seconds[0] + LOCAL_SECONDS
        shared = (sum(seconds) + GROUPED_SECONDS * len(unit)) / self.cores if len(unit) > 1 else seconds[0] + GROUPED_SECONDS
        return CLUSTER_SECONDS + max(shared, *seconds)


def summary(name, jobs, pending, machine):
    """One line of the table."""
    left = {output: job for output, job in jobs.items() if output in pending}
    units = machine.units(left)
    done = [(job, read_benchmark(job.benchmark)) for job in jobs.values() if job.output not in pending]
    done = [(job, values) for job, values in done if values]
    row = {
        "figure": name,
        "jobs": f"{len(left)} of {len(jobs)}",
        "SLURM jobs": str(len(units)),
        "core-hours": _hours(sum(job.cost.seconds for job in left.values())),
        "of": _hours(sum(job.cost.seconds for job in jobs.values())),
        "largest MB": str(max((job.cost.mem_mb() for job in left.values()), default=0)),
        "wall time": _time(wall_time(units, machine.duration, machine.slots)),
        "done: predicted": _hours(sum(job.cost.seconds for job, _ in done)) if done else "",
        "took": f"{_hours(sum(v['cpu_time'] for _, v in done))} - {_hours(sum(v['s'] for _, v in done))}" if done else "",
    }
    if not machine.profile:
        del row["SLURM jobs"]
    return row


def _hours(seconds):
    hours = seconds / 3600
    return f"{hours:.0f}" if hours >= 10 else f"{hours:.2f}" if hours >= 0.1 else f"{hours:.3f}"


def _time(seconds):
    minutes = round(seconds / 60)
    return (
        f"{seconds:.0f} s" if seconds < 120 else f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cores", default="", help="cores of this machine, or of one SLURM job")
    parser.add_argument("--profile", default="", help="a profile of a cluster, by name or folder")
    parser.add_argument("--configfile", nargs="*", default=[])
    arguments = parser.parse_args()
    profile = None
    if arguments.profile:
        folder = Path(arguments.profile)
        folder = folder if folder.is_dir() else ROOT / "workflow/profiles" / folder
        profile = yaml.safe_load((folder / "config.yaml").read_text())
    cores = arguments.cores
    cores = len(os.sched_getaffinity(0)) if cores == "all" or not (cores or profile) else int(cores or 0)
    machine = Machine(cores, profile)
    try:
        stages = Stages(read_config(load([*default_files(ROOT), *arguments.configfile])), ROOT)
    except ConfigError as error:
        sys.exit(str(error))
    figures = {figure: stages.figure_file(figure) for figure in stages.config.figures}
    verdicts = stages.claims_file()
    pending = pending_files(arguments.configfile, [*figures.values(), verdicts])
    rows = [summary(figure, stages.jobs(file), pending, machine) for figure, file in figures.items()]
    everything = stages.jobs(*figures.values())
    rows.append(summary("all", everything, pending, machine))
    beyond = {output: job for output, job in stages.jobs(verdicts).items() if output not in everything}
    rows.append(summary("verdicts", beyond, pending, machine))
    widths = {key: max(len(key), *(len(row[key]) for row in rows)) for key in rows[0]}
    for row in [dict(zip(widths, widths, strict=True)), *rows]:
        print("  ".join(f"{row[key]:>{width}}" if key != "figure" else f"{row[key]:<{width}}" for key, width in widths.items()))
    where = (
        f"at most {machine.slots} SLURM jobs at a time, without waiting in the queue" if profile else f"{machine.slots} cores"
    )
    print(f"\nFigures share jobs. Wall time: {where}. Memory: what is asked for, with a safety factor of 2.")
    print("took: CPU time that Snakemake saw - wall time, of jobs that are done and have a benchmark file.")


if __name__ == "__main__":
    main()
