"""What a cluster adds to many tiny jobs: submissions, time beside the work, and the load of the login node.

    python benchmarks/cluster.py --jobs 1000 --slots 6                        with the SLURM of this machine
    python benchmarks/cluster.py --jobs 1000 -- --slurm-no-account ...        further options for Snakemake

A sweep whose points take no time is run by the profile for SLURM, in a copy of the project in FOLDER (a new one if none is
given), which the compute nodes must see. What `make plan` predicted stands beside what it took, in docs/benchmarks/cluster.md.
Needs accounting, which knows the CPU time of jobs; `tests/slurm/start` makes a SLURM where there is none. `--dry-run` plans a
sweep of so many points in jobs of a hundred, submits nothing and writes nothing.
"""

import argparse
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tools")]

from workspace import copy_project

from ggdln.workflow.overview import read_benchmark
from ggdln.workflow.progress import CLUSTER_SECONDS

OUTPUT = ROOT / "docs/benchmarks/cluster.md"
TEXT = """# Many tiny jobs on a cluster

Written by `python benchmarks/cluster.py --jobs {jobs}`: a sweep whose points take no time, by the profile for SLURM, which
sends up to sixteen of them as one job. All nodes and the login node are one machine, beside other work: CPU times say more than
the rest.

{table}

What a job takes beside its work is the start of Snakemake: one for each SLURM job, one for each job of ours in it.
"""


def sweep(points, batch):
    """A configuration of one figure: data, and for each `batch` points a job for gates and one for the infinite-width limit."""
    experiment = {
        "task": {"kind": "noisy_teacher", "N0": 4, "P": 10, "P_t": 10, "N_T": 10, "gamma": 0.1, "epsilon": 0.1},
        "gates": {"kind": "random", "b": 0.0},
        "network": {"L": 1, "sigma": 1.0},
        "sweep": {"gates.M": list(range(1, points + 1))},
        "methods": {"gp": {}},
        "draws": 1,
    }
    panel = {"kind": "curves", "series": [{"experiment": "tiny", "method": "gp"}], "quantity": "bias", "x": "M"}
    return {
        "run": "tiny",
        "batch": {"points": batch},
        "experiments": {"tiny": {"assumed": experiment}},
        "figures": {"tiny": {"caption": "Tiny jobs", "size": [3.5, 2.5], "mosaic": ["a"], "panels": {"a": panel}}},
    }


def timed(command, folder, log):
    """Seconds, seconds of CPU of the command with all that it starts here, and its exit code."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    with open(folder / log, "w") as file:
        code = subprocess.run(command, cwd=folder, stdout=file, stderr=subprocess.STDOUT).returncode
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"seconds": time.monotonic() - start, "cpu": cpu, "mb": after.ru_maxrss / 1024, "code": code}


def seconds_of(text):
    """Of a time as SLURM writes it: [days-][hours:]minutes:seconds."""
    days, _, clock = text.rpartition("-")
    total = 0.0
    for part in clock.split(":"):
        total = 60 * total + float(part)
    return total + 86400 * int(days or 0)


def accounted(jobs):
    """Seconds for which SLURM jobs held their places, and seconds of CPU that they used."""
    command = ["sacct", "--noheader", "--parsable2", "--format=JobID,Elapsed,TotalCPU", "--jobs", ",".join(jobs)]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    rows = [line.split("|") for line in shown]
    whole = [row for row in rows if "." not in row[0]]  # without the steps of each
    return [sum(seconds_of(row[column]) for row in whole) for column in (1, 2)]


def table(rows):
    return "\n".join(["| | |", "|---|--:|", *(f"| {name} | {value} |" for name, value in rows.items())])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1000, help="jobs of ours; with --dry-run, points of the sweep")
    parser.add_argument("--folder", type=Path, help="where it runs")
    parser.add_argument("--slots", type=int, help="SLURM jobs at a time, if not as in the profile: places of the cluster")
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("options", nargs="*", help="for Snakemake")
    arguments = parser.parse_args()
    folder = arguments.folder or Path(tempfile.mkdtemp(prefix="ggdln-", dir="."))
    folder.mkdir(parents=True, exist_ok=True)
    folder = folder.resolve()
    copy_project(ROOT, folder)
    profile = folder / "workflow/profiles/slurm/config.yaml"
    if arguments.slots:
        profile.write_text(re.sub(r"^jobs: .*", f"jobs: {arguments.slots}", profile.read_text(), flags=re.M))
    points, batch = (arguments.jobs, 100) if arguments.dry_run else (max(1, (arguments.jobs - 4) // 2), 1)
    (folder / "tiny.yaml").write_text(yaml.safe_dump(sweep(points, batch)))
    os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"

    plan = timed([sys.executable, "workflow/plan.py", "--profile", "slurm", "--configfile", "tiny.yaml"], folder, "plan.log")
    command = [sys.executable, "-m", "snakemake", "--workflow-profile", "workflow/profiles/slurm", *arguments.options]
    command += ["--dry-run"] if arguments.dry_run else []
    run = timed([*command, "--configfile", "tiny.yaml"], folder, "run.log")
    log, planned = (folder / "run.log").read_text(), (folder / "plan.log").read_text()
    print(f"{folder}: plan {plan['seconds']:.0f} s, {'dry-run' if arguments.dry_run else 'run'} {run['seconds']:.0f} s")
    print(planned.split("\n\n")[0])
    if run["code"]:
        sys.exit(f"Snakemake ended with {run['code']}; see {folder / 'run.log'}")
    if arguments.dry_run:
        return

    jobs = re.findall(r"submitted with SLURM jobid (\d+)", log)
    work = [read_benchmark(path)["s"] for path in folder.glob("benchmarks/*/**/*.tsv")]
    held, used = accounted(jobs)
    row = dict(zip(*(re.split(r"  +", line.strip()) for line in planned.splitlines()[:2]), strict=False))  # no job is done yet
    rows = {
        "jobs of ours": len(work),
        "submissions": len(jobs),
        "SLURM jobs at a time, at most": yaml.safe_load(profile.read_text())["jobs"],
        "wall time": f"{run['seconds']:.0f} s",
        "predicted by `make plan`, for so many free cores": row["wall time"],
        "places held, for each job of ours": f"{held / len(work):.1f} s",
        "its work, with the start of its script": f"{sum(work) / len(work):.1f} s",
        "CPU time on the nodes, for each job of ours": f"{used / len(work):.1f} s",
        "predicted": f"{3600 * float(row['core-hours']) / len(work) + CLUSTER_SECONDS:.1f} s",
        "CPU time on the login node, for each job of ours": f"{run['cpu'] / len(work):.2f} s",
        "load of the login node": f"{100 * run['cpu'] / run['seconds']:.1f} % of a core",
        "memory of Snakemake on the login node": f"{run['mb']:.0f} MB",
        "load average of the machine at the end": f"{os.getloadavg()[2]:.0f} on {os.cpu_count()} cores",
    }
    text = TEXT.format(jobs=arguments.jobs, table=table(rows))
    OUTPUT.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
