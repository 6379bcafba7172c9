"""The table of stages: its jobs are those of Snakemake, costs follow sizes, code and blocks on the disk decide what reruns."""

import importlib.util
import itertools
import json
import re
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from helpers import QUICK, ROOT, raw_configuration, rewrite, snakemake
from hypothesis import given, settings
from hypothesis import strategies as st

from ggdln.core import code
from ggdln.core.identity import identifier
from ggdln.core.kinds import REGISTRIES, Costs
from ggdln.workflow.config import read_config
from ggdln.workflow.costs import MEMORY_FACTOR, SNAKEMAKE_MB
from ggdln.workflow.overview import measured_cost, read_benchmark
from ggdln.workflow.stages import Stages, cover


@pytest.fixture(scope="module")
def paper():
    return read_config(raw_configuration())


@pytest.fixture(scope="module")
def quick():
    return read_config(raw_configuration("quick.yaml"))


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory):
    """An empty folder in which the workflow can be planned."""
    folder = tmp_path_factory.mktemp("elsewhere")
    for name in ("Snakefile", "config", "src", "workflow", "environment.yml"):
        (folder / name).symlink_to(ROOT / name)
    return folder


@pytest.fixture
def empty(tmp_path, monkeypatch):
    """A folder without results, in which the test runs."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def everything(stages):
    pages = (stages.table["make_report"].main, stages.calibration_file())
    return stages.jobs(*map(stages.figure_file, stages.config.figures), *pages)


@pytest.mark.parametrize("name", ["paper", "quick"])
def test_every_job_has_a_cost_that_grows_with_each_attempt(name, request, empty):
    stages = Stages(request.getfixturevalue(name), ROOT)
    jobs = everything(stages)
    assert {job.stage.name for job in jobs.values()} == set(stages.table)
    for job in jobs.values():
        assert job.cost.seconds > 0
        assert job.cost.mem_mb(1) >= MEMORY_FACTOR * job.cost.megabytes + SNAKEMAKE_MB
        assert 60 * job.cost.runtime(1) > job.cost.seconds
        assert job.cost.mem_mb(3) == 3 * job.cost.mem_mb(1)
        assert job.cost.runtime(2) == 2 * job.cost.runtime(1)


@pytest.mark.parametrize(("experiment", "method", "names"), [
    ("capacity", "gp", ("noisy_teacher-41847b8cc7", "random-87bd6313e4", "gp-c16a2288c2")),
    ("teacher_preferred", "gd", ("clustered_teacher-7f18bb901c", "local-2cd1961df2", "gd-f424e0c9c6")),
    ("permuted_threshold", "theory", ("mnist_permuted-28e8291386", "random-35626e89f7", "theory-bfd097bdc5")),
])  # fmt: skip
def test_what_was_computed_is_found_again(paper, experiment, method, names):
    """Identifiers stay as they are, whatever parameters kinds get besides those that the configuration gives."""
    piece = paper.experiments[experiment].curve(method).pieces[0]
    task = piece.points[0]["task"]
    assert (identifier(task["kind"], piece.seed, task), piece.gating, piece.id) == names


def test_a_job_comes_after_those_it_needs(quick, empty):
    seen = set()
    jobs = everything(Stages(quick, ROOT))
    for output, job in jobs.items():
        assert all(file in seen for file in job.inputs if file in jobs)
        seen.add(output)


def test_the_jobs_are_those_of_the_workflow(quick, elsewhere, empty):
    stages = Stages(quick, ROOT)
    expected = {
        job.output: (job.stage.name, set(job.inputs), job.benchmark)
        for job in stages.jobs(*map(stages.figure_file, quick.figures)).values()
    }
    result = snakemake(elsewhere, "--dry-run", *QUICK)
    assert result.returncode == 0, result.stdout + result.stderr
    pattern = r"^rule (\w+):\n(?:    input: (.*)\n)?    output: (.*)\n    log: .*\n(?:    .*\n)*?    benchmark: (.*)$"
    found = {}
    for rule, inputs, outputs, benchmark in re.findall(pattern, result.stdout, re.M):
        found[outputs.split(", ")[0]] = rule, set(inputs.split(", ") if inputs else ()), benchmark
    assert found == expected


def program(path):
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def planner():
    return program("workflow/plan.py")


def test_plan_counts_what_is_left_and_shows_what_was_taken(planner, quick, elsewhere, monkeypatch, capsys):
    def plan(pending, *arguments):
        """Rows of the printed plan by their first word; Snakemake's answer which files are to be made is given."""
        monkeypatch.setattr(planner, "pending_files", lambda configfiles, targets: pending)
        monkeypatch.setattr(sys, "argv", ["plan.py", *QUICK, *arguments])
        planner.main()
        return {line.split()[0]: line.split() for line in capsys.readouterr().out.splitlines() if line.strip()}

    monkeypatch.chdir(elsewhere)
    stages = Stages(quick, ROOT)
    own = stages.jobs(stages.figure_file("figS5"))
    jobs = everything(stages)
    of_figures = len(stages.jobs(*map(stages.figure_file, quick.figures)))
    before = plan(set(jobs), "--cores", "2")
    assert before["figS5"][1:4] == [str(len(own)), "of", str(len(own))]
    assert before["all"][1:4] == [str(of_figures), "of", str(of_figures)]
    assert int(before["verdicts"][1]) == len(
        stages.jobs(stages.claims_file()).keys() - stages.jobs(*map(stages.figure_file, quick.figures))
    )
    on_cluster = plan(set(jobs), "--profile", "slurm")
    assert on_cluster["all"][4:6] == before["all"][4:6]  # core-hours don't depend on where
    for job in own.values():
        path = elsewhere / job.benchmark
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("s\th:m:s\tmax_rss\tcpu_time\n72.0\t0:01:12\t400.0\t36.0\n")
    after = plan(set(jobs) - set(own), "--cores", "2")
    assert after["figS5"][1:4] == ["0", "of", str(len(own))]
    predicted, seen, to, wall = after["figS5"][-4:]
    assert (to, float(seen), float(wall)) == ("-", round(0.01 * len(own), 2), round(0.02 * len(own), 2))
    assert float(predicted) > 0
    assert after["fig1"][-1] == before["fig1"][-1]
    assert int(after["all"][1]) == of_figures - len(own)


def test_plan_asks_snakemake(planner, quick, elsewhere, monkeypatch):
    monkeypatch.chdir(elsewhere)
    stages = Stages(quick, ROOT)
    target = stages.figure_file("figS5")
    found = planner.pending_files(["config/quick.yaml"], [target])
    assert found == {path for job in stages.jobs(target).values() for path in job_outputs(job)}


def job_outputs(job):
    return [pattern.format(**job.wildcards) for pattern in job.stage.output.values()]


def test_plan_tells_what_is_wrong(planner, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["plan.py", "--configfile", "none.yaml"])
    with pytest.raises(SystemExit, match=r"^There is no configuration file none\.yaml\.$"):
        planner.main()


def sweep_of(n, points):
    """A configuration with a sweep of n points of the gates, so many of them in one job."""
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
        "batch": {"draws": 2, "points": points, "runs": 3},
        "experiments": {"wide": {"assumed": values}},
        "figures": {"wide": {"caption": "", "size": [3, 2], "mosaic": ["a"], "panels": {"a": panel}}},
    }


@pytest.mark.parametrize(("n", "points"), [(10_000, 100), (2_000, 1)])
def test_a_large_sweep_is_laid_out_in_time_that_grows_with_its_points(n, points, empty):
    """And not with their square, which would be ten times as much again."""
    taken = []
    for size in (n // 10, n):
        start = time.process_time()
        stages = Stages(read_config(sweep_of(size, points)), ROOT)
        found = stages.jobs(stages.figure_file("wide"))
        assert all(job.cost.seconds > 0 for job in found.values())
        taken.append(time.process_time() - start)
        # Data of two blocks of draws; for each piece gates, the limit, two blocks of runs and their average; two curves; the figure.
        assert len(found) == 2 + 5 * 2 * (size // points) + 2 + 2
    assert taken[1] < 30 * taken[0] + 1


def test_blocks_on_the_disk_are_reused(empty):
    """Another draw computes just that, whatever blocks there are."""
    raw = sweep_of(1, 1)

    def inputs(draws):
        raw["experiments"]["wide"]["assumed"]["draws"] = draws
        stages = Stages(read_config(raw), ROOT)
        return stages.jobs(stages.curve_file("wide", "gp"))[stages.curve_file("wide", "gp")].inputs

    four = inputs(4)
    assert [file.split("draws_")[1] for file in four] == ["0-2.nc", "2-4.nc"]
    folder = empty / four[0]
    folder.parent.mkdir(parents=True)
    (folder.parent / "draws_0-3.nc").touch()
    assert [file.split("draws_")[1] for file in inputs(4)] == ["0-3.nc", "3-4.nc"]
    assert [file.split("draws_")[1] for file in inputs(6)] == ["0-3.nc", "3-5.nc", "5-6.nc"]
    assert [file.split("draws_")[1] for file in inputs(2)] == ["0-3.nc"]


blocks = st.tuples(st.integers(0, 30), st.integers(1, 10)).map(lambda pair: (pair[0], pair[0] + pair[1]))


@settings(max_examples=300, deadline=None, derandomize=True)
@given(wanted=st.integers(1, 40), block=st.integers(1, 12), existing=st.sets(blocks, max_size=8), data=st.data())
def test_blocks_cover_all_draws_and_stay_as_they_are_planned(wanted, block, existing, data):
    found = cover(wanted, block, existing)
    # All, once, without a gap.
    assert found[0][0] == 0
    assert found[-1][1] >= wanted
    assert all(before[1] == after[0] for before, after in itertools.pairwise(found))
    # New ones are no larger than asked for, and don't reach into existing ones.
    new = set(found) - existing
    assert all(last - first <= block and last <= wanted for first, last in new)
    assert not any(first < begin < last for first, last in new for begin, _ in existing)
    # The plan is the same while planned blocks appear on the disk, in any order.
    there = set(existing)
    for one in data.draw(st.permutations(sorted(new))):
        there.add(one)
        assert cover(wanted, block, there) == found


@settings(max_examples=200, deadline=None, derandomize=True)
@given(before=st.integers(1, 40), block=st.integers(1, 12), wanted=st.integers(1, 40), other=st.integers(1, 12))
def test_finished_blocks_are_all_reused(before, block, wanted, other):
    """With more draws, or another number of draws in a job."""
    finished = cover(before, block)
    kept = [one for one in finished if one[0] < wanted]
    assert cover(wanted, other, finished)[: len(kept)] == kept


# stage, experiment, method, draws, points in a job and which of them, runs; core-seconds and peak in MB that jobs at the paper's
# sizes took.
MEASURED = [
    ("run_gp", "capacity", "gp", 3, (12, 1), 0, 43, 281),
    ("run_gp", "depth_8_gates", "gp", 3, (1, 0), 0, 5.6, 252),
    ("run_theory", "permuted_width_count_of_permuted_each", "theory", 1, (1, 0), 0, 63, 776),
    ("run_theory", "depth_8_gates", "theory", 3, (1, 0), 0, 96, 310),
    ("run_theory", "teacher_regular", "theory", 3, (1, 0), 0, 10, 195),
    ("fit_gates", "gates_pretrained", "theory", 3, (9, 0), 0, 78, 270),
    ("run_gd", "depth_sampled", "gd", 1, (1, 0), 4, 47, 578),
    ("run_gd", "conflicting", "gd", 3, (1, 0), 4, 223, 477),
    ("run_gd", "double_descent", "gd", 5, (7, 0), 8, 337, 376),
    ("run_gd", "teacher_preferred", "gd", 3, (1, 0), 4, 13, 404),
    ("run_posterior", "depth_sampled", "posterior", 1, (1, 0), 0, 498, 1223),
    ("run_posterior", "posterior_regular", "posterior", 1, (1, 0), 0, 268, 760),
]


def cost_of(config, experiment, stage, method, *, draws=1, index=0, runs=0):
    """The cost of a job for one piece of an experiment."""
    stages = Stages(replace(config, experiments={experiment.name: experiment}, claims={}, figures={}), ROOT)
    piece = experiment.curve(method).pieces[index]
    more = {"runs": f"0-{runs}"} if runs else {}
    if stage == "fit_gates":
        return stages.table[stage].cost(gating=piece.gating, draws=f"0-{draws}")
    return stages.table[stage].cost(piece=piece.of_runs().id if runs else piece.id, draws=f"0-{draws}", **more)


@pytest.mark.parametrize(("stage", "name", "method", "draws", "points", "runs", "seconds", "megabytes"), MEASURED)
def test_predictions_beside_measurements(paper, stage, name, method, draws, points, runs, seconds, megabytes):
    experiment = paper.experiments[name]
    experiment = replace(experiment, batch=experiment.batch | {"points": points[0]})
    cost = cost_of(paper, experiment, stage, method, draws=draws, index=points[1], runs=runs)
    assert seconds / 2.5 < cost.seconds < 2.5 * seconds
    assert cost.mem_mb() - SNAKEMAKE_MB > 1.2 * megabytes


@pytest.mark.parametrize(("section", "key", "factor"), [("task", "P", 8), ("network", "L", 2)])
def test_larger_problems_cost_more(paper, section, key, factor):
    experiment = paper.experiments["depth_sampled"]
    small = replace(experiment, network=experiment.network | {"L": 2}, sweep={})
    large = replace(small, **{section: getattr(small, section) | {key: 4 * getattr(small, section)[key]}})
    one, other = (cost_of(paper, each, "run_posterior", "posterior") for each in (small, large))
    assert other.seconds > factor * one.seconds
    assert other.megabytes > 1.5 * one.megabytes


def test_sizes_count_all_copies_of_the_inputs():
    def sizes(**spec):
        return REGISTRIES["task"].make(spec).sizes()

    assert sizes(kind="mnist_permuted", P=300, P_t=500, permutations=10).P == 3000
    assert sizes(kind="mnist_conflicting", P=600, P_t=500, N0=400).P_t == 1000


def test_benchmark_files_are_read(tmp_path):
    path = tmp_path / "draws_0-3.tsv"
    path.write_text("s\th:m:s\tmax_rss\tcpu_time\n1\t0\t1\t1\n12.5\t0:00:12\t400.0\t11.0\n")
    assert read_benchmark(path) == {"s": 12.5, "cpu_time": 11.0, "max_rss": 400.0}
    (tmp_path / "broken.tsv").write_text("s\n")
    (tmp_path / "unseen.tsv").write_text("s\th:m:s\tmax_rss\tcpu_time\n0.2\t0\tNA\tNA\n")
    for name in ("broken", "unseen", "none"):
        assert read_benchmark(tmp_path / f"{name}.tsv") is None
    total = measured_cost([(path, 10.0), (tmp_path / "none.tsv", 5.0)])
    assert (total["jobs"], total["measured"], total["cpu"], total["predicted"], total["predicted_all"]) == (
        2,
        1,
        11.0,
        10.0,
        15.0,
    )


def test_measured_jobs_are_found_with_their_coefficients(quick, empty, capsys, monkeypatch):
    stages = Stages(quick, ROOT)
    jobs = everything(stages)
    for job in jobs.values():
        path = empty / job.benchmark
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"s\tmax_rss\tcpu_time\n{job.cost.seconds}\t{job.cost.megabytes}\t{job.cost.seconds}\n")
    (empty / "benchmarks/run_gp/gp/gp-0123456789").mkdir()
    (empty / "benchmarks/run_gp/gp/gp-0123456789/draws_0-1.tsv").write_text("s\tmax_rss\tcpu_time\n1\t1\t1\n")
    resources = program("benchmarks/resources.py")
    found = list(resources.measured_jobs(empty / "benchmarks"))
    assert len(found) == len(jobs)
    assert {"tasks.Task", "gates.soft_kmeans.SoftKmeans", "experiments.methods.gp.Gp", "workflow.costs.READING"} <= {
        w for w, *_ in found
    }
    for more in ([], ["--fit"]):
        monkeypatch.setattr(sys, "argv", ["resources.py", *more])
        resources.main()
    # Fitted to the predictions themselves.
    fitted = re.search(r"# experiments.methods.gp.Gp, \d+ files\n(Costs\(.*\))", capsys.readouterr().out)[1]
    start = eval(fitted, {"Costs": Costs}).seconds["start"]
    assert start == pytest.approx(REGISTRIES["method"].get("gp").costs.seconds["start"], rel=0.05)


PROGRAM = '''"""A method."""

from pydantic import Field

from ggdln.core.kinds import Costs, Look, Terms, Variable
from ggdln.experiments.methods import Method


class Mine(Method):
    """What it does."""

    look = Look("mine", "red", marker="o")
    costs = Costs({"start": 1.0}, {"start": 100.0})
    variables = {"bias": Variable("bias", "B")}

    strength: float = Field(0.5, gt=0, description="How strong it is")

    def problems(self):
        return ["none"]

    def terms(self, sizes):
        return Terms({"start": 1}, {"start": 1})

    def measure(self, point):
        # The mean.
        return point.mean() * 2
'''
SILENT, TELLING, COMPUTING = (False, False), (False, True), (True, True)
"""Whether an edit counts for what is computed, and for what is computed and said."""

EDITS = {
    "comment": ("# The mean.", "# The average.", SILENT),
    "docstring": ("What it does.", "What it may do.", SILENT),
    "docstring of the module": ('"""A method."""', '"""A method of mine."""', SILENT),
    "blank lines": ("\n\n\nclass", "\n\n\n\n\nclass", SILENT),
    "look": ('"red"', '"blue"', TELLING),
    "cost": ('{"start": 1.0}', '{"start": 2.0}', SILENT),
    "variable": ('Variable("bias", "B")', 'Variable("bias", "b")', TELLING),
    "description": ("How strong it is", "Its strength", SILENT),
    "check": ('["none"]', '["one"]', SILENT),
    "amount": ('Terms({"start": 1}', 'Terms({"start": 2}', SILENT),
    "default": ("Field(0.5", "Field(0.6", COMPUTING),
    "bound": ("gt=0", "gt=1", COMPUTING),
    "formula": ("* 2", "* 3", COMPUTING),
    "import": ("from pydantic import Field", "from pydantic import Field, BaseModel", COMPUTING),
}


@pytest.mark.parametrize("edit", EDITS)
def test_words_do_not_count_as_code(edit, tmp_path):
    old, new, counts = EDITS[edit]
    file = tmp_path / "mine.py"
    found = []
    for text in (PROGRAM, None):
        if text:
            file.write_text(text)
        else:
            rewrite(file, old, new)
        code.forget()
        found.append([code.fingerprint([file], words=words) for words in (False, True)])
    assert tuple(before != after for before, after in zip(*found, strict=True)) == counts


def test_what_was_found_out_about_code_is_kept(tmp_path, monkeypatch):
    """It holds for the contents it was found of, and a damaged record is as none."""
    file, record = tmp_path / "mine.py", tmp_path / "folder/code.json"
    file.write_text(PROGRAM)
    monkeypatch.setattr(code, "_found", {})
    before = code.of_job([file], [tmp_path])
    code.record(record)

    def again():
        monkeypatch.setattr(code, "_found", {})
        code.forget()
        code.recall(record)
        return code.of_job([file], [tmp_path])

    monkeypatch.setattr(code.ast, "parse", None)
    assert again() == before
    monkeypatch.undo()
    rewrite(file, "* 2", "* 3")
    assert again() != before
    rewrite(file, "* 3", "* 2")
    for damaged in (record.read_text()[:-9], "[]", json.dumps(json.loads(record.read_text()) | {"version": "another"})):
        record.write_text(damaged)
        assert again() == before
        assert "version" not in code._found
    code.forget()


def test_code_is_followed_through_imports(tmp_path):
    (tmp_path / "room/inner").mkdir(parents=True)
    for name, text in {
        "script.py": "def main():\n    from room.inner import work\n",
        "room/__init__.py": "",
        "room/inner/__init__.py": "",
        "room/inner/work.py": "import room.shared\nimport numpy\n",
        "room/shared.py": "",
        "room/other.py": "",
    }.items():
        (tmp_path / name).write_text(text)
    code.forget()
    found = code.modules_of([tmp_path / "script.py"], [tmp_path])
    expected = ["room/__init__.py", "room/inner/__init__.py", "room/inner/work.py", "room/shared.py", "script.py"]
    assert [str(path.relative_to(tmp_path)) for path in found] == expected
    code.forget()


def test_jobs_know_their_code(quick, empty):
    """A theory job depends on the theory and not on simulations, figures or the configuration."""
    stages = Stages(quick, ROOT)
    jobs = stages.jobs(stages.figure_file("fig2"))

    def files(name):
        job = next(job for job in jobs.values() if job.stage.name == name)
        programs = [ROOT / path for path in stages.code(job.stage, job.wildcards)["programs"]]
        return {
            path.relative_to(ROOT).as_posix() for path in code.modules_of(programs, [ROOT / "src", ROOT / "workflow/scripts"])
        }

    theory = files("run_theory")
    assert {"src/ggdln/theory/saddle.py", "src/ggdln/gates/local.py", "src/ggdln/observables/predictor.py"} <= theory
    assert {name for name in theory if re.search(r"ggdln/(networks|study|workflow)/", name)} == {
        "src/ggdln/networks/__init__.py",
        "src/ggdln/networks/settings.py",
    }
    assert "src/ggdln/networks/flow.py" in files("run_gd")
    assert "src/ggdln/tasks/clustered_teacher.py" in files("prepare_task")
    assert not files("prepare_task") & {"src/ggdln/theory/saddle.py", "src/ggdln/tasks/noisy_teacher.py"}
    assert "src/ggdln/study/panels/curves.py" in files("draw_figure")
