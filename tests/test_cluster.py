"""Clusters at length: faults of SLURM's daemons and nodes while a run goes on, other engines, and slow shared file systems.

Those that need SLURM start one, as tests/test_slurm.py does, with TEST_SLURM=all; `make test-cluster` runs all of them.
"""

import importlib.util
import os
import subprocess
import sys

import pytest
from clusters import assert_same_numbers
from helpers import ROOT, small_project, snakemake

pytestmark = pytest.mark.slow

GENERIC = ("--executor", "cluster-generic", "--seconds-between-status-checks", "1", "--max-status-checks-per-second", "10")


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    """All figures of the small project, made without a cluster."""
    folder = small_project(tmp_path_factory.mktemp("local"))
    result = snakemake(folder)
    assert result.returncode == 0, result.stdout + result.stderr
    return folder


def engine(folder, submit, *arguments):
    """A run of the small project by the profile for SLURM, but with another engine."""
    if importlib.util.find_spec("snakemake_executor_plugin_cluster_generic") is None:
        pytest.skip("snakemake-executor-plugin-cluster-generic is not installed")
    command = ["timeout", "-k", "10", "600", sys.executable, "-m", "snakemake", "--workflow-profile", "workflow/profiles/slurm"]
    command += [*GENERIC, "--cluster-generic-submit-cmd", submit, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


class TestOtherEngines:
    def test_jobs_in_the_background_give_the_same_numbers(self, local, tmp_path):
        folder = small_project(tmp_path)
        result = engine(folder, str(ROOT / "tests/slurm/background"), "--jobs", "3")
        assert result.returncode == 0, result.stdout + result.stderr
        assert_same_numbers(local, folder)

    @pytest.mark.skipif(os.geteuid() != 0, reason="mounts need root")
    def test_files_that_are_seen_late_are_waited_for(self, tmp_path):
        """With a wait that is shorter than the delay the run fails, so the delay is there."""
        ends = {}
        for wait in (60, 1):
            folder = tmp_path / f"wait{wait}"
            folder.mkdir()
            submit = f"{ROOT / 'tests/slurm/background'} --late 8 {tmp_path / f'hidden{wait}'}"
            options = ["--jobs", "3", "--latency-wait", str(wait), "--retries", "0"]
            ends[wait] = engine(small_project(folder), submit, *options, "--", "figures/gated.pdf")
        assert ends[60].returncode == 0, ends[60].stdout + ends[60].stderr
        assert ends[1].returncode != 0
        assert "MissingOutputException" in ends[1].stdout + ends[1].stderr
        whole = tmp_path / "whole"
        whole.mkdir()
        assert snakemake(small_project(whole), "--", "figures/gated.pdf").returncode == 0
        assert_same_numbers(whole, tmp_path / "wait60")
