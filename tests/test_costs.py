"""Predicted costs: they cover every job, follow its sizes, and ask for more memory than was measured."""

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from ggdln.workflow.config import load_config, read_config
from ggdln.workflow.costs import MEMORY_FACTOR, SNAKEMAKE_MB, CurveCosts, Sizes
from ggdln.experiments.experiment import Chunk, Curve
from ggdln.workflow.jobs import Jobs, read_benchmarks

ROOT = Path(__file__).resolve().parents[1]
FILES = {
    "paper": ["config/config.yaml", "config/figures.yaml"],
    "quick": ["config/config.yaml", "config/figures.yaml", "config/quick.yaml"],
}


@pytest.fixture(scope="module", params=FILES)
def jobs(request):
    return Jobs(load_config(ROOT, [ROOT / file for file in FILES[request.param]]))


@pytest.fixture(scope="module")
def paper():
    return Jobs(load_config(ROOT, [ROOT / file for file in FILES["paper"]]))


def test_every_job_has_a_cost_that_grows_with_each_attempt(jobs):
    for figure in jobs.config.figures:
        for job in jobs.of_figure(figure).values():
            assert job.cost.seconds > 0
            assert job.cost.mem_mb(1) >= MEMORY_FACTOR * job.cost.megabytes + SNAKEMAKE_MB
            assert 60 * job.cost.runtime(1) > job.cost.seconds
            assert job.cost.mem_mb(3) == 3 * job.cost.mem_mb(1)
            assert job.cost.runtime(2) == 2 * job.cost.runtime(1)


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory):
    """An empty folder in which the workflow can be planned."""
    folder = tmp_path_factory.mktemp("elsewhere")
    for name in ("Snakefile", "config", "src", "workflow", "environment.yml"):
        (folder / name).symlink_to(ROOT / name)
    return folder


def run(folder, *command):
    result = subprocess.run([sys.executable, *command], cwd=folder, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def test_the_jobs_are_those_of_the_workflow(elsewhere):
    quick = Jobs(load_config(ROOT, [ROOT / file for file in FILES["quick"]]))
    expected = {job.output: job for figure in quick.config.figures for job in quick.of_figure(figure).values()}
    shown = run(elsewhere, "-m", "snakemake", "--cores", "1", "--dry-run", "--configfile", "config/quick.yaml")
    pattern = r"^rule (\w+):\n    input: (.*)\n    output: (.*)\n    log: .*\n(?:    .*\n)*?    benchmark: (.*)$"
    found = {}
    for rule, inputs, outputs, benchmark in re.findall(pattern, shown, re.M):
        made = {file for file in inputs.split(", ") if file.startswith("results/")}
        found[outputs.split(", ")[0]] = rule, made, benchmark
    assert found == {output: (job.rule, set(job.inputs), f"benchmarks/{job.benchmark}") for output, job in expected.items()}


def test_plan_counts_what_is_left_and_shows_what_was_taken(elsewhere):
    def rows(*more):
        shown = run(elsewhere, "workflow/plan.py", "--configfile", "config/quick.yaml", *more)
        return {line.split()[0]: line.split() for line in shown.splitlines() if line.strip()}

    before = rows("--cores", "2")
    assert before["figS5"][1:4] == ["5", "of", "5"]
    quick = Jobs(load_config(ROOT, [ROOT / file for file in FILES["quick"]]))
    everything = {output for figure in quick.config.figures for output in quick.of_figure(figure)}
    assert before["all"][1:4] == [str(len(everything)), "of", str(len(everything))]
    on_cluster = rows("--profile", "slurm")
    assert int(on_cluster["all"][4]) < len(everything) / 4
    run(elsewhere, "-m", "snakemake", "--cores", "2", "--configfile", "config/quick.yaml", "--", "figures/quick/figS5.pdf")
    after = rows("--cores", "2")
    assert after["figS5"][1:4] == ["0", "of", "5"]
    predicted, seen, to, wall = after["figS5"][-4:]
    assert to == "-"
    assert 0 < float(seen) <= float(wall)
    assert float(predicted) > 0
    assert after["fig1"][-1] == before["fig1"][-1]
    assert int(after["all"][1]) == len(everything) - 5


def sweep_of(n):
    """A configuration with a sweep of n points of the gates."""
    values = {
        "task": {"kind": "noisy_teacher", "N0": 10, "P": 50, "P_t": 20, "N_T": 50, "gamma": 0.01, "epsilon": 0.1},
        "gates": {"kind": "random", "b": 0.0},
        "network": {"L": 1, "N": 20, "sigma": 1.0},
        "sweep": {"gates.M": list(range(1, n + 1))},
        "methods": {"gp": {}, "gd": {"runs": 4}},
        "draws": 4,
    }
    series = [{"experiment": "wide", "method": method} for method in values["methods"]]
    panel = {"kind": "curves", "series": series, "quantity": "bias", "x": "M"}
    return {
        "batch": {"draws": 2, "points": 10, "runs": 3},
        "experiments": {"wide": {"paper": {}, "assumed": values}},
        "figures": {"wide": {"caption": "", "size": [3, 2], "mosaic": ["a"], "panels": {"a": panel}}},
    }


def test_a_large_sweep_is_laid_out_a_fixed_number_of_times(schema, monkeypatch):
    """Not once for each chunk: the time to plan a sweep grows with its points, not with their square."""
    calls, original = [], Curve._grid
    monkeypatch.setattr(Curve, "_grid", lambda self, sections: calls.append(1) or original(self, sections))
    counts = []
    for n in (30, 300):
        jobs = Jobs(read_config(sweep_of(n), schema))
        found = jobs.of_figure("wide")
        for job in found.values():
            assert job.cost.seconds > 0
        chunks = 2 * n // 10
        # Data of two batches of draws; for each chunk gates, the limit, two blocks of runs and their average; the figure.
        assert len(found) == 2 + 5 * chunks + 2
        counts.append(len(calls))
        calls.clear()
    assert counts[0] == counts[1]


# rule, experiment, method, chunk, runs, measured core-seconds, measured peak in MB: jobs of a run at the paper's sizes
MEASURED = [
    ("solve_gp", "capacity", "gp", Chunk(0, 3, 12, 24), 0, 43, 281),
    ("solve_gp", "depth_8_gates", "gp", Chunk(3, 6), 0, 5.6, 252),
    ("solve_theory", "permuted_threshold", "theory", Chunk(0, 1, 4, 8), 0, 103, 932),
    ("solve_theory", "permuted_width", "theory", Chunk(1, 2), 0, 126, 776),
    ("solve_theory", "depth_8_gates", "theory", Chunk(3, 6), 0, 96, 310),
    ("solve_theory", "teacher_regular", "theory", Chunk(0, 3), 0, 10, 195),
    ("fit_gates", "gates_pretrained", "theory", Chunk(3, 6, 0, 9), 0, 78, 270),
    ("train_networks", "depth_sampled", "gd", Chunk(0, 1), 4, 47, 578),
    ("train_networks", "conflicting", "gd", Chunk(0, 3), 4, 223, 477),
    ("train_networks", "double_descent", "gd", Chunk(0, 3, 0, 12), 4, 386, 376),
    ("train_networks", "teacher_preferred", "gd", Chunk(0, 3), 4, 13, 404),
    ("sample_chains", "posterior_preferred", "langevin", Chunk(1, 2), 0, 376, 447),
    ("sample_chains", "depth_sampled", "posterior", Chunk(0, 1), 0, 498, 1223),
    ("sample_chains", "posterior_regular", "posterior", Chunk(0, 1), 0, 268, 760),
]


@pytest.mark.parametrize(("rule", "experiment", "method", "chunk", "runs", "seconds", "megabytes"), MEASURED)
def test_predictions_beside_measurements(paper, rule, experiment, method, chunk, runs, seconds, megabytes):
    curve = paper.config.experiments[experiment].curve(method)
    cost = CurveCosts(curve).of_chunk(rule, chunk, runs).cost(rule)
    assert seconds / 2.5 < cost.seconds < 2.5 * seconds
    assert cost.mem_mb() - SNAKEMAKE_MB > 1.2 * megabytes


@pytest.mark.parametrize(("section", "key", "factor"), [("task", "P", 8), ("network", "L", 2)])
def test_larger_problems_cost_more(paper, section, key, factor):
    curve = paper.config.experiments["depth_sampled"].curve("posterior")
    network = {"L": 2} | curve.network
    small = replace(curve, network=network, sweep={})
    large = replace(small, **{section: getattr(small, section) | {key: 4 * getattr(small, section)[key]}})
    one, other = (CurveCosts(c).of_chunk("sample_chains", Chunk(0, 1)).cost("sample_chains") for c in (small, large))
    assert other.seconds > factor * one.seconds
    assert other.megabytes > 1.5 * one.megabytes


def test_sizes_count_all_copies_of_the_inputs():
    assert Sizes.of({"kind": "mnist_permuted", "P": 300, "P_t": 500, "permutations": 10}).P == 3000
    assert Sizes.of({"kind": "mnist_conflicting", "P": 600, "P_t": 500, "N0": 400}).P_t == 1000


def test_benchmark_files_are_read_with_their_wildcards(tmp_path):
    path = tmp_path / "train_networks/gd-0123456789/draws_0-3_points_0-1_runs_0-4.tsv"
    path.parent.mkdir(parents=True)
    path.write_text("s\th:m:s\tmax_rss\tcpu_time\n12.5\t0:00:12\t400.0\t11.0\n")
    (path.parent / "broken.tsv").write_text("s\n")
    wildcards = {"curve": "gd-0123456789", "draws": "0-3", "points": "0-1", "runs": "0-4"}
    assert list(read_benchmarks(tmp_path)) == [("train_networks", wildcards, {"s": 12.5, "cpu_time": 11.0, "max_rss": 400.0})]
