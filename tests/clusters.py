"""A real SLURM on this machine, with and without accounting, what is done to it, and runs of Snakemake that send their jobs to it."""

import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from helpers import ROOT

from ggdln.experiments import store

KINDS = ("accounting", "plain")
"""A cluster that asks its database what became of a job, and one without."""
NODES, CPUS = 3, 2
"""More jobs at a time than CI has cores: they wait more than they work."""
AT_LENGTH = os.environ.get("TEST_SLURM") == "all"
LONG = "takes long: make test-cluster runs it"
TARGETS = ["figures/trained.pdf"] + AT_LENGTH * ["figures/gated.pdf", "results/claims/gated_capacity.json"]
"""What is made on a cluster and without it."""


def missing(kind):
    """Programs that a cluster of this kind needs and that aren't there."""
    needed = ["slurmctld", "slurmd", "munged", "sbatch", "squeue"]
    if kind == "accounting":
        needed += ["slurmdbd", "sacctmgr", "mariadbd", "mariadb-install-db"]
    return [name for name in needed if not shutil.which(name)]


def why_not(kind):
    """Why a cluster of this kind can't be tested here; empty if it can."""
    if not os.environ.get("TEST_SLURM"):
        return "TEST_SLURM is not set: these tests start a SLURM on this machine and take some minutes"
    if missing(kind):
        return f"SLURM is not installed: no {', '.join(missing(kind))}"
    if os.geteuid():
        return "slurmd needs root"
    if os.path.exists("/etc/slurm/slurm.conf"):
        return "another SLURM is set up here: /etc/slurm/slurm.conf"
    return ""


def call(*command, seconds=30, **settings):
    return subprocess.run(["timeout", "-k", "5", str(seconds), *map(str, command)], capture_output=True, text=True, **settings)


def until(condition, seconds=120):
    """What `condition` gives as soon as it is true."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.5)
    raise AssertionError(f"not within {seconds} s: {condition}")


def alive(pid):
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def children(pid):
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def working_in(folder):
    """Command lines of the processes that run in a folder."""
    pids = [int(path.parent.name) for path in Path("/proc").glob("[0-9]*/cwd") if _leads(path, folder)]
    return [_command(pid) for pid in pids if alive(pid)]


def _leads(link, folder):
    try:
        return Path(os.readlink(link)).is_relative_to(folder)
    except OSError:
        return False


def _command(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""


def _environment(pid):
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []


def _processes():
    return [int(path.name) for path in Path("/proc").glob("[0-9]*")]


class Cluster:
    """A SLURM of several nodes on this machine, and what is done to it."""

    def __init__(self, folder, kind, nodes=NODES, cpus=CPUS):
        self.folder, self.kind = folder, kind
        self.nodes = [f"n{i + 1}" for i in range(nodes)]
        database = ["slurmdbd", "mariadbd"] if kind == "accounting" else []
        self.daemons = ["munged", *database, "slurmctld", *self.nodes]
        started = call(ROOT / "tests/slurm/start", folder, cpus, nodes, kind, seconds=600)
        assert started.returncode == 0, started.stderr
        assert all(alive(self.pid(daemon)) for daemon in self.daemons)

    def stop(self):
        """Nothing of it is left."""
        daemons = [self.pid(daemon) for daemon in self.daemons]
        assert call(ROOT / "tests/slurm/stop", self.folder, seconds=180).returncode == 0
        assert not [pid for pid in daemons if alive(pid)]
        assert not [pid for pid in _processes() if _command(pid).startswith("slurmstepd: [")]

    def pid(self, daemon):
        return int((self.folder / f"{daemon}.pid").read_text())

    def kill(self, daemon):
        """End a daemon as a crash would."""
        assert call(ROOT / "tests/slurm/daemon", "kill", self.folder, daemon).returncode == 0

    def start(self, daemon):
        started = call(ROOT / "tests/slurm/daemon", "start", self.folder, daemon)
        assert started.returncode == 0, started.stderr

    def away(self, daemon, seconds):
        """Take a daemon away for a while."""
        self.kill(daemon)
        time.sleep(seconds)
        self.start(daemon)

    def configure(self, key, value):
        """Another value in the configuration of SLURM, which the controller reads at once."""
        file = self.folder / "slurm.conf"
        file.write_text(re.sub(rf"^{key}=.*$", f"{key}={value}", file.read_text(), flags=re.M))
        assert call("scontrol", "reconfigure").returncode == 0

    def states(self):
        """State of each job that the controller knows: id -> state."""
        return {job: state for job, (state, _) in self.jobs().items()}

    def jobs(self):
        """State and node of each job: id -> (state, node)."""
        shown = call("squeue", "--noheader", "--states=all", "--format=%i|%T|%N").stdout
        return {job: (state, node) for job, state, node in (line.split("|") for line in shown.splitlines())}

    def node(self, name):
        """State of a node."""
        return call("sinfo", "--noheader", f"--nodes={name}", "--format=%T").stdout.strip()

    def update(self, node, state):
        assert call("scontrol", "update", f"NodeName={node}", f"State={state}", "Reason=test").returncode == 0

    def memory(self, job):
        """Memory that a job asked for, in MB."""
        return int(re.search(r"MinMemoryNode=(\d+)M", self._show(job))[1])

    def minutes(self, job):
        """Time that a job asked for."""
        hours, minutes = re.search(r"TimeLimit=(\d+):(\d+):", self._show(job)).groups()
        return 60 * int(hours) + int(minutes)

    def watchers(self, job):
        """Processes by which SLURM starts and watches a running job."""
        return {pid for pid in _processes() if _command(pid).startswith(f"slurmstepd: [{job}.")}

    def members(self, job):
        """Processes of a running job: our script, and the Snakemakes and the srun that start it."""
        mark = f"SLURM_JOB_ID={job}".encode()
        return {pid for pid in _processes() if mark in _environment(pid)} - self.watchers(job)

    def processes(self, job):
        """Those once it has got to its work."""

        def found():
            pids = self.members(job)
            return pids if any("run_method.py" in _command(pid) for pid in pids) else None

        return until(found)

    def crash(self, node):
        """A node with all that runs on it is gone."""
        here = [job for job, (state, where) in self.jobs().items() if state == "RUNNING" and where == node]
        pids = {pid for job in here for pid in self.members(job) | self.watchers(job)}
        self.kill(node)
        for pid in pids:
            if alive(pid):
                os.kill(pid, signal.SIGKILL)
        return here

    def saved(self):
        """When the controller last wrote down the state of jobs."""
        return (self.folder / "state/job_state").stat().st_mtime

    def _show(self, job):
        return call("scontrol", "show", "job", job).stdout


def set_up(folder, kind):
    """The profile as it is for a cluster with accounting; without, the two lines that it has for that are uncommented."""
    if kind == "plain":
        file = folder / "workflow/profiles/slurm/config.yaml"
        file.write_text(re.sub(r"^# (slurm-(status-command|no-account): .*)$", r"\1", file.read_text(), flags=re.M))


class Run:
    """A Snakemake that sends its jobs to a cluster. It ends within the time it is given.

    patient: its commands of SLURM are those of the profile that wait, and the profile is as it is whatever the cluster.
    """

    def __init__(self, folder, kind, *arguments, patient=False, seconds=1500):
        profile = folder / "workflow/profiles/slurm"
        if not patient:
            set_up(folder, kind)
        command = ["timeout", "-k", "10", str(seconds), sys.executable, ROOT / "tests/slurm/eager.py"]
        # The jobs are short, and the end of a run waits for its last look at waiting jobs.
        command += ["--workflow-profile", profile, "--slurm-init-seconds-before-status-checks", "1"]
        command += ["--max-status-checks-per-second", "1", "--max-jobs-per-timespan", "1000/1s"]
        environment = dict(os.environ)
        if patient:
            environment["PATH"] = f"{profile / 'patient'}:{environment['PATH']}"
        self.folder, self.arguments = folder, arguments
        self.log = folder / f"run{len(list(folder.glob('run*.log')))}.log"
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(
                [*map(str, command), *arguments], cwd=folder, stdout=log, stderr=subprocess.STDOUT, env=environment
            )

    def finish(self):
        code = self.process.wait()
        assert code == 0, f"{code}\n{self.log.read_text()}"
        return self.log.read_text()

    def submitted(self):
        return re.findall(r"submitted with SLURM jobid (\d+)", self.log.read_text())

    def wait_for_a_job(self):
        until(lambda: self.submitted() or self.process.poll() is not None)
        assert self.process.poll() is None, self.log.read_text()
        return self.submitted()[0]

    def interrupt(self):
        """What Ctrl-C does."""
        for pid in children(self.process.pid):  # timeout would pass it on twice, and kill
            os.kill(pid, signal.SIGINT)
        assert self.process.wait() != 0

    def kill(self):
        for pid in (*children(self.process.pid), self.process.pid):
            os.kill(pid, signal.SIGKILL)
        self.process.wait()

    def stop(self):
        if self.process.poll() is None:
            self.kill()
            call("scancel", *self.submitted())


def assert_same_numbers(*folders):
    """All results that one folder has, the other has too, with the same content; and nothing half done."""
    files = [sorted(path.relative_to(folder) for path in folder.glob("results/**/*.nc")) for folder in folders]
    assert files[0] == files[1] != []
    for file in files[1]:
        one, other = (store.groups(folder / file) for folder in folders)
        assert list(one) == list(other)
        assert all(one[name].equals(other[name]) for name in one), file
    for folder in folders:
        assert not list(folder.glob("results/**/.*.tmp"))
        assert not list(folder.glob("results/state/**/*.npz"))


def generic_engine(folder, submit, *arguments):
    """A run by the profile for SLURM, but with a command that submits job scripts."""
    if importlib.util.find_spec("snakemake_executor_plugin_cluster_generic") is None:
        pytest.skip("snakemake-executor-plugin-cluster-generic is not installed")
    command = [
        sys.executable,
        "-m",
        "snakemake",
        "--workflow-profile",
        "workflow/profiles/slurm",
        "--executor",
        "cluster-generic",
    ]
    command += [
        "--cluster-generic-submit-cmd",
        submit,
        "--max-status-checks-per-second",
        "10",
        "--seconds-between-status-checks",
        "1",
    ]
    return call(*command, *arguments, cwd=folder, seconds=1500)
