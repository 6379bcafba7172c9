"""The workflow on a real SLURM, started on this machine: the same numbers as without it, whatever happens to jobs and daemons.

Skipped where SLURM is not installed; `apt-get install slurmctld slurmd slurm-client munge` as root brings it.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from helpers import ROOT, raw_configuration, small_project, snakemake

from ggdln.core.kinds import REGISTRIES
from ggdln.experiments import store
from ggdln.workflow.config import read_config
from ggdln.workflow.stages import Stages

SLOW = ("--configfile", "tests/slurm/slow.yaml")
TARGETS = ("figures/gated.pdf", "figures/trained.pdf", "results/claims/gated_capacity.json")
DAEMONS = ("munged", "slurmctld", "slurmd")


def why_not():
    """Why SLURM can't be tested here; empty if it can."""
    if not os.environ.get("TEST_SLURM"):
        return "TEST_SLURM is not set: these tests start a SLURM on this machine and take some minutes"
    missing = [name for name in ("slurmctld", "slurmd", "munged", "sbatch", "squeue") if not shutil.which(name)]
    if missing:
        return f"SLURM is not installed: no {', '.join(missing)}"
    if os.geteuid():
        return "slurmd needs root"
    if os.path.exists("/etc/slurm/slurm.conf"):
        return "another SLURM is set up here: /etc/slurm/slurm.conf"
    return ""


def call(*command, seconds=30):
    return subprocess.run(["timeout", "-k", "5", str(seconds), *map(str, command)], capture_output=True, text=True)


def until(condition, seconds=120):
    """What `condition` gives as soon as it is true."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.5)
    raise AssertionError(f"not within {seconds} s: {condition}")


class Cluster:
    """A SLURM of one node, and what is done to it."""

    def __init__(self, folder):
        self.folder = folder

    def pid(self, daemon):
        return int((self.folder / f"{daemon}.pid").read_text())

    def kill(self, daemon):
        pid = self.pid(daemon)
        os.kill(pid, signal.SIGKILL)
        until(lambda: not alive(pid))

    def states(self):
        """State of each job: id -> state."""
        shown = call("squeue", "--noheader", "--states=all", "--format=%i|%T").stdout
        return dict(line.split("|") for line in shown.splitlines())

    def memory(self, job):
        """Memory that a job asked for, in MB."""
        return int(re.search(r"MinMemoryNode=(\d+)M", self._show(job))[1])

    def minutes(self, job):
        """Time that a job asked for."""
        hours, minutes = re.search(r"TimeLimit=(\d+):(\d+):", self._show(job)).groups()
        return 60 * int(hours) + int(minutes)

    def watchers(self, job):
        """Processes by which SLURM starts and watches a running job."""
        paths = [path.parent for path in Path("/proc").glob("[0-9]*/cmdline") if _says(path, f"slurmstepd: [{job}.")]
        return {int(path.name) for path in paths}

    def processes(self, job):
        """Processes of a running job, once it has got to its work: our script, and the Snakemakes and the srun that start it."""

        def found():
            shown = call("scontrol", "listpids", job).stdout
            pids = {int(line.split()[0]) for line in shown.splitlines()[1:]} - {-1} - self.watchers(job)
            return pids if any("run_method.py" in _command(pid) for pid in pids) else None

        return until(found)

    def saved(self):
        """When the controller last wrote down the state of jobs."""
        return (self.folder / "state/job_state").stat().st_mtime

    def node(self):
        return call("sinfo", "--noheader", "--format=%T").stdout.strip()

    def _show(self, job):
        return call("scontrol", "show", "job", job).stdout


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


def _says(path, text):
    try:
        return path.read_text().startswith(text)
    except OSError:
        return False


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    if why_not():
        pytest.skip(why_not())
    folder = tmp_path_factory.mktemp("slurm")
    # Twice as many jobs at a time as CI has cores: they wait more than they work.
    started = call(ROOT / "tests/slurm/start", folder, 4, seconds=60)
    assert started.returncode == 0, started.stderr
    cluster = Cluster(folder)
    assert all(alive(cluster.pid(daemon)) for daemon in DAEMONS)
    yield cluster
    daemons = [cluster.pid(daemon) for daemon in DAEMONS]
    assert call(ROOT / "tests/slurm/stop", folder, seconds=120).returncode == 0
    assert not [pid for pid in daemons if alive(pid)]
    assert not [path for path in Path("/proc").glob("[0-9]*/cmdline") if _says(path, "slurmstepd: [")]


class Run:
    """A Snakemake that sends its jobs to the cluster. It ends within the time it is given."""

    def __init__(self, folder, *arguments, seconds=400):
        command = ["timeout", "-k", "10", str(seconds), sys.executable, "-m", "snakemake"]
        command += ["--workflow-profile", "workflow/profiles/slurm"]
        # This cluster has no accounting, and its jobs are short.
        command += ["--slurm-status-command", "squeue", "--slurm-no-account", "--slurm-init-seconds-before-status-checks", "2"]
        self.folder = folder
        self.log = folder / f"run{len(list(folder.glob('run*.log')))}.log"
        with open(self.log, "w") as log:
            self.process = subprocess.Popen([*command, *arguments], cwd=folder, stdout=log, stderr=subprocess.STDOUT)

    def finish(self):
        code = self.process.wait()
        assert code == 0, f"{code}\n{self.log.read_text()}"
        return self.log.read_text()

    def submitted(self):
        return re.findall(r"submitted with SLURM jobid (\d+)", self.log.read_text())

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


def test_the_profile_keeps_the_settings_of_the_default_one(root):
    default, slurm = (
        yaml.safe_load((root / f"workflow/profiles/{name}/config.yaml").read_text()) for name in ("default", "slurm")
    )
    assert default.items() <= slurm.items()
    assert slurm["retries"] >= 1


def test_gpus_are_only_asked_for_where_they_help(root):
    """The commented switch, once uncommented, is valid and names the rules that simulate."""
    text = (root / "workflow/profiles/slurm/config.yaml").read_text()
    assert "set-resources" not in yaml.safe_load(text)
    switched = yaml.safe_load(re.sub(r"^# (set-resources:|  \w+: \{gpu.*)$", r"\1", text, flags=re.M))
    methods = REGISTRIES["method"]
    assert set(switched["set-resources"]) == {f"run_{name}" for name in methods.own() if methods.get(name).simulates}


def test_no_group_waits_for_a_later_one(root):
    """Nor for itself by way of a job outside: such groups would wait for each other for ever."""
    profile = yaml.safe_load((root / "workflow/profiles/slurm/config.yaml").read_text())
    order = list(dict.fromkeys(profile["groups"].values()))
    assert list(profile["group-components"]) == order
    stages = Stages(read_config(raw_configuration()), root)
    assert set(profile["groups"]) < set(stages.table)
    latest, jobs = {}, stages.jobs(stages.table["make_report"].main, *map(stages.figure_file, stages.config.figures))
    for output, job in jobs.items():
        needed = [(profile["groups"].get(jobs[file].stage.name), latest[file]) for file in job.inputs if file in jobs]
        own = profile["groups"].get(job.stage.name)
        place = order.index(own) if own else len(order)
        assert all(rank < place or group == own for group, rank in needed), output
        latest[output] = place if own else max((rank for _, rank in needed), default=-1)


@pytest.mark.slow
class TestOnSlurm:
    @pytest.fixture(scope="class")
    def undisturbed(self, cluster, tmp_path_factory):
        """A run of two figures. It goes on while other tests disturb jobs of their own."""
        run = Run(small_project(tmp_path_factory.mktemp("undisturbed")), "--", *TARGETS)
        yield run
        run.stop()

    @pytest.fixture(scope="class")
    def prepared(self, cluster, tmp_path_factory):
        """A folder where all but the slow job has been done, that job's file, and the content it should have."""
        folder = small_project(tmp_path_factory.mktemp("project"))
        result = snakemake(folder, *SLOW, "--", "figures/slow/slow.pdf")
        assert result.returncode == 0, result.stdout + result.stderr
        file = next(folder.glob("results/langevin/*/*.nc")).relative_to(folder)
        content = store.read(folder / file).attrs["content_sha256"]
        shutil.rmtree(folder / "results/langevin")
        return folder, str(file), content

    @pytest.fixture
    def disturbed(self, cluster, prepared, tmp_path):
        """Starts the slow job, by default in a folder of its own. Afterwards its numbers are right, and nothing is left over."""
        source, file, content = prepared
        runs = []

        def start(*arguments, folder=None):
            if folder is None:
                folder = tmp_path / f"project{len(runs)}"
                shutil.copytree(source, folder, symlinks=True)
            run = Run(folder, *SLOW, *arguments, "--", file)
            runs.append(run)
            until(lambda: run.submitted() or run.process.poll() is not None)
            assert run.process.poll() is None, run.log.read_text()
            job = run.submitted()[0]
            until(lambda: cluster.states().get(job) not in (None, "PENDING"))
            return run, job

        yield start
        for run in runs:
            run.stop()
        for folder in {run.folder for run in runs}:
            assert store.read(folder / file).attrs["content_sha256"] == content
            assert not list(folder.glob("results/**/.*.tmp"))
            assert not list(folder.glob("results/state/**/*.npz"))
            until(lambda folder=folder: not working_in(folder), seconds=10)
        states = cluster.states()
        assert not {states[job] for run in runs for job in run.submitted()} & {"RUNNING", "PENDING", "COMPLETING"}

    def test_runs_that_were_stopped_are_taken_up_again(self, cluster, undisturbed, disturbed):
        """One ends as by Ctrl-C and cancels its job. One is killed: its job goes on, beside the one submitted for the same file."""
        interrupted, first = disturbed()
        interrupted.interrupt()
        assert cluster.states()[first] == "CANCELLED"
        interrupted, second = disturbed(folder=interrupted.folder)
        killed, left = disturbed()
        killed.kill()
        assert cluster.states()[left] == "RUNNING"
        assert snakemake(killed.folder, *SLOW, "--unlock").returncode == 0
        killed, third = disturbed(folder=killed.folder)
        interrupted.finish()
        killed.finish()
        assert {cluster.states()[job] for job in (second, left, third)} == {"COMPLETED"}

    def test_jobs_that_are_ended_are_done_again_with_more(self, cluster, undisturbed, disturbed):
        """One goes over its memory, one over its time and one is cancelled: each is submitted once more."""
        greedy, fat = disturbed("--set-resources", "run_langevin:mem_mb=attempt*400")
        hanging, late = disturbed()
        asked = cluster.minutes(late)
        for pid in cluster.processes(late):
            os.kill(pid, signal.SIGSTOP)
        # SLURM counts time limits in minutes, and sees within half a minute that one is over.
        end = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(time.time() + 1))
        assert call("scontrol", "update", f"JobId={late}", f"EndTime={end}").returncode == 0
        unwanted, cancelled = disturbed()
        assert call("scancel", cancelled).returncode == 0
        for run in (greedy, hanging, unwanted):
            run.finish()
        states = cluster.states()
        ends = [[states[job] for job in run.submitted()] for run in (greedy, hanging, unwanted)]
        # FAILED: it is the step inside the job that SLURM ends, and the job's script ends with an error.
        assert ends == [["FAILED", "COMPLETED"], ["TIMEOUT", "COMPLETED"], ["CANCELLED", "COMPLETED"]]
        assert "exceeded memory limit" in next(greedy.folder.glob(f".snakemake/slurm_logs/**/{fat}.log")).read_text()
        assert [cluster.memory(job) for job in greedy.submitted()] == [400, 800]
        assert cluster.minutes(hanging.submitted()[1]) == 2 * asked

    def test_same_numbers_as_on_one_machine(self, cluster, undisturbed, tmp_path):
        result = snakemake(small_project(tmp_path), "--", *TARGETS)
        assert result.returncode == 0, result.stdout + result.stderr
        undisturbed.finish()
        print(call(ROOT / "tests/slurm/jobs", undisturbed.log).stdout)  # pytest -rP shows it
        copies = [tmp_path, undisturbed.folder]
        files = [sorted(path.relative_to(f) for path in f.glob("results/**/*.nc")) for f in copies]
        assert files[0] == files[1]
        for file in files[0]:
            local, remote = (store.groups(folder / file) for folder in copies)
            assert list(local) == list(remote)
            assert all(local[name].equals(remote[name]) for name in local), file
        # 22 jobs went to the cluster as a few, and nothing is left to do.
        jobs = undisturbed.submitted()
        assert len(jobs) <= 8
        states = cluster.states()
        assert {states[job] for job in jobs} == {"COMPLETED"}
        again = Run(undisturbed.folder, "--", *TARGETS)
        assert "Nothing to be done" in again.finish()
        assert not working_in(undisturbed.folder)

    def test_a_node_that_goes_down_and_comes_back(self, cluster, disturbed):
        run, job = disturbed()
        processes = cluster.processes(job) | cluster.watchers(job)
        cluster.kill("slurmd")
        for pid in processes:
            os.kill(pid, signal.SIGKILL)
        until(lambda: cluster.node().startswith("down"))
        assert call("slurmd", "-N", "localhost").returncode == 0
        run.finish()
        assert cluster.states()[job] == "COMPLETED"
        assert run.submitted() == [job]

    def test_a_controller_that_is_restarted(self, cluster, disturbed):
        run, job = disturbed()
        started = time.time()
        # It writes down every few seconds what it knows, and forgets what came later.
        until(lambda: cluster.processes(job) and cluster.saved() > started)
        cluster.kill("slurmctld")
        time.sleep(3)
        assert call("slurmctld").returncode == 0
        run.finish()
        assert cluster.states()[job] == "COMPLETED"
        assert run.submitted() == [job]
