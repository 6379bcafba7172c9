"""The workflow on a real SLURM, started on this machine: the same numbers as without it, whatever happens to jobs and nodes.

It has three nodes, once with accounting and once without. Skipped where SLURM is not installed;
`apt-get install slurmctld slurmd slurm-client munge slurmdbd mariadb-server` as root brings it. With TEST_SLURM=all, as `make
test-cluster` has it, faults are tried on both.
"""

import os
import re
import shutil
import signal
import subprocess
import time
from functools import partial

import pytest
import yaml
from clusters import (
    AT_LENGTH,
    KINDS,
    LONG,
    TARGETS,
    Cluster,
    Run,
    assert_same_numbers,
    call,
    missing,
    until,
    why_not,
    working_in,
)
from helpers import ROOT, raw_configuration, small_project, snakemake

from ggdln.core.kinds import REGISTRIES
from ggdln.experiments import store
from ggdln.workflow.config import read_config
from ggdln.workflow.stages import Stages

SLOW = ("--configfile", "tests/slurm/slow.yaml")


@pytest.fixture(scope="module", params=KINDS)
def cluster(request, tmp_path_factory):
    if why_not(request.param):
        pytest.skip(why_not(request.param))
    cluster = Cluster(tmp_path_factory.mktemp("slurm"), request.param)
    yield cluster
    cluster.stop()


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


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    """The figures of the small project, made without SLURM."""
    folder = small_project(tmp_path_factory.mktemp("local"))
    result = snakemake(folder, "--", *TARGETS)
    assert result.returncode == 0, result.stdout + result.stderr
    return folder


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """A folder where all but the slow job has been done, that job's file, and the content it should have."""
    folder = small_project(tmp_path_factory.mktemp("project"))
    result = snakemake(folder, *SLOW, "--", "figures/slow/slow.pdf")
    assert result.returncode == 0, result.stdout + result.stderr
    file = next(folder.glob("results/langevin/*/*.nc")).relative_to(folder)
    content = store.read(folder / file).attrs["content_sha256"]
    shutil.rmtree(folder / "results/langevin")
    return folder, str(file), content


@pytest.fixture
def disturbed(cluster, prepared, tmp_path):
    """Starts the slow job, by default in a folder of its own. Afterwards its numbers are right, and nothing is left over."""
    if cluster.kind == "plain" and not AT_LENGTH and not missing("accounting"):
        pytest.skip(LONG)
    source, file, content = prepared
    runs = []

    def start(*arguments, folder=None, patient=False):
        if folder is None:
            folder = tmp_path / f"project{len(runs)}"
            shutil.copytree(source, folder, symlinks=True)
        run = Run(folder, cluster.kind, *SLOW, *arguments, "--", file, patient=patient)
        runs.append(run)
        job = run.wait_for_a_job()
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
    assert not {states.get(job) for run in runs for job in run.submitted()} & {"RUNNING", "PENDING", "COMPLETING"}


@pytest.mark.slow
class TestOnSlurm:
    @pytest.fixture(scope="class")
    def undisturbed(self, cluster, tmp_path_factory):
        """A run of two figures, without accounting of one. It goes on while other tests disturb jobs of their own."""
        targets = TARGETS if cluster.kind == "accounting" else ["figures/trained.pdf"]
        run = Run(small_project(tmp_path_factory.mktemp("undisturbed")), cluster.kind, "--", *targets)
        yield run
        run.stop()

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
        unwanted, cancelled = disturbed(patient=True)
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

    def test_same_numbers_as_on_one_machine(self, cluster, undisturbed, local):
        undisturbed.finish()
        print(call(ROOT / "tests/slurm/jobs", undisturbed.log).stdout)  # pytest -rP shows it
        assert_same_numbers(local, undisturbed.folder, part=cluster.kind == "plain")
        # About twenty jobs went to the cluster as a few, to more than one node, and nothing is left to do.
        jobs = undisturbed.submitted()
        assert len(jobs) <= 8
        known = cluster.jobs()
        assert {known[job][0] for job in jobs} == {"COMPLETED"}
        assert len({known[job][1] for job in jobs}) > 1
        again = Run(undisturbed.folder, cluster.kind, *undisturbed.arguments)
        assert "Nothing to be done" in again.finish()
        assert not working_in(undisturbed.folder)

    def test_a_node_that_goes_down_and_comes_back(self, cluster, disturbed):
        run, job = disturbed()
        cluster.processes(job)
        node = cluster.jobs()[job][1]
        assert cluster.crash(node) == [job]
        until(lambda: cluster.node(node).startswith("down"))
        cluster.start(node)
        run.finish()
        assert cluster.states()[job] == "COMPLETED"
        assert run.submitted() == [job]

    def test_a_controller_that_is_restarted(self, cluster, disturbed):
        run, job = disturbed()
        started = time.time()
        # It writes down every few seconds what it knows, and forgets what came later.
        until(lambda: cluster.processes(job) and cluster.saved() > started)
        cluster.away("slurmctld", 3)
        run.finish()
        assert cluster.states()[job] == "COMPLETED"
        assert run.submitted() == [job]

    def test_commands_that_stand_before_those_of_slurm(self, cluster, tmp_path):
        """One waits for a controller that is away, and submits once. One says what Snakemake understands."""
        environment = {**os.environ, "PATH": f"{ROOT / 'workflow/profiles/slurm/patient'}:{os.environ['PATH']}"}
        ask = partial(call, cwd=tmp_path, env=environment)

        def told():
            shown = ask(
                "sacct", "-X", "--parsable2", "--clusters", "all", "--noheader", "--format=JobIdRaw,State", "--name", "mine"
            )
            assert shown.returncode == 0, shown.stderr
            return shown.stdout.split()

        cluster.kill("slurmctld")
        command = ["sbatch", "--parsable", "--job-name=mine", "--mem=10", "--output=/dev/null", "--wrap=sleep 600"]
        waiting = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True)
        time.sleep(20)
        assert waiting.poll() is None
        cluster.start("slurmctld")
        job = waiting.communicate(timeout=120)[0].strip()
        until(lambda: told() == [f"{job}|RUNNING"])
        assert call("scancel", job).returncode == 0
        until(lambda: told() == [f"{job}|CANCELLED"])
        if cluster.kind == "plain":
            cluster.configure("MinJobAge", 2)
            try:
                until(lambda: job not in cluster.states(), seconds=300)
            finally:
                cluster.configure("MinJobAge", 3600)
            assert told() == [f"{job}|UNKNOWN"]
