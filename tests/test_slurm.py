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
from test_workflow import contents, copy_project, snakemake

from ggdln import store

ROOT = Path(__file__).resolve().parents[1]
QUICK = ("--configfile", "config/quick.yaml")
SLOW = ("--configfile", "tests/slurm/slow.yaml")
TARGETS = ("figures/quick/fig2.pdf", "figures/quick/figS5.pdf")


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


def until(condition, seconds=60):
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
        until(lambda: not Path(f"/proc/{pid}").exists() or "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text())

    def states(self):
        """State of each job: id -> state."""
        shown = call("squeue", "--noheader", "--states=all", "--format=%i|%T").stdout
        return dict(line.split("|") for line in shown.splitlines())

    def job_in(self, state, since=()):
        """The one job in this state that is not among those of `since`, or None."""
        return next((job for job, found in self.states().items() if found == state and job not in since), None)

    def memory(self, job):
        """Memory that a job asked for, in MB."""
        shown = call("scontrol", "show", "job", job).stdout
        return int(re.search(r"MinMemoryNode=(\d+)M", shown)[1])

    def processes(self, job):
        """Processes of a running job."""
        shown = call("scontrol", "listpids", job).stdout
        pids = {int(line.split()[0]) for line in shown.splitlines()[1:]} - {-1}
        watchers = [path.parent for path in Path("/proc").glob("[0-9]*/cmdline") if _says(path, f"slurmstepd: [{job}.")]
        return pids | {int(path.name) for path in watchers}

    def node(self):
        return call("sinfo", "--noheader", "--format=%T").stdout.strip()


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
    started = call(ROOT / "tests/slurm/start", folder, seconds=60)
    assert started.returncode == 0, started.stderr
    cluster = Cluster(folder)
    daemons = [cluster.pid(daemon) for daemon in ("munged", "slurmctld", "slurmd")]
    assert all(Path(f"/proc/{pid}").exists() for pid in daemons)
    yield cluster
    daemons = [cluster.pid(daemon) for daemon in ("munged", "slurmctld", "slurmd")]
    assert call(ROOT / "tests/slurm/stop", folder, seconds=120).returncode == 0
    assert not [pid for pid in daemons if Path(f"/proc/{pid}").exists()]
    assert not [path for path in Path("/proc").glob("[0-9]*/cmdline") if _says(path, "slurmstepd: [")]


class Run:
    """A Snakemake that sends its jobs to the cluster. It ends within the time it is given."""

    def __init__(self, folder, *arguments, seconds=500):
        command = ["timeout", "-k", "10", str(seconds), sys.executable, "-m", "snakemake"]
        command += ["--workflow-profile", "workflow/profiles/slurm", "--cores", "2"]
        # This cluster has no accounting, and its jobs are short.
        command += ["--slurm-status-command", "squeue", "--slurm-no-account", "--slurm-init-seconds-before-status-checks", "3"]
        self.log = folder / "run.log"
        with open(self.log, "w") as log:
            self.process = subprocess.Popen([*command, *arguments], cwd=folder, stdout=log, stderr=subprocess.STDOUT)

    def finish(self):
        code = self.process.wait()
        assert code == 0, f"{code}\n{self.log.read_text()}"
        return self.log.read_text()

    def submitted(self):
        return re.findall(r"submitted with SLURM jobid (\d+)", self.log.read_text())


def test_the_profile_keeps_the_settings_of_the_default_one(root):
    default, slurm = (
        yaml.safe_load((root / f"workflow/profiles/{name}/config.yaml").read_text()) for name in ("default", "slurm")
    )
    assert default.items() <= slurm.items()
    assert slurm["retries"] >= 1


def test_gpus_are_only_asked_for_where_they_help(root):
    """The commented switch, once uncommented, is valid and names the two rules that simulate."""
    text = (root / "workflow/profiles/slurm/config.yaml").read_text()
    assert "set-resources" not in yaml.safe_load(text)
    switched = yaml.safe_load(re.sub(r"^# (set-resources:|  \w+: \{gpu.*)$", r"\1", text, flags=re.M))
    assert set(switched["set-resources"]) == {"train_networks", "sample_chains"}


@pytest.mark.slow
@pytest.mark.xdist_group("slurm")
class TestOnSlurm:
    @pytest.fixture(scope="class")
    def project(self, tmp_path_factory):
        folder = tmp_path_factory.mktemp("project")
        copy_project(ROOT, folder)
        return folder

    @pytest.fixture(scope="class")
    def prepared(self, project):
        """A folder where all but the slow job has been done, that job's file, and the content it should have."""
        result = snakemake(project, *SLOW, "--", "figures/slow/slow.pdf")
        assert result.returncode == 0, result.stdout + result.stderr
        file = next(project.glob("results/langevin/*/*.nc")).relative_to(project)
        content = store.read(project / file).attrs["content_sha256"]
        shutil.rmtree(project / "results/langevin")
        return project, str(file), content

    @pytest.fixture
    def disturbed(self, cluster, prepared, tmp_path):
        """Start the slow job in a folder of its own; checks afterwards that its numbers are right and nothing is left over."""
        source, file, content = prepared
        folder = tmp_path / "project"
        shutil.copytree(source, folder, symlinks=True)
        runs = []

        def start(*arguments):
            known = set(cluster.states())
            run = Run(folder, *SLOW, *arguments, "--", file)
            runs.append(run)
            job = until(lambda: cluster.job_in("RUNNING", known) or run.process.poll() is not None)
            assert isinstance(job, str), run.log.read_text()
            return run, job

        yield start
        for run in runs:
            if run.process.poll() is None:
                run.process.terminate()
                run.process.wait()
        assert store.read(folder / file).attrs["content_sha256"] == content
        assert not list(folder.glob("results/**/.*.tmp"))
        assert not list(folder.glob("results/state/**/*.npz"))
        assert not {job for job, state in cluster.states().items() if state in ("RUNNING", "PENDING", "COMPLETING")}

    def test_same_numbers_as_on_one_machine(self, cluster, tmp_path):
        copies = [tmp_path / "local", tmp_path / "slurm"]
        for folder in copies:
            folder.mkdir()
            copy_project(ROOT, folder)
        run = Run(copies[1], *QUICK, "--", *TARGETS)
        result = snakemake(copies[0], *QUICK, "--", *TARGETS)
        assert result.returncode == 0, result.stdout + result.stderr
        run.finish()
        files = [sorted(path.relative_to(f) for path in f.glob("results/**/*.nc")) for f in copies]
        assert files[0] == files[1]
        for file in files[0]:
            if file.parent.name == "quick":
                assert contents(copies[0], file.stem) == contents(copies[1], file.stem)
            else:
                local, remote = (store.read(folder / file).attrs["content_sha256"] for folder in copies)
                assert local == remote, file
        # 23 jobs went to the cluster as a few, and nothing is left to do.
        assert len(run.submitted()) <= 8
        states = cluster.states()
        assert {states[job] for job in run.submitted()} == {"COMPLETED"}
        again = Run(copies[1], *QUICK, "--", *TARGETS)
        assert "Nothing to be done" in again.finish()

    def test_a_job_over_its_memory_gets_more(self, cluster, disturbed):
        run, first = disturbed("--set-resources", "sample_chains:mem_mb=attempt*300")
        assert cluster.memory(first) == 300
        run.finish()
        *failed, last = run.submitted()
        assert first in failed
        states = cluster.states()
        assert states[last] == "COMPLETED"
        assert not {states[job] for job in failed} & {"COMPLETED", "RUNNING", "PENDING"}
        assert [cluster.memory(job) for job in (*failed, last)] == [300 * (i + 1) for i in range(len(failed) + 1)]

    def test_a_cancelled_job_is_done_again(self, cluster, disturbed):
        run, job = disturbed()
        assert call("scancel", job).returncode == 0
        run.finish()
        assert len(run.submitted()) == 2
        assert cluster.states()[job] == "CANCELLED"

    def test_a_run_that_was_stopped_is_taken_up_again(self, cluster, disturbed):
        run, job = disturbed()
        os.kill(run.process.pid, signal.SIGINT)  # timeout passes it on
        assert run.process.wait() != 0
        until(lambda: cluster.states().get(job) == "CANCELLED")
        run, second = disturbed("--rerun-incomplete")
        run.finish()
        assert second != job

    def test_a_node_that_goes_down_and_comes_back(self, cluster, disturbed):
        run, job = disturbed()
        processes = until(lambda: len(cluster.processes(job)) > 4 and cluster.processes(job))
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
        cluster.kill("slurmctld")
        time.sleep(3)
        assert call("slurmctld").returncode == 0
        run.finish()
        assert cluster.states()[job] == "COMPLETED"
        assert run.submitted() == [job]
