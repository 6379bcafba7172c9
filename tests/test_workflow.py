"""The workflow, run for real on a copy of the project: what it makes, what it reruns, and what it refuses."""

import hashlib
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from ggdln.experiments import store

pytestmark = pytest.mark.xdist_group("workflow")

QUICK = ("--configfile", "config/quick.yaml")
TARGETS = [f"figures/quick/{figure}.pdf" for figure in ("fig1", "fig2", "figS2", "figS5")]
"""Figures on which reruns are tested: together they need every rule."""
FIGURE = ["collect_figure", "draw_figure"]
THEORY = ["solve_gp", "solve_theory"]
SIMULATION = ["train_networks", "average_runs", "sample_chains"]
RULES = ["prepare_task", "fit_gates", *THEORY, *SIMULATION, *FIGURE]
REPORT = ["judge_claim", "collect_claims", "make_report"]


def snakemake(folder, *arguments):
    # The end of a run waits for the last of its looks at waiting jobs: seconds, for runs of seconds.
    command = [sys.executable, "-m", "snakemake", "--cores", "2", "--max-jobs-per-timespan", "1000/1s", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600)


def planned(folder, *arguments):
    """Rules that a dry-run would run, with the figures or files they would make."""
    result = snakemake(folder, "--dry-run", *arguments)
    assert result.returncode == 0, result.stdout + result.stderr
    jobs = re.findall(r"^(?:local)?rule (\w+):\n.*?^    output: ([^\n]+)", result.stdout, re.M | re.S)
    rules = {}
    for rule, output in jobs:
        rules.setdefault(rule, set()).update(output.split(", "))
    return rules


def copy_project(root, folder):
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=root, capture_output=True, text=True, check=True
    )
    for name in listed.stdout.splitlines():
        if (root / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(root / name, folder / name, follow_symlinks=False)


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A copy of the project under git, with some quick figures made."""
    folder = tmp_path_factory.mktemp("project")
    copy_project(Path(__file__).resolve().parents[1], folder)
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "copy"]):
        subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *command], cwd=folder, check=True)
    result = snakemake(folder, *QUICK, "--", *TARGETS)
    assert result.returncode == 0, result.stdout + result.stderr
    (folder / "first_run.txt").write_text(result.stdout)
    return folder


@pytest.fixture
def edited(project):
    """The project, put back after the test to what git has."""
    yield project
    subprocess.run(["git", "checkout", "-q", "."], cwd=project, check=True)


def figures(root):
    return list(yaml.safe_load((root / "config/figures.yaml").read_text())["figures"])


def test_figures_are_made_and_listed(project):
    for target in TARGETS:
        figure = Path(target).stem
        assert (project / target).read_bytes().startswith(b"%PDF")
        assert (project / f"figures/quick/{figure}.png").stat().st_size > 10_000
        assert f"  {target}" in (project / "first_run.txt").read_text()
        assert store.groups(project / f"results/quick/{figure}.nc")


def test_every_file_says_what_it_was_made_from(project):
    files = [path for path in project.glob("results/**/*.nc") if path.parent.name != "quick"]
    assert len(files) >= 20
    for path in files:
        attributes = store.read(path).attrs
        for key in ("code_version", "config_hash", "seed", "packages", "data_source"):
            assert attributes.get(key) not in (None, ""), (path, key)


@pytest.mark.parametrize("config", [(), QUICK], ids=["paper", "quick"])
def test_every_figure_target_resolves(config, root, tmp_path):
    copy_project(root, tmp_path)
    folder = "figures/quick" if config else "figures"
    targets = {f"{folder}/{figure}.pdf" for figure in figures(root)}
    assert targets <= planned(tmp_path, *config)["draw_figure"]
    one = planned(tmp_path, *config, "--", f"{folder}/figS5.pdf")
    assert {path for path in one["draw_figure"] if path.endswith("pdf")} == {f"{folder}/figS5.pdf"}


def test_no_rule_is_unreachable(root, tmp_path):
    copy_project(root, tmp_path)
    listed = snakemake(tmp_path, "--list-rules", "--quiet").stdout.split()
    assert set(planned(tmp_path, "--", "figures/report.html")) | {"all", "report"} == set(listed)
    assert set(listed) == {*RULES, *REPORT, "all", "report"}


def test_every_rule_declares_log_benchmark_threads_memory_and_runtime(root):
    found = []
    for path in (root / "workflow/rules").glob("*.smk"):
        for name, body in re.findall(r"^rule (\w+):\n((?:    .*\n|\n)+)", path.read_text(), re.M):
            found.append(name)
            for word in ("input:", "output:", "log:", "benchmark:", "threads:", "mem_mb=", "runtime=", f"scripts/{name}.py"):
                assert word in body, (name, word)
            assert f"logs/{name}/" in body
            assert f"benchmarks/{name}/" in body
    assert sorted(found) == sorted([*RULES, *REPORT])


def test_snakemakes_own_report_has_the_figures_with_their_captions(project, tmp_path):
    page = tmp_path / "report.html"
    result = snakemake(project, *QUICK, "--report", page, "--", *TARGETS)
    assert result.returncode == 0, result.stdout + result.stderr
    text = page.read_text()
    for words in (
        "computed anew in the run",
        "Globally gated deep linear networks and their capacity",
        "results/quick/figS5.nc",
    ):
        assert words in text


def test_lint_and_format_are_clean(root):
    lint = snakemake(root, "--lint")
    assert lint.returncode == 0, lint.stdout + lint.stderr
    files = ["Snakefile", *map(str, (root / "workflow/rules").glob("*.smk"))]
    assert subprocess.run([sys.executable, "-m", "snakefmt", "--check", *files], cwd=root).returncode == 0


def append(path, text="\n# edited\n"):
    path.write_text(path.read_text() + text)


AFTER_GATES = [*THEORY, *SIMULATION, *FIGURE]
EDITS = {
    # file: rules that run again
    "README.md": [],
    "src/ggdln/config.py": [],
    "src/ggdln/costs.py": [],
    "src/ggdln/jobs.py": [],
    "src/ggdln/figures/panels.py": ["draw_figure"],
    "src/ggdln/figures/content.py": ["draw_figure"],
    "src/ggdln/report/page.py": [],
    "workflow/scripts/draw_figure.py": ["draw_figure"],
    "workflow/scripts/collect_figure.py": FIGURE,
    "src/ggdln/theory/gp.py": ["solve_gp", *FIGURE],
    "src/ggdln/theory/saddle.py": ["solve_theory", *FIGURE],
    "src/ggdln/dynamics/ensemble.py": ["average_runs", "sample_chains", *FIGURE],
    "src/ggdln/dynamics/flow.py": ["train_networks", "average_runs", *FIGURE],
    "src/ggdln/dynamics/gibbs.py": ["sample_chains", *FIGURE],
    "src/ggdln/gates.py": ["fit_gates", *AFTER_GATES],
    "src/ggdln/tasks/teachers.py": RULES,
    "src/ggdln/store.py": RULES,
}


@pytest.mark.parametrize("file", EDITS)
def test_an_edit_reruns_what_depends_on_it(edited, file):
    append(edited / file, "\n" if file.endswith(".md") else "\n# edited\n")
    assert set(planned(edited, *QUICK, "--", *TARGETS)) == set(EDITS[file])


def test_a_fresh_checkout_reruns_nothing(edited):
    for path in edited.rglob("*"):
        if path.suffix in (".py", ".smk", ".yaml") and ".snakemake" not in path.parts:
            path.unlink()
    subprocess.run(["git", "checkout", "-q", "."], cwd=edited, check=True)
    assert planned(edited, *QUICK, "--", *TARGETS) == {}


def rewrite(path, old, new):
    text = path.read_text()
    assert text.count(old) == 1, (path, old)
    path.write_text(text.replace(old, new))


GP_ONLY = ["solve_gp", *FIGURE]
PARAMETERS = {
    # name: (file, old, new, rules that run again, figures they belong to)
    "prior": ("config/config.yaml", "gates: {b: 0.0}\n      network: {sigma: 1.0}", "gates: {b: 0.0}\n      network: {sigma: 2.0}",
              GP_ONLY, ["fig1"]),
    "threshold": ("config/config.yaml", "gates: {b: 0.0}\n      network: {sigma: 1.0}", "gates: {b: 0.5}\n      network: {sigma: 1.0}",
                  ["fit_gates", *GP_ONLY], ["fig1"]),
    "task": ("config/config.yaml", "noise: 0.005", "noise: 0.01", ["prepare_task", "fit_gates", *GP_ONLY], ["figS5"]),
    "runs": ("config/quick.yaml", "reduced:\n      task: {P: 100, P_t: 100, N_T: 100}\n      sweep: {network.N: [25, 200, 3200]}\n      methods: {gd: {runs: 3",
             "reduced:\n      task: {P: 100, P_t: 100, N_T: 100}\n      sweep: {network.N: [25, 200, 3200]}\n      methods: {gd: {runs: 13",
             ["train_networks", "average_runs", *FIGURE], ["fig2"]),
    "layout": ("config/figures.yaml", "size: [9.0, 2.5]", "size: [9.0, 3.0]", ["draw_figure"], ["figS5"]),
    "seed": ("config/config.yaml", "seed: 2022", "seed: 2023", RULES, ["fig1", "fig2", "figS2", "figS5"]),
}  # fmt: skip


@pytest.mark.parametrize("name", PARAMETERS)
def test_a_parameter_reruns_its_figure_only(edited, name):
    file, old, new, rules, shown = PARAMETERS[name]
    rewrite(edited / file, old, new)
    plan = planned(edited, *QUICK, "--", *TARGETS)
    assert set(plan) == set(rules)
    assert {path for path in plan["draw_figure"] if path.endswith(".pdf")} == {f"figures/quick/{f}.pdf" for f in shown}


def test_more_draws_keep_finished_batches(edited):
    rewrite(edited / "config/quick.yaml", "40]}\n      draws: 3", "40]}\n      draws: 5")
    plan = planned(edited, *QUICK, "--", *TARGETS)
    assert {Path(path).stem.split("_points")[0] for path in plan["solve_gp"]} == {"draws_3-5"}


def contents(folder, figure):
    return {name: data.attrs["content_sha256"] for name, data in store.groups(folder / f"results/quick/{figure}.nc").items()}


def test_numbers_do_not_depend_on_cores_order_or_batching(project, root, tmp_path):
    copy_project(root, tmp_path)
    rewrite(tmp_path / "config/quick.yaml", "batch: {draws: 3, points: 40, runs: 10}", "batch: {draws: 2, points: 9, runs: 2}")
    result = snakemake(tmp_path, *QUICK, "--cores", "1", "--", *TARGETS)
    assert result.returncode == 0, result.stdout + result.stderr
    for figure in ("fig1", "fig2", "figS2", "figS5"):
        assert contents(tmp_path, figure) == contents(project, figure)


def test_drawing_twice_gives_the_same_bytes(project, root):
    def sums():
        return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in (project / "figures/quick").iterdir()}

    before = sums()
    result = snakemake(project, *QUICK, "--forcerun", "draw_figure", "--", *TARGETS)
    assert result.returncode == 0, result.stdout + result.stderr
    assert sums() == before


@pytest.mark.parametrize(("setting", "message"), [
    ("seed: -1", "seed = -1; accepted: a whole number >= 0"),
    ("sed: 1", "did you mean 'seed'?"),
    ("experiments: {capacity: {reduced: {gates: {b: .nan}}}}", "b = nan; accepted: a finite number"),
    ("experiments: {capacity: {reduced: {network: {sigma: -2}}}}", "network.sigma (under reduced) = -2; accepted: a number > 0"),
    ("experiments: {capacity: {reduced: {sweep: {gates.M: [0]}}}}", "sweep.gates.M[0] = 0; accepted: a whole number >= 1"),
])  # fmt: skip
def test_a_bad_configuration_stops_everything_with_one_message(root, tmp_path, setting, message):
    copy_project(root, tmp_path)
    (tmp_path / "bad.yaml").write_text(setting)
    before = sorted(path for path in tmp_path.rglob("*") if "__pycache__" not in path.parts)
    result = snakemake(tmp_path, "--configfile", "bad.yaml")
    assert result.returncode != 0
    assert message in result.stderr
    assert "Traceback" not in result.stderr + result.stdout
    after = sorted(p for p in tmp_path.rglob("*") if not {"__pycache__", ".snakemake"} & set(p.parts))
    assert after == before


def test_what_does_not_fit_is_refused_before_anything_runs(root, tmp_path):
    """The message names the job, what it needs and what there is."""
    copy_project(root, tmp_path)
    (tmp_path / "small.yaml").write_text("machine: {available_mb: 90}")
    result = snakemake(tmp_path, *QUICK, "small.yaml", "--", "figures/quick/figS5.pdf")
    assert result.returncode != 0
    assert re.search(r"\w+ needs \d+ MB for \S+, this machine has 90 MB", result.stderr)
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize("text", [
    "seed: !!python/object/apply:os.system ['touch written']",
    "run: ../../elsewhere",
    "run: /tmp",
    "digits: {source: full, folder: !!python/name:os.getcwd}",
])  # fmt: skip
def test_a_configuration_from_elsewhere_runs_nothing_and_writes_nowhere_else(root, tmp_path, text):
    project = tmp_path / "project"
    project.mkdir()
    copy_project(root, project)
    (project / "foreign.yaml").write_text(text)
    result = snakemake(project, "--configfile", "foreign.yaml", "--", "figures/figS5.pdf")
    assert result.returncode != 0
    assert not list(tmp_path.rglob("written"))
    assert [path.name for path in tmp_path.iterdir()] == ["project"]
    assert not (project / "results").exists()


@pytest.mark.parametrize("target", ["results/data/../../../outside/draws_0-1.nc", "figures/../../outside.pdf"])
def test_no_rule_makes_files_outside_the_results(root, tmp_path, target):
    copy_project(root, tmp_path)
    result = snakemake(tmp_path, *QUICK, "--", target)
    assert result.returncode != 0
    assert not (tmp_path.parent / "outside").exists()


@pytest.mark.xdist_group("workflow")
def test_a_claim_is_judged_with_its_control(project):
    """From the numbers of its figure and the curves of its control."""
    result = snakemake(project, *QUICK, "--", "results/quick/claims/figS5_few.json")
    assert result.returncode == 0, result.stdout + result.stderr
    verdict = json.loads((project / "results/quick/claims/figS5_few.json").read_text())
    assert (verdict["verdict"], verdict["draws"]) == ("holds", 2)
    assert (verdict["control"]["holds"], verdict["empty"]) == (0, False)
