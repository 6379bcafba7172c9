"""Clusters without SLURM: another engine, and a shared file system that is slow to show what was written.

`make test-cluster` runs these and those of tests/test_slurm.py.
"""

import os
import re
import sys

import pytest
from clusters import AT_LENGTH, LONG, assert_same_numbers, call, generic_engine
from helpers import ROOT, small_project, snakemake

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not AT_LENGTH, reason=LONG),
]

SUBMIT = str(ROOT / "tests/slurm/background")


def test_jobs_in_the_background_give_the_same_numbers(tmp_path_factory, tmp_path, monkeypatch):
    """All figures of the small project, with the command of docs/cluster.md and a qsub that starts jobs here."""
    submit = re.search(r"--cluster-generic-submit-cmd '(.*)'$", (ROOT / "docs/cluster.md").read_text(), re.M)[1]
    asked = tmp_path / "asked"
    qsub = tmp_path / "qsub"
    qsub.write_text(f'#!/bin/sh\necho "$@" >>{asked}\nshift 5\nexec {SUBMIT} "$@"\n')
    qsub.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    local, remote = (small_project(tmp_path_factory.mktemp("project")) for _ in range(2))
    for result in (snakemake(local), generic_engine(remote, submit, "--jobs", "3")):
        assert result.returncode == 0, result.stdout + result.stderr
    assert_same_numbers(local, remote)
    lines = asked.read_text().splitlines()
    seconds = [int(re.match(r"-terse -l h_vmem=\d+M -l h_rt=(\d+) \S+$", line)[1]) for line in lines]
    assert min(seconds) >= 15 * 60
    assert max(seconds) >= 60 * 60


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts need root")
def test_files_that_are_seen_late_are_waited_for(tmp_path):
    """With a wait that is shorter than the delay the run fails, so the delay is there."""
    ends = {}
    for wait in (60, 1):
        folder = tmp_path / f"wait{wait}"
        folder.mkdir()
        submit = f"{SUBMIT} --late 8 {tmp_path / f'hidden{wait}'}"
        options = ["--jobs", "3", "--latency-wait", str(wait), "--retries", "0"]
        ends[wait] = generic_engine(small_project(folder), submit, *options, "--", "figures/gated.pdf")
    assert ends[60].returncode == 0, ends[60].stdout + ends[60].stderr
    assert ends[1].returncode != 0
    assert "MissingOutputException" in ends[1].stdout + ends[1].stderr
    whole = tmp_path / "whole"
    whole.mkdir()
    assert snakemake(small_project(whole), "--", "figures/gated.pdf").returncode == 0
    assert_same_numbers(whole, tmp_path / "wait60")


def test_a_sweep_of_ten_thousand_points_is_planned(tmp_path):
    """Data, gates and limit in pieces of a hundred points, the curve, numbers and figure. docs/cluster.md has the times."""
    planned = call(
        sys.executable, ROOT / "benchmarks/cluster.py", "--jobs", 10_000, "--folder", tmp_path, "--dry-run", seconds=600
    )
    assert planned.returncode == 0, planned.stdout + planned.stderr
    print(planned.stdout)
    assert re.search(r"^tiny +204 of 204 ", planned.stdout, re.M)
    assert re.search(r"^run_gp +100$", (tmp_path / "run.log").read_text(), re.M)
