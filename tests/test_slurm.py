"""The workflow on a real SLURM, started on this machine: the same numbers as without it, whatever happens to jobs and nodes.

It has three nodes, once with accounting and once without. Skipped where SLURM is not installed;
`apt-get install slurmctld slurmd slurm-client munge slurmdbd mariadb-server` as root brings it. tests/test_cluster.py has the faults
that take longer.
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
    children,
    generic_engine,
    missing,
    set_up,
    until,
    why_not,
    working_in,
)
from helpers import ROOT, raw_configuration, small_project, snakemake
from workspace import link_environment

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

    def start(*arguments, folder=None, wait=True, patient=False):
        if folder is None:
            folder = tmp_path / f"project{len(runs)}"
            shutil.copytree(source, folder, symlinks=True)
        run = Run(folder, cluster.kind, *SLOW, *arguments, "--", file, patient=patient)
        runs.append(run)
        if not wait:
            return run
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
        """A run that goes on while other tests disturb jobs of their own."""
        run = Run(small_project(tmp_path_factory.mktemp("undisturbed")), cluster.kind, "--", *TARGETS)
        yield run
        run.stop()

    def test_runs_that_were_stopped_are_taken_up_again(self, cluster, undisturbed, disturbed):
        """One ends as by Ctrl-C and cancels its job. One is killed: its job goes on, beside the one submitted for the same file."""
        # While Snakemake asks about its jobs it knows of none, and an interrupt in that moment cancels none.
        folder, state = None, None
        for _ in range(3):
            interrupted, first = disturbed(folder=folder)
            interrupted.interrupt()
            folder, state = interrupted.folder, cluster.states()[first]
            if state == "CANCELLED":
                break
            assert call("scancel", first).returncode == 0
        assert state == "CANCELLED"
        interrupted, second = disturbed(folder=folder)
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
        assert_same_numbers(local, undisturbed.folder)
        # They went to the cluster as a few jobs, jobs went to more than one node, and nothing is left to do.
        jobs = undisturbed.submitted()
        assert len(jobs) <= 8
        known = cluster.jobs()
        assert {known[job][0] for job in jobs} == {"COMPLETED"}
        assert len({node for _, node in known.values() if node}) > 1  # with those of other tests, which fill nodes too
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

        def submit(name):
            # It takes the whole cluster, so that a second one waits.
            settings = [f"--job-name={name}", "--nodes=3", "--exclusive", "--mem=10", "--output=/dev/null", "--wrap=sleep 600"]
            return ["sbatch", "--parsable", *settings]

        cluster.kill("slurmctld")
        waiting = subprocess.Popen(submit("mine"), cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True)
        time.sleep(20)
        assert waiting.poll() is None
        cluster.start("slurmctld")
        job = waiting.communicate(timeout=120)[0].strip()
        until(lambda: told() == [f"{job}|RUNNING"])
        if cluster.kind == "accounting":
            later = ask(*submit("later")).stdout.strip()
            where = ["sacct", "-j", later, "-n", "-X", "-o", "nodelist%-256"]
            until(lambda: call(*where).stdout.strip() == "None assigned")
            assert ask(*where).stdout.strip() == ""
            assert call("scancel", later).returncode == 0
        assert call("scancel", job).returncode == 0
        until(lambda: told() == [f"{job}|CANCELLED"])
        if cluster.kind == "plain" and AT_LENGTH:  # jobs are forgotten once in a minute
            cluster.configure("MinJobAge", 2)
            try:
                until(lambda: job not in cluster.states(), seconds=300)
            finally:
                cluster.configure("MinJobAge", 3600)
            assert told() == [f"{job}|UNKNOWN"]


@pytest.mark.slow
@pytest.mark.skipif(not AT_LENGTH, reason=LONG)
class TestAtLength:
    def test_a_controller_that_is_restarted(self, cluster, disturbed):
        run, job = disturbed()
        started = time.time()
        # It writes down every few seconds what it knows, and forgets what came later.
        until(lambda: cluster.processes(job) and cluster.saved() > started)
        cluster.away("slurmctld", 3)
        run.finish()
        assert cluster.states()[job] == "COMPLETED"
        assert run.submitted() == [job]

    def test_nodes_are_drained_and_lost_while_a_run_goes_on(self, cluster, local, tmp_path):
        """Jobs are still to be submitted when the node is lost, which takes the patient commands where there is accounting."""
        run = Run(small_project(tmp_path), cluster.kind, "--", *TARGETS, patient=True)

        def busy():
            """Nodes on which jobs of ours run, once they are two."""
            known = cluster.jobs()
            nodes = {known[job][1] for job in run.submitted() if known.get(job, [""])[0] == "RUNNING"}
            return sorted(nodes) if len(nodes) > 1 or run.process.poll() is not None else None

        drained, lost, *_ = until(busy, seconds=1500)
        cluster.update(drained, "DRAIN")
        until(lambda: any(cluster.members(job) for job, (_, node) in cluster.jobs().items() if node == lost))
        hit = cluster.crash(lost)
        assert hit
        later = len(run.submitted())
        try:
            run.finish()
            known = cluster.jobs()
            assert {known[job][0] for job in run.submitted()} == {"COMPLETED"}
            # What was hit has been repeated elsewhere, under its number, and what came later avoided both.
            assert {known[job][1] for job in [*hit, *run.submitted()[later:]]}.isdisjoint({drained, lost})
        finally:
            cluster.start(lost)
            cluster.update(drained, "RESUME")
        assert_same_numbers(local, tmp_path)
        until(lambda: {cluster.node(node) for node in cluster.nodes} == {"idle"})

    @pytest.mark.parametrize("daemon", ["slurmctld", "slurmdbd", "mariadbd"])
    def test_a_daemon_that_is_away_for_a_minute(self, cluster, disturbed, daemon):
        """The job ends while nobody answers. Without accounting it takes the patient commands to hear of it later."""
        if daemon not in cluster.daemons:
            pytest.skip("no accounting")
        run, job = disturbed(patient=cluster.kind == "plain")
        started = time.time()
        until(lambda: cluster.processes(job) and cluster.saved() > started)
        cluster.away(daemon, 60)
        run.finish()
        until(lambda: cluster.states().get(job) == "COMPLETED")
        assert run.submitted() == [job]

    def test_a_controller_that_is_away_when_jobs_are_submitted(self, cluster, disturbed):
        cluster.kill("slurmctld")
        run = disturbed(patient=True, wait=False)
        time.sleep(60)
        assert run.process.poll() is None
        assert not run.submitted()
        cluster.start("slurmctld")
        run.finish()
        assert len(run.submitted()) == 1

    def test_a_job_that_the_controller_has_forgotten(self, cluster, disturbed):
        """It ended and was purged while the login node was asleep."""
        run, job = disturbed(patient=cluster.kind == "plain")
        cluster.processes(job)
        pids = children(run.process.pid)
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        cluster.configure("MinJobAge", 2)
        try:
            until(lambda: job not in cluster.states(), seconds=300)
        finally:
            cluster.configure("MinJobAge", 3600)
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
        run.finish()
        assert run.submitted() == [job]

    def test_an_account_that_there_is_not_is_told(self, cluster, prepared, tmp_path):
        if cluster.kind == "plain":
            pytest.skip("no accounting")
        source, file, _ = prepared
        shutil.copytree(source, tmp_path / "project", symlinks=True)
        run = Run(tmp_path / "project", cluster.kind, *SLOW, "--default-resources", "slurm_account=chemistry", "--", file)
        assert run.process.wait() not in (0, 124)
        assert "The given account chemistry appears to be invalid" in run.log.read_text()
        assert not run.submitted()

    def test_make_and_plain_snakemake_on_a_login_node(self, cluster, prepared, tmp_path):
        """As in the guide: the profile as it is, but for Snakemake alone without accounting, which needs the two lines for that."""
        commands = {
            "make": "make figures PROFILE=slurm CONFIG=tests/slurm/slow.yaml",
            "snakemake": "snakemake --workflow-profile workflow/profiles/slurm --configfile tests/slurm/slow.yaml",
        }
        runs = {}
        for name, command in commands.items():
            folder = tmp_path / name
            folder.mkdir()
            link_environment(small_project(folder))
            if name == "snakemake":
                set_up(folder, cluster.kind)
                command = f'PATH="$PWD/.venv/bin:$PATH"; {command}'
            with open(folder / "log", "w") as log:
                settings = {"shell": True, "cwd": folder, "stdout": log, "stderr": subprocess.STDOUT}
                runs[folder] = subprocess.Popen(f"timeout -k 10 1500 bash -c '{command}'", **settings)
        for folder, run in runs.items():
            code, log = run.wait(), (folder / "log").read_text()
            assert code == 0, log
            assert "submitted with SLURM jobid" in log
            assert (folder / "figures/slow/slow.pdf").exists()
            made, expected = (store.groups(place / "results/slow/slow.nc") for place in (folder, prepared[0]))
            assert made.keys() == expected.keys()
            assert all(made[name].equals(expected[name]) for name in made)
        plan = call("make", "plan", "PROFILE=slurm", "CONFIG=tests/slurm/slow.yaml", cwd=tmp_path / "make", seconds=1500)
        assert re.search(r"^slow +0 of \d+", plan.stdout, re.M), plan.stdout + plan.stderr

    def test_the_engine_for_any_cluster_submits_with_sbatch(self, cluster, local, tmp_path):
        submit = "sbatch --parsable --output=/dev/null --mem={resources.mem_mb} --time={resources.runtime}"
        result = generic_engine(small_project(tmp_path), submit, "--", *TARGETS)
        assert result.returncode == 0, result.stdout + result.stderr
        assert "with external jobid" in result.stdout + result.stderr
        assert_same_numbers(local, tmp_path)
