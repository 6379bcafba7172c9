"""The workflow, run for real on a copy of the project with small experiments: what it makes, reruns and refuses.

`python tests/test_workflow.py` prints the table of edits and what each of them reruns.
"""

import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml
from helpers import QUICK, ROOT, copy_project, planned, rewrite, small_project, snakemake

from ggdln.experiments import store

EVERYTHING = ("--", "all", "report")
RULES = {
    *(
        "prepare_task",
        "fit_gates",
        "run_gp",
        "run_theory",
        "run_one_loop",
        "run_exact",
        "run_gd",
        "run_relu",
        "run_langevin",
        "run_posterior",
    ),
    *("combine_gd", "combine_relu", "assemble_curve", "collect_figure", "draw_figure"),
    *("judge_claim", "collect_claims", "make_report"),
}


def git(folder, *arguments):
    subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *arguments], cwd=folder, check=True)


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """The project with small experiments, under git, and all that it makes."""
    folder = small_project(tmp_path_factory.mktemp("project"))
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "copy")
    result = snakemake(folder, *EVERYTHING)
    assert result.returncode == 0, result.stdout + result.stderr
    (folder / "first_run.txt").write_text(result.stdout + result.stderr)
    return folder


@pytest.fixture
def edited(project):
    """The project, put back after the test to what git has."""
    yield project
    git(project, "checkout", "-q", ".")


# ---- What it makes


def test_figures_are_made_and_listed(project):
    for figure in ("gated", "trained", "sampled", "narrow"):
        assert (project / f"figures/{figure}.pdf").read_bytes().startswith(b"%PDF")
        assert (project / f"figures/{figure}.png").stat().st_size > 5_000
        assert f"  figures/{figure}.pdf" in (project / "first_run.txt").read_text()
        assert store.groups(project / f"results/{figure}.nc")


def test_every_file_says_what_it_was_made_from(project):
    files = [path for path in project.glob("results/**/*.nc") if path.parent.name != "results"]
    assert len(files) >= 20
    for path in files:
        attributes = store.read(path).attrs
        for key in ("code_version", "config_hash", "seed", "packages", "data_source"):
            assert attributes.get(key) not in (None, ""), (path, key)


def test_a_claim_is_judged_with_its_control(project):
    """The variance rises where the training error falls, so that the condition fails for the control."""
    verdict = json.loads((project / "results/claims/gated_capacity.json").read_text())
    assert (verdict["outcome"], verdict["draws"]) == ("holds", 2)
    assert (verdict["control"]["holds"], verdict["empty"]) == (0, False)


def test_every_job_has_a_log_a_benchmark_and_predicted_memory_and_time(project):
    text = (project / "first_run.txt").read_text()
    blocks = re.findall(r"^(?:local)?rule (\w+):\n((?:    .*\n)+)", text, re.M)
    blocks = [(rule, block) for rule, block in blocks if rule not in ("all", "report")]
    assert {rule for rule, _ in blocks} == RULES
    for rule, block in blocks:
        for words in (f"log: logs/{rule}/", f"benchmark: benchmarks/{rule}/", "mem_mb=", "runtime="):
            assert words in block, (rule, words)
    assert all((project / log).exists() for log in re.findall(r"^    log: (\S+)", text, re.M))


def test_drawing_twice_gives_the_same_bytes(project, tmp_path):
    folder = tmp_path / "project"
    shutil.copytree(project, folder, symlinks=True)
    result = snakemake(folder, "--forcerun", "draw_figure", "--", "figures/sampled.pdf")
    assert result.returncode == 0, result.stdout + result.stderr
    for name in ("figures/sampled.pdf", "figures/sampled.png"):
        assert (folder / name).stat().st_mtime > (project / name).stat().st_mtime
        assert (folder / name).read_bytes() == (project / name).read_bytes()


def test_snakemakes_own_report_has_the_figures_with_their_captions(project, tmp_path):
    page = tmp_path / "report.html"
    result = snakemake(project, "--report", str(page), *EVERYTHING)
    assert result.returncode == 0, result.stdout + result.stderr
    text = page.read_text()
    for words in (
        "computed anew with the root seed 7",
        "Theory and trained networks",
        "results/sampled.nc",
        "verdicts as JSON",
    ):
        assert words in text


def test_every_figure_of_the_paper_is_a_target(tmp_path):
    """At both sizes, with every rule; one figure brings no other."""
    copy_project(ROOT, tmp_path)
    figures = yaml.safe_load((ROOT / "config/figures.yaml").read_text())["figures"]
    paper = planned(tmp_path, *EVERYTHING)
    assert set(paper) == RULES
    assert {f"figures/{figure}.pdf" for figure in figures} <= paper["draw_figure"]
    quick = planned(tmp_path, *QUICK)
    assert {f"figures/quick/{figure}.pdf" for figure in figures} <= quick["draw_figure"]
    one = planned(tmp_path, *QUICK, "--", "figures/quick/figS5.pdf")
    assert one["draw_figure"] == {"figures/quick/figS5.pdf", "figures/quick/figS5.png"}


def test_lint_and_format_are_clean():
    lint = snakemake(ROOT, "--lint")
    assert lint.returncode == 0, lint.stdout + lint.stderr
    files = ["Snakefile", *map(str, (ROOT / "workflow/rules").glob("*.smk"))]
    assert subprocess.run([sys.executable, "-m", "snakefmt", "--check", *files], cwd=ROOT).returncode == 0


# ---- What an edit reruns


class Edit(NamedTuple):
    """An edit of one file, and the jobs that run after it, each with how many there are if more than one."""

    what: str
    file: str
    change: tuple  # texts, the second in place of the first; nothing in place of the end of the file
    jobs: set


CODE, COMMENT = (None, "\nEDITED = 1\n"), (None, "\n# edited\n")
SRC = "src/ggdln"
PAGE = {"make_report"}


def shown(figure, *curves, claims=()):
    """The jobs from curves to figure, verdicts and page."""
    jobs = {f"assemble_curve {curve}" for curve in curves} | {f"collect_figure {figure}", f"draw_figure {figure}"} | PAGE
    return jobs | {f"judge_claim {claim}" for claim in claims} | ({"collect_claims"} if claims else set())


GATED = shown("gated", "gated/gp", claims=("gated_capacity", "gated_variance"))
THEORY = shown("trained", "trained/theory", claims=("trained_theory",))
TRAINED = shown("trained", "trained/gd", claims=("trained_theory",))
SAMPLED = shown("sampled", "sampled/langevin", "sampled/posterior")
RELU = shown("sampled", "sampled/relu")
POSTERIOR = shown("sampled", "sampled/posterior")
NARROW = shown("narrow", "narrow/one_loop", "narrow/exact")

ROUNDS = [
    # Edits of one round are done together: no two of them rerun the same job, but for the verdicts and the page.
    [
        Edit("a comment", f"{SRC}/gates/local.py", COMMENT, set()),
        Edit("a docstring", f"{SRC}/theory/saddle.py", ('"""', '"""Edited. '), set()),
        Edit("a check of parameters", f"{SRC}/gates/random.py", ("    def fit(", "    def problems(self, task):\n        return ()\n\n    def fit("), set()),
        Edit("a comment in a file of one's own", "my_kinds.py", COMMENT, set()),
        Edit("the version number", "pyproject.toml", ('version = "0.1.0"', 'version = "0.2.0"'), set()),
        Edit("the environment of conda", "environment.yml", ("scipy==", "scipy==9."), set()),
        Edit("the README", "README.md", (None, "\n"), set()),
        Edit("the meaning of a parameter", f"{SRC}/tasks/noisy_teacher.py", ("Standard deviation of", "Size of"), PAGE),
        Edit("predicted costs of a kind", f"{SRC}/experiments/methods/gp.py", ('"kernels": 0.0', '"kernels": 100.0'), PAGE),
    ],
    [
        Edit("the name of a method", f"{SRC}/experiments/methods/gd.py", ('Look("gradient descent"', 'Look("descent"'), shown("trained")),
        Edit("the symbol of a quantity", f"{SRC}/observables/order_parameter.py", ('"U_1",', '"u",'), shown("sampled")),
        Edit("the size of a figure", "config/figures.yaml", ("more gates\n    size: [3.5", "more gates\n    size: [4.5"), {"draw_figure gated"} | PAGE),
    ],
    [
        Edit("a kind of gates", f"{SRC}/gates/local.py", CODE, {"fit_gates local", "run_theory", "run_gd", "combine_gd"} | THEORY | TRAINED),
        Edit("a method", f"{SRC}/experiments/methods/posterior.py", CODE, {"run_posterior"} | POSTERIOR),
        Edit("a kind of condition", f"{SRC}/study/conditions/falls.py", CODE, {"judge_claim gated_capacity", "collect_claims"} | PAGE),
    ],
    [
        Edit("a module of the theory", f"{SRC}/theory/saddle.py", CODE, {"run_theory", "run_one_loop", "run_exact"} | THEORY | NARROW),
        Edit("the infinite-width limit", f"{SRC}/theory/gp.py", CODE, {"run_gp x3"} | GATED),
        Edit("a sampler", f"{SRC}/networks/gibbs.py", CODE, {"run_posterior"} | POSTERIOR),
    ],
    [
        Edit("gradient flow", f"{SRC}/networks/flow.py", CODE, {"run_gd", "combine_gd", "run_relu", "combine_relu"} | TRAINED | RELU),
        Edit("a kind of task", f"{SRC}/tasks/noisy_teacher.py", CODE, {"prepare_task noisy_teacher", "fit_gates random x3", "run_gp x3"} | GATED),
    ],
    [
        Edit("a kind in a file of one's own", "my_kinds.py", CODE, {"fit_gates slanted", "run_langevin", "run_posterior"} | SAMPLED),
        Edit("another number of gates", "config/config.yaml", ("gates.M: [2, 4, 8]", "gates.M: [2, 4, 8, 16]"), {"fit_gates random", "run_gp"} | GATED),
        Edit("another width", "config/config.yaml", ("network.N: [20, 40]", "network.N: [20, 40, 80]"), {"run_theory", "run_gd", "combine_gd"} | THEORY | TRAINED),
    ],
    [
        Edit("a third draw", "config/config.yaml", ("methods: {gp: {}}\n      draws: 2", "methods: {gp: {}}\n      draws: 3"),
             {"prepare_task noisy_teacher 2-3", "fit_gates random 2-3 x3", "run_gp 2-3 x3"} | GATED),
        Edit("one draw fewer", "config/config.yaml", ("order_parameter]\n      draws: 2", "order_parameter]\n      draws: 1"), SAMPLED | RELU),
        Edit("another observable", "config/config.yaml", ("observables: [predictor]", "observables: [predictor, order_parameter]"),
             {"run_theory", "combine_gd"} | THEORY | TRAINED),
    ],
    [
        Edit("two more runs", "config/config.yaml", ("gd: {runs: 3}", "gd: {runs: 5}"), {"run_gd 0-2 runs 3-5", "combine_gd"} | TRAINED),
        Edit("another threshold", "config/config.yaml", ("kind: random, b: 0.0", "kind: random, b: 0.5"), {"fit_gates random x3", "run_gp x3"} | GATED),
        Edit("another size of the task", "config/config.yaml", ("task.P: [10]", "task.P: [10, 12]"),
             {"prepare_task mnist_parity", "fit_gates slanted", "run_langevin", "run_posterior", "run_relu", "combine_relu"} | SAMPLED | RELU),
    ],
    [
        Edit("another prior", "config/config.yaml", ("L: 1, sigma: 1.0", "L: 1, sigma: 2.0"), {"run_gp x3"} | GATED),
        Edit("another temperature", "config/config.yaml", ("T: 0.01}", "T: 0.02}"), {"run_langevin", "run_posterior"} | SAMPLED),
    ],
    [
        Edit("a kind of panel", f"{SRC}/study/panels/matrix.py", CODE, {"draw_figure sampled"} | PAGE),
        Edit("the page", f"{SRC}/study/report/page.py", CODE, PAGE),
        Edit("the strength of a condition", "config/claims/all.yaml", ("condition: falls", "condition: {kind: falls, strength: 0.6}"),
             {"judge_claim gated_capacity", "collect_claims"} | PAGE),
    ],
    [
        Edit("the seed", "config/config.yaml", ("seed: 7", "seed: 8"),
             {"prepare_task noisy_teacher", "prepare_task clustered_teacher", "prepare_task mnist_parity", "fit_gates random x3",
              "fit_gates local", "fit_gates slanted", "run_gp x3", "run_theory", "run_gd", "combine_gd", "run_relu", "combine_relu",
              "run_langevin", "run_posterior", "prepare_task sklearn", "fit_gates soft_kmeans", "run_one_loop", "run_exact"}
             | GATED | THEORY | TRAINED | SAMPLED | RELU | NARROW),
    ],
]  # fmt: skip


def jobs_of(plan):
    """What a dry-run would run, as "rule what draws": the hashes in the names of files are left out."""
    found = Counter()
    for rule, files in plan.items():
        for path in (Path(file) for file in files if not file.endswith(".png")):
            kind, block = path.parent.name.rsplit("-", 1)[0], path.stem.removeprefix("draws_").replace("_", " ")
            if rule in ("prepare_task", "fit_gates"):
                words = f"{rule} {kind} {block}"
            elif rule.startswith(("run_", "combine_")):
                words = f"{rule} {block}"
            elif rule == "assemble_curve":
                words = f"{rule} {path.parent.name}/{path.stem}"
            else:
                words = rule if rule in ("collect_claims", "make_report") else f"{rule} {path.stem}"
            found[words] += 1
    return found


def agree(found, expected):
    """Whether jobs are those of an edit, which may leave out the block of draws."""
    counted = Counter()
    for words, count in found.items():
        short = re.sub(r"( \d+-\d+)( runs \d+-\d+)?$", "", words)
        names = {job.removesuffix(f" x{count}") for job in expected}
        counted[words if words in names else short] += count
    return {f"{words} x{count}" if count > 1 else words for words, count in counted.items()} == expected


OFTEN = ("a comment", "the name of a method", "a kind of gates", "a third draw")
"""The first edits of the rounds that are tried each time; the others are tried with the long tests."""


@pytest.mark.parametrize(
    "edits",
    [pytest.param(r, marks=() if r[0].what in OFTEN else pytest.mark.long, id=r[0].what) for r in ROUNDS],
)
def test_an_edit_reruns_what_depends_on_it(edited, edits):
    together = Counter(job for edit in edits for job in edit.jobs - PAGE - {"collect_claims"})
    assert not together or max(together.values()) == 1
    for edit in edits:
        path, (old, new) = edited / edit.file, edit.change
        text = path.read_text()
        assert old is None or old in text, edit
        path.write_text(text + new if old is None else text.replace(old, new, 1))
    found = jobs_of(planned(edited, *EVERYTHING))
    assert agree(found, set().union(*(edit.jobs for edit in edits))), sorted(found.items())


def test_a_fresh_checkout_reruns_nothing(edited):
    for path in edited.rglob("*"):
        if path.suffix in (".py", ".smk", ".yaml") and ".snakemake" not in path.parts:
            path.unlink()
    git(edited, "checkout", "-q", ".")
    assert planned(edited, *EVERYTHING) == {}


def table():
    """The edits as Markdown."""
    rows = [
        f"| {edit.what} | `{edit.file}` | {', '.join(sorted(edit.jobs)) or 'nothing'} |" for edits in ROUNDS for edit in edits
    ]
    return "\n".join(["| edit | in | runs again |", "|---|---|---|", *rows])


# ---- Numbers


@pytest.mark.long
def test_numbers_do_not_depend_on_cores_or_batches(project, tmp_path):
    """One core, a job for each draw, two runs and two points; and for the limit a third draw, which leaves the others alone."""
    batches = {
        "batch": {"draws": 1, "points": 2, "runs": 2},
        "experiments": {"gated": {"reduced": {"draws": 3}, "batch": {"draws": 2}}},
    }
    small_project(tmp_path, **batches)
    names = ["gated/gp", "trained/theory", "trained/gd", "sampled/posterior"]
    targets = [f"results/curves/{name}.nc" for name in names]
    result = snakemake(tmp_path, "--cores", "1", "--", *targets)
    assert result.returncode == 0, result.stdout + result.stderr
    for target in targets:
        here, there = store.read(tmp_path / target), store.read(project / target)
        assert here.sel(draw=there.draw).equals(there), target
    assert len(list(tmp_path.glob("results/runs/gd/*/*.nc"))) == 4


@pytest.mark.slow
def test_another_draw_is_added_to_what_is_there(project, tmp_path):
    """The numbers of the draws that were there stay, in files that aren't written again; fewer draws take theirs from them."""
    folder = tmp_path / "project"
    shutil.copytree(project, folder, symlinks=True)
    curve, before = folder / "results/curves/gated/gp.nc", {p: p.stat().st_mtime for p in (folder / "results/gp").rglob("*.nc")}
    first = store.read(curve)
    for draws in (3, 1):
        rewrite(
            folder / "config/config.yaml",
            f"methods: {{gp: {{}}}}\n      draws: {first.sizes['draw']}",
            f"methods: {{gp: {{}}}}\n      draws: {draws}",
        )
        result = snakemake(folder, "--", "results/curves/gated/gp.nc")
        assert result.returncode == 0, result.stdout + result.stderr
        found = store.read(curve)
        common = min(draws, first.sizes["draw"])
        assert found.sizes["draw"] == draws
        assert found.isel(draw=slice(common)).equals(first.isel(draw=slice(common)))
        first = found
    assert {path: path.stat().st_mtime for path in before} == before
    assert len(list((folder / "results/gp").rglob("*.nc"))) == 2 * len(before)


# ---- What it refuses


def test_a_bad_configuration_stops_everything_with_one_message(tmp_path):
    small_project(tmp_path)
    wrong = """
        sed: 1
        experiments:
          gated: {reduced: {sweep: {gates.M: [0]}}}
          trained: {reduced: {network: {sigma: -2}}}
        """
    (tmp_path / "bad.yaml").write_text(wrong)
    before = sorted(path for path in tmp_path.rglob("*") if "__pycache__" not in path.parts)
    result = snakemake(tmp_path, "--configfile", "bad.yaml")
    assert result.returncode != 0
    for message in (
        "did you mean 'seed'?",
        "network.sigma (under reduced) = -2; accepted: a number > 0",
        "sweep.gates.M[0] = 0; accepted: a whole number >= 1",
    ):
        assert message in result.stderr
    assert "Traceback" not in result.stderr + result.stdout
    after = sorted(path for path in tmp_path.rglob("*") if not {"__pycache__", ".snakemake"} & set(path.parts))
    assert after == before


def test_what_does_not_fit_is_refused_before_anything_runs(tmp_path):
    """In a dry-run too. The message names the job, what it needs and what there is; a cluster may have more."""
    small_project(tmp_path, machine={"available_mb": 90})
    for options in ((), ("--dry-run",)):
        result = snakemake(tmp_path, *options, "--", "figures/gated.pdf")
        assert result.returncode != 0
        assert re.search(r"\w+ needs \d+ MB for \S+, this machine has 90 MB", result.stderr)
        assert "Traceback" not in result.stderr
        assert not (tmp_path / "results").exists()
    cluster = ("--workflow-profile", "workflow/profiles/slurm")
    assert snakemake(tmp_path, "--dry-run", *cluster, "--", "figures/gated.pdf").returncode == 0


@pytest.mark.parametrize(("target", "told"), [
    ("figures/gatd.pdf", "There is no figure figures/gatd.pdf. Did you mean figures/gated.pdf? Figures: figures/gated.pdf, "),
    ("figures/elsewhere/gated.pdf", "There is no figure figures/elsewhere/gated.pdf. Did you mean figures/gated.pdf? Figures: figures/gated.pdf, "),
    ("figures/x.svg", "There is no figure figures/x.svg. Figures: figures/gated.pdf, figures/trained.pdf, figures/sampled.pdf, figures/narrow.pdf\n"),
])  # fmt: skip
def test_a_figure_that_there_is_not_is_answered_with_those_there_are(project, target, told):
    result = snakemake(project, "--", target)
    assert result.returncode != 0
    assert told in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("text", ["seed: !!python/object/apply:os.system ['touch written']", "run: ../../elsewhere"])
def test_a_configuration_from_elsewhere_runs_nothing_and_writes_nowhere_else(tmp_path, text):
    project = tmp_path / "project"
    project.mkdir()
    small_project(project)
    (project / "foreign.yaml").write_text(text)
    result = snakemake(project, "--configfile", "foreign.yaml", "--", "figures/gated.pdf")
    assert result.returncode != 0
    assert not list(tmp_path.rglob("written"))
    assert [path.name for path in tmp_path.iterdir()] == ["project"]
    assert not (project / "results").exists()


@pytest.mark.parametrize("target", ["results/data/../../../outside/draws_0-1.nc", "figures/../../outside.pdf"])
def test_no_rule_makes_files_outside_the_results(project, target):
    result = snakemake(project, "--", target)
    assert result.returncode != 0
    assert not (project.parent / "outside").exists()
    assert not (project.parent / "outside.pdf").exists()


if __name__ == "__main__":
    print(table())
