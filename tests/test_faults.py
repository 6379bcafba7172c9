"""Faults done for real to a running workflow: in the end its numbers are those of an undisturbed run.

A short round by default; `make test-faults` sets FAULT_ROUNDS to kill at many more random moments.
"""

import contextlib
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import netCDF4
import numpy as np
import pytest
from helpers import append, small_project, snakemake

import ggdln
from ggdln.experiments import store

ROUNDS = int(os.environ.get("FAULT_ROUNDS", "3"))
CURVES = ("trained/gd", "sampled/posterior", "narrow/one_loop", "narrow/exact", "narrow/blockwise")
TARGETS = ("--", *(f"results/curves/{curve}.nc" for curve in CURVES), "figures/gated.pdf")

BLOCKWISE = '''
"""A method of a user's own that hands its samples to the theory in blocks."""

from typing import ClassVar

from ggdln.core.kinds import Look
from ggdln.experiments.methods import Method
from ggdln.observables import observe
from ggdln.theory.solution import solve


class Blockwise(Method):
    """Finite-width theory, from blocks of five samples"""

    look: ClassVar[Look] = Look("blocks")
    offers: ClassVar[tuple] = ("predict",)

    def measure(self, point):
        x, g, y = point.sample.task.x, point.sample.g, point.sample.task.y
        found = []
        for network in point.networks:
            blocks = ((x[i : i + 5], g[i : i + 5], y[i : i + 5]) for i in range(0, len(x), 5))
            told = {"width": network["N"], "depth": network["L"], "sigma": network["sigma"], "temperature": network["T"]}
            found.append(observe(point.observables, solve(blocks, **told), point.sample, self.offers))
        return found
'''


def fresh(folder):
    """The small experiments, with chains that run for some seconds and save their state all the time; data in blocks, too."""
    chains = {"reduced": {"methods": {"posterior": {"samples": 3000}}}}
    one_point = {"reduced": {"sweep": {"gates.M": [4]}}}
    narrow = {"reduced": {"methods": {"exact": {"samples": 200}, "blockwise": {}}}}
    experiments = {"sampled": chains, "gated": one_point, "narrow": narrow}
    kinds = ["my_kinds.py", "blockwise.py"]
    small_project(folder, machine={"checkpoint_seconds": 0.1}, kinds=kinds, experiments=experiments)
    (folder / "blockwise.py").write_text(BLOCKWISE)
    return folder


def start(folder):
    """The workflow in a process group of its own."""
    command = [sys.executable, "-m", "snakemake", "--cores", "2", *TARGETS]
    with open(folder / "run.log", "a") as log:
        return subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, start_new_session=True)


def group_of(process):
    """Process ids of the group, the workflow itself and its jobs."""
    found = subprocess.run(["pgrep", "-g", str(process.pid)], capture_output=True, text=True, check=False)
    return [int(pid) for pid in found.stdout.split()]


def end(process):
    for pid in group_of(process):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.wait()


def finish(folder):
    assert snakemake(folder, "--unlock").returncode == 0
    result = snakemake(folder, *TARGETS)
    assert result.returncode == 0, result.stdout + result.stderr
    return result


def sums(folder):
    """Checksums of the contents of all files the workflow keeps, and of the figures' bytes."""
    contents = {}
    for path in sorted((folder / "results").rglob("*.nc")):
        for name, data in store.groups(path).items():
            contents[f"{path.relative_to(folder)}/{name}"] = data.attrs["content_sha256"]
    figures = {path.name: path.read_bytes() for path in (folder / "figures").glob("gated.*")}
    return contents, figures


@pytest.fixture(scope="module")
def faults():
    """Count faults that were survived; FAULT_TABLE names a file for the table."""
    counts = Counter()
    yield lambda name, times=1: counts.update({name: times})
    if table := os.environ.get("FAULT_TABLE"):
        rows = [f"| {name} | {count} | {count} | 0 |" for name, count in sorted(counts.items())]
        lines = ["| fault | tried | survived | lost |", "|---|--:|--:|--:|", *rows]
        Path(table).write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The folder of an undisturbed run, and how many seconds it takes here."""
    folder, begin = fresh(tmp_path_factory.mktemp("calm")), time.monotonic()
    result = snakemake(folder, *TARGETS)
    assert result.returncode == 0, result.stdout + result.stderr
    return folder, time.monotonic() - begin


@pytest.fixture(scope="module")
def calm(undisturbed):
    """What an undisturbed run gives."""
    return sums(undisturbed[0])


def wait_for_state(folder, process):
    """Wait until a sampler has saved a state."""
    while not list((folder / "results").glob("state/posterior/*/*/*/*.npz")):
        assert process.poll() is None, (folder / "run.log").read_text()
        time.sleep(0.02)


@pytest.mark.slow
def test_a_job_killed_half_way_goes_on_from_its_state(calm, tmp_path, faults):
    """SIGKILL for the workflow and its jobs while chains run; the rerun says that it goes on, and gives the same bits."""
    process = start(fresh(tmp_path))
    try:
        wait_for_state(tmp_path, process)
        time.sleep(0.5)
    finally:
        end(process)
    left = list((tmp_path / "results").glob("state/posterior/*/*/*/*.npz"))
    assert left
    finish(tmp_path)
    logs = "".join(path.read_text() for path in (tmp_path / "logs/run_posterior").rglob("*.log"))
    assert "going on from checkpoint" in logs
    assert sums(tmp_path) == calm
    assert not list((tmp_path / "results/state").rglob("*.npz"))
    faults("SIGKILL of everything while chains run")


def kill(target, process, folder, rng):
    """Kill what `target` says, and tell whether it was there."""
    if target == "workflow":
        process.kill()
        time.sleep(rng.uniform(0, 1))  # its jobs go on
        return True
    if target == "everything while a job writes":
        # A file exists under its temporary name for some milliseconds.
        end_of_wait = time.monotonic() + 10
        while process.poll() is None and time.monotonic() < end_of_wait:
            if any(name.endswith(".tmp") for _, _, names in os.walk(folder / "results") for name in names):
                end(process)
                return True
        return False
    jobs = [pid for pid in group_of(process) if pid != process.pid]
    if target == "a job" and jobs:
        with contextlib.suppress(ProcessLookupError):
            os.kill(rng.choice(jobs), signal.SIGKILL)
        time.sleep(rng.uniform(0, 2))
    return target == "everything" or bool(jobs)


@pytest.mark.long
def test_kills_at_random_moments_lose_nothing(undisturbed, calm, tmp_path, faults):
    """SIGKILL of everything, of the workflow alone, of one job, or of all while a file is written, again and again."""
    seed = random.SystemRandom().randrange(2**32)
    print("seed", seed)
    rng = random.Random(seed)
    (_, seconds), done = undisturbed, Counter()
    fresh(tmp_path)
    while done.total() < ROUNDS:
        process = start(tmp_path)
        try:
            deadline = time.monotonic() + rng.uniform(0, seconds / 2)
            while time.monotonic() < deadline and process.poll() is None:
                time.sleep(0.05)
            target = rng.choice(["everything", "workflow", "a job", "everything while a job writes"])
            if kill(target, process, tmp_path, rng):
                done[target] += 1
        finally:
            end(process)
        assert snakemake(tmp_path, "--unlock").returncode == 0
        if process.returncode == 0:
            # All is made: begin again.
            assert sums(tmp_path) == calm
            shutil.rmtree(tmp_path / "results")
            shutil.rmtree(tmp_path / "figures")
    finish(tmp_path)
    assert sums(tmp_path) == calm
    for target, count in done.items():
        faults(f"SIGKILL of {target}", count)


SAVING = """
import sys
import numpy as np
import ggdln

x = np.random.default_rng(0).standard_normal((400, 4))
g, y = (x[:, :2] > 0) * 1.0, np.sign(x[:, 0])
print("ready", flush=True)
while True:
    if sys.argv[2] == "exact":
        solution = ggdln.solve_exact(x[:30], g[:30], y[:30], width=10, temperature=0.1, draws=20, chains=2, seed=1)
    else:
        blocks = ((x[i : i + 20], g[i : i + 20], y[i : i + 20]) for i in range(0, 400, 20))
        solution = ggdln.solve(blocks, width=10, temperature=0.1, loops=int(sys.argv[2] == "one loop"))
    solution.save(sys.argv[1])
    print("saved", flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["exact", "blocks", "one loop"])
def test_a_program_killed_at_any_moment_leaves_a_whole_solution_or_none(kind, tmp_path, faults):
    """Programs of a user's own that solve and save, again and again: the file is always whole, and says the same."""
    path, rng, rounds = tmp_path / "solution.nc", np.random.default_rng(), max(3, ROUNDS // 5)
    x = np.random.default_rng(1).standard_normal((5, 4))
    known = set()
    for _ in range(rounds):
        command = [sys.executable, "-c", SAVING, str(path), kind]
        program = subprocess.Popen(command, stdout=subprocess.PIPE, env=os.environ | {"OMP_NUM_THREADS": "1"})
        for _ in range(rng.integers(1, 4)):  # "ready" or some files later
            program.stdout.readline()
        time.sleep(rng.uniform(0, 0.3))
        program.kill()
        program.communicate()
        if path.exists():
            known.add(np.concatenate(ggdln.load(path).predict(x, (x[:, :2] > 0) * 1.0)).tobytes())
    assert len(known) == 1
    faults(f"SIGKILL of a program that saves a solution: {kind}", rounds)


@pytest.mark.long
def test_a_second_workflow_in_the_same_folder_is_refused(calm, tmp_path, faults):
    """It says that the folder is locked and touches nothing; the first one finishes."""
    process = start(fresh(tmp_path))
    try:
        wait_for_state(tmp_path, process)
        second = snakemake(tmp_path, *TARGETS)
        assert second.returncode != 0
        assert "lock" in second.stderr
        assert process.wait(timeout=300) == 0
    finally:
        end(process)
    assert sums(tmp_path) == calm
    faults("a second workflow in the same folder")


@pytest.mark.long
def test_a_module_edited_while_a_job_runs_discards_its_result(calm, tmp_path, faults):
    """The job says so and fails, its state is not carried on, and the next run starts it afresh with the new code."""
    process = start(fresh(tmp_path))
    try:
        wait_for_state(tmp_path, process)
        append(tmp_path / "src/ggdln/networks/gibbs.py", "\nEDITED = 1\n")
        append(tmp_path / "src/ggdln/theory/saddle.py")  # a comment, which doesn't matter
        assert process.wait(timeout=300) != 0
    finally:
        end(process)
    log = (tmp_path / "run.log").read_text()
    assert "RuntimeError: the code of this job was edited" in log
    assert re.findall(r"Error in rule (\w+):", log) == ["run_posterior"]
    finish(tmp_path)
    assert "going on from checkpoint" not in "".join(path.read_text() for path in (tmp_path / "logs").rglob("*.log"))
    assert sums(tmp_path) == calm
    faults("a module edited while a job runs")


def from_an_older_version(path):
    """The file as an older version of the code would have marked it."""
    with netCDF4.Dataset(path, "a") as dataset:
        dataset.format = "ggdln 0"


def with_a_flipped_bit(path):
    """One bit of the stored numbers is another."""
    numbers, data = store.read(path).weights.values.tobytes(), path.read_bytes()
    place = data.index(numbers) + len(numbers) // 2
    path.write_bytes(data[:place] + bytes([data[place] ^ 4]) + data[place + 1 :])


DAMAGE = {
    "older": from_an_older_version,
    "bit-flipped": with_a_flipped_bit,
    "truncated": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "empty": lambda path: path.write_bytes(b""),
    "HTML": lambda path: path.write_bytes(b"<!DOCTYPE html><html><body>404</body></html>"),
}


@pytest.mark.long
def test_cut_results_of_every_method_are_named_and_replaced(undisturbed, calm, tmp_path, faults):
    """Curves of one loop, the exact posterior and data in blocks are cut in half; the next stage names them all."""
    shutil.copytree(undisturbed[0], tmp_path, symlinks=True, dirs_exist_ok=True)
    methods = ("one_loop", "exact", "blockwise")
    victims = [next((tmp_path / "results" / method).rglob("*.nc")) for method in methods]
    for victim in victims:
        DAMAGE["truncated"](victim)
    targets = ("--", *(f"results/curves/narrow/{method}.nc" for method in methods))
    broken = snakemake(tmp_path, "--keep-going", "--forcerun", "assemble_curve", *targets)
    assert broken.returncode != 0
    for victim in victims:
        told = f"{re.escape(str(victim.relative_to(tmp_path)))}: truncated, damaged.*delete it to have it made again"
        assert re.search(told, broken.stdout + broken.stderr)
        victim.unlink()
    finish(tmp_path)
    assert sums(tmp_path) == calm
    faults("a result of one loop, of exact or of blocks cut in half", len(victims))


@pytest.mark.long
def test_damaged_files_are_named_and_replaced(tmp_path, faults):
    """The next stage refuses each and names it; deleted as the message says, they are made anew with the same contents."""
    target = ("--", "results/curves/gated/gp.nc")
    points = {"experiments": {"gated": {"reduced": {"sweep": {"gates.M": list(range(2, 2 + len(DAMAGE)))}}}}}
    result = snakemake(small_project(tmp_path, **points), *target)
    assert result.returncode == 0, result.stdout + result.stderr
    before = sums(tmp_path)
    victims = dict(zip(DAMAGE, (tmp_path / "results/gates").rglob("*.nc"), strict=True))
    for damage, victim in victims.items():
        DAMAGE[damage](victim)
    broken = snakemake(tmp_path, "--forcerun", "run_gp", *target)
    assert broken.returncode != 0
    message = broken.stdout + broken.stderr
    for victim in victims.values():
        assert re.search(f"{re.escape(str(victim.relative_to(tmp_path)))}: .*delete it to have it made again", message)
        victim.unlink()
    result = snakemake(tmp_path, "--forcerun", "run_gp", *target)
    assert result.returncode == 0, result.stdout + result.stderr
    assert sums(tmp_path) == before
    for damage in DAMAGE:
        faults(f"a file damaged: {damage}")


def mount(*arguments):
    return subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)


@pytest.fixture
def small_disk(tmp_path):
    """A project whose results are on a disk of their own; needs the right to mount."""
    disk = fresh(tmp_path) / "results"
    disk.mkdir()
    made = mount("-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk))
    if made.returncode:
        pytest.skip(f"cannot mount a small disk: {made.stderr.strip()}")
    yield tmp_path
    subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.long
def test_a_full_disk_is_reported_and_nothing_half_written_stays(small_disk, calm, faults):
    """The run fails with 'No space left'; every file left is whole; with more space it finishes with the same numbers."""
    result = snakemake(small_disk, *TARGETS)
    assert result.returncode != 0
    assert "No space left" in result.stdout + result.stderr
    for path in (small_disk / "results").rglob("*.nc"):
        store.groups(path)
    assert mount("-o", "remount,size=1g", str(small_disk / "results")).returncode == 0
    finish(small_disk)
    assert sums(small_disk) == calm
    faults("a full disk")


@pytest.mark.long
def test_a_read_only_results_folder_is_reported(small_disk, faults):
    """The error names the folder; nothing is drawn."""
    assert mount("-o", "remount,ro", str(small_disk / "results")).returncode == 0
    result = snakemake(small_disk, "--", "figures/gated.pdf")
    assert result.returncode != 0
    assert "Read-only file system" in result.stdout + result.stderr
    assert not list(small_disk.glob("figures/*.pdf"))
    faults("a read-only results folder")
