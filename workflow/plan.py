"""What a run will take, before it starts: jobs, core-hours, memory and time for each figure and for all.

    python workflow/plan.py --cores 8                                     on this machine
    python workflow/plan.py --profile slurm                               on a cluster, with the profile workflow/profiles/slurm
    python workflow/plan.py --cores 2 --configfile config/quick.yaml      with another configuration

Snakemake says which files have to be made; what that costs is predicted from the sizes of each job
(src/ggdln/workflow/costs.py). Where jobs have run, their benchmark files tell what they took. Run it from the folder where the
results are.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

from ggdln.core.errors import ConfigError
from ggdln.core.problems import choices
from ggdln.workflow.config import read_config
from ggdln.workflow.files import default_files, load
from ggdln.workflow.overview import read_benchmark
from ggdln.workflow.progress import CLUSTER_SECONDS, LOCAL_SECONDS, duration, wall_time
from ggdln.workflow.stages import Stages


def pending_files(configfiles, targets):
    """The files that Snakemake would make or make again."""
    command = [sys.executable, "-m", "snakemake", "--snakefile", ROOT / "Snakefile", "--summary", "--nolock"]
    command += ["--configfile", *configfiles] if configfiles else []
    result = subprocess.run([*command, "--", *targets], capture_output=True, text=True)
    if result.returncode:
        sys.exit(result.stderr.strip())
    rows = [line.split("\t") for line in result.stdout.splitlines()]
    return {row[0] for row in rows if row[-1] == "update pending"}


def summary(name, jobs, pending, slots, overhead):
    """One line of the table."""
    left = {output: job for output, job in jobs.items() if output in pending}
    done = [(job, read_benchmark(job.benchmark)) for job in jobs.values() if job.output not in pending]
    done = [(job, values) for job, values in done if values]
    return {
        "figure": name,
        "jobs": f"{len(left)} of {len(jobs)}",
        "core-hours": _hours(sum(job.cost.seconds for job in left.values())),
        "of": _hours(sum(job.cost.seconds for job in jobs.values())),
        "largest MB": str(max((job.cost.mem_mb() for job in left.values()), default=0)),
        "wall time": duration(wall_time(left, slots, overhead)),
        "done: predicted": _hours(sum(job.cost.seconds for job, _ in done)) if done else "",
        "took": f"{_hours(sum(v['cpu_time'] for _, v in done))} - {_hours(sum(v['s'] for _, v in done))}" if done else "",
    }


def _hours(seconds):
    hours = seconds / 3600
    return f"{hours:.0f}" if hours >= 10 else f"{hours:.2f}" if hours >= 0.1 else f"{hours:.3f}"


def profile(name):
    """The file of a profile that is given by name or folder."""
    folders = {path.parent.name: path for path in (ROOT / "workflow/profiles").glob("*/config.yaml")}
    file = folders.get(name, Path(name) / "config.yaml")
    if not file.is_file():
        sys.exit(f"--profile {name} is not there; accepted: a folder, or {choices(name, sorted(folders))}")
    return file


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cores", default="all", help="cores of this machine")
    parser.add_argument("--profile", default="", help="a profile of a cluster, by name or folder")
    parser.add_argument("--configfile", nargs="*", default=[])
    arguments = parser.parse_args()
    slots, overhead, where = (
        len(os.sched_getaffinity(0)) if arguments.cores == "all" else int(arguments.cores),
        LOCAL_SECONDS,
        "cores",
    )
    if arguments.profile:
        slots, overhead = yaml.safe_load(profile(arguments.profile).read_text()).get("jobs", 1), CLUSTER_SECONDS
        where = "SLURM jobs at a time, without waiting in the queue"
    try:
        own = load(arguments.configfile).get("figures")
        stages = Stages(read_config(load([*default_files(ROOT), *arguments.configfile]), own), ROOT)
    except ConfigError as error:
        sys.exit(str(error))
    figures = {figure: stages.figure_file(figure) for figure in stages.config.chosen}
    pending = pending_files(arguments.configfile, [*figures.values(), stages.claims_file()])
    everything = stages.jobs(*figures.values())
    verdicts = {output: job for output, job in stages.jobs(stages.claims_file()).items() if output not in everything}
    found = {figure: stages.jobs(file) for figure, file in figures.items()} | {"all": everything, "verdicts": verdicts}
    rows = [summary(name, jobs, pending, slots, overhead) for name, jobs in found.items()]
    widths = {key: max(len(key), *(len(row[key]) for row in rows)) for key in rows[0]}
    for row in [dict(zip(widths, widths, strict=True)), *rows]:
        print("  ".join(f"{row[key]:>{width}}" if key != "figure" else f"{row[key]:<{width}}" for key, width in widths.items()))
    print(f"\nFigures share jobs. Wall time: at most {slots} {where}. Memory: what is asked for, with a safety factor of 2.")
    print("took: CPU time that Snakemake saw - wall time, of jobs that are done and have a benchmark file.")


if __name__ == "__main__":
    main()
