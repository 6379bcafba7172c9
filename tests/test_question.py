"""A question of the user's own through the workflow: what the documents print, on data and gates from files that count by content."""

import hashlib
import itertools
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from helpers import ROOT, append, copy_project, rewrite, snakemake
from workspace import link_environment

from ggdln.core import code
from ggdln.experiments import store
from ggdln.study.compose import Figure
from ggdln.workflow.config import read_config
from ggdln.workflow.files import default_files, load
from ggdln.workflow.progress import Progress, duration, priorities

README = (ROOT / "README.md").read_text()
TUTORIAL = (ROOT / "docs/tutorials/own_experiment.md").read_text()
FILES = dict(re.findall(r"%%writefile (\w+\.\w+)\n(.*?)```", TUTORIAL, re.S))
BLOCKS = re.findall(r"```(?:python|yaml)\n(.*?)```", README, re.S)
COMMANDS = [line.strip().split("#")[0].strip() for line in re.findall(r"^    ((?:make|snakemake) .*)$", README, re.M)]
COMMANDS += re.findall(r"`((?:make|snakemake|pip|source) [^`]+)`", README)
HERE = ("--snakefile", str(ROOT / "Snakefile"), "--configfile", "mine.yaml")


def write_files(folder):
    """The files of the tutorial, and the data that one of them makes."""
    for name, text in FILES.items():
        (folder / name).write_text(text)
    subprocess.run([sys.executable, "my_data.py"], cwd=folder, check=True)


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    """A folder of the user's outside the project, and what the question of the tutorial makes in it without a target."""
    folder = tmp_path_factory.mktemp("mine")
    write_files(folder)
    result = snakemake(folder, *HERE)
    assert result.returncode == 0, result.stdout + result.stderr
    (folder / "first_run.txt").write_text(result.stdout + result.stderr)
    return folder


@pytest.fixture
def edited(asked):
    """The folder, with its files as they were after the test."""
    files = {path: path.read_bytes() for path in asked.iterdir() if path.suffix in (".npz", ".py", ".yaml")}
    yield asked
    for path, content in files.items():
        path.write_bytes(content)


def replanned(folder):
    """How many jobs of each rule a dry-run would run, and why those whose parameters have changed."""
    result = snakemake(folder, *HERE, "--dry-run")
    assert result.returncode == 0, result.stdout + result.stderr
    jobs = Counter(re.findall(r"^(?:local)?rule (\w+):", result.stdout, re.M))
    return {rule: count for rule, count in jobs.items() if rule != "all"}, re.findall(r"reason: Params.*", result.stdout)


DRAWN = {"assemble_curve": 1, "collect_figure": 1, "draw_figure": 1}


def test_the_files_of_the_documents_are_those_of_their_own_question():
    assert set(FILES) == {"my_data.py", "my_gates.py", "mine.yaml"}
    # The blocks of the README are the examples of the library, which test_docs runs.
    assert [block.split("\n")[0] for block in BLOCKS] == ["import ggdln", "import numpy as np, ggdln"]
    for text in (FILES["mine.yaml"], (ROOT / "workflow/template.yaml").read_text()):
        assert (ROOT / re.match(r"# yaml-language-server: \$schema=(\S+)\n", text)[1]).is_file()


def test_only_the_figures_of_the_users_file_are_made_and_listed(asked):
    text = (asked / "first_run.txt").read_text()
    assert sorted(path.name for path in (asked / "figures").iterdir()) == ["mine.pdf", "mine.png"]
    assert text.count("Made:\n  figures/mine.pdf\n") == 1
    assert "fig1" not in text
    assert re.search(r"To make figures/mine.pdf: 12 jobs, \d+ core-seconds, about \d+ s on 2 cores\.", text)
    curve = store.read(asked / "results/curves/mine/theory.nc")
    assert dict(curve.sizes) == {"draw": 3, "M": 4, "sigma": 4}
    assert (curve.error_rate.mean(("draw", "sigma")) < 0.5).all()


def test_the_page_is_about_the_figures_of_the_users_file(asked):
    result = snakemake(asked, "report", *HERE)
    assert result.returncode == 0, result.stdout + result.stderr
    page = (asked / "figures/report.html").read_text()
    assert re.findall(r'<section id="(\w+)" class="figure"', page) == ["mine"]
    assert "The figures of the paper" not in page
    assert "Made:\n  figures/report.html\n" in result.stdout


def test_the_figure_says_where_its_data_come_from(asked):
    checksum = hashlib.sha256((asked / "data.npz").read_bytes()).hexdigest()
    assert store.read(asked / "results/curves/mine/theory.nc").attrs["data_source"] == f"data.npz, sha256 {checksum}"
    (task,) = (asked / "results/data").glob("file-*/draws_0-3.nc")
    assert store.read(task).class_name.values[0].tolist() == ["different", "same"]
    assert b"/Subject (Error rate against the number of gates and the prior)" in (asked / "figures/mine.pdf").read_bytes()


def test_dates_and_comments_rerun_nothing_and_a_label_or_code_what_depends_on_it(edited):
    before = dict(np.load(edited / "data.npz"))
    os.utime(edited / "data.npz")
    append(edited / "my_gates.py", "# edited\n")
    assert replanned(edited) == ({}, [])
    rewrite(edited / "my_gates.py", "> 0", "> 0.1")
    jobs, reasons = replanned(edited)
    assert jobs == {"fit_gates": 4, "run_theory": 4} | DRAWN
    # Snakemake says why in few words, without names of modules.
    assert len(reasons) == 4
    assert max(map(len, reasons)) < 200
    rewrite(edited / "my_gates.py", "> 0.1", "> 0")
    y = before["y"].copy()
    y[7] = {"same": "different", "different": "same"}[str(y[7])]
    np.savez(edited / "data.npz", x=before["x"], y=y)
    assert replanned(edited)[0] == {"prepare_task": 1, "fit_gates": 4, "run_theory": 4} | DRAWN


def test_modules_beside_a_function_count_and_every_function_in_them(tmp_path):
    """The library leaves out functions that only check or tell, such as `words`; a user's may have any name."""
    (tmp_path / "mine.py").write_text("from beside import words\n")
    found = []
    for value in (0, 1):
        (tmp_path / "beside.py").write_text(f"def words():\n    return {value}  # comment {value}\n")
        code.forget()
        found.append((code.of_job([], [], own=[tmp_path / "mine.py"]), code.of_job([tmp_path / "mine.py"], [tmp_path])))
    code.forget()
    (own, library), (own_after, library_after) = found
    assert own != own_after
    assert library == library_after


def test_a_file_that_is_not_there_any_more_stops_everything_with_one_message(edited):
    (edited / "data.npz").unlink()
    result = snakemake(edited, *HERE)
    assert result.returncode != 0
    assert "experiments.mine.task.path (under" not in result.stderr
    assert "experiments.mine.task.path = 'data.npz'; accepted: a file that is there" in result.stderr
    assert "Traceback" not in result.stderr


# ---- Which figures are made


def test_without_a_target_the_figures_of_the_users_files_are_chosen_or_all():
    def chosen(*more):
        own = load(more).get("figures")
        return read_config(load([*default_files(ROOT), *more]), own).chosen

    everything = list(load(default_files(ROOT))["figures"])
    assert chosen() == everything
    assert chosen(ROOT / "config/quick.yaml") == everything
    raw = load(default_files(ROOT))
    assert read_config(raw, {"fig3": {}}).chosen == ["fig3"]


# ---- How a run goes


class FakeJob:
    def __init__(self, seconds, *inputs):
        self.inputs = inputs
        self.cost = type("Cost", (), {"seconds": seconds})


def test_time_left_follows_the_pace_of_the_run():
    jobs = {str(i): FakeJob(100) for i in range(20)}
    progress = Progress(jobs, 2, where="2 cores", overhead=0.0)
    assert progress.announcement(["figures/a.pdf"]) == (
        "To make figures/a.pdf: 20 jobs, 33 core-minutes, about 17 min on 2 cores."
    )
    assert progress.remaining(0) == 1000
    for i in range(10):  # twice as slow as predicted
        progress.finished(str(i), 100.0 * (i + 1))
    assert progress.remaining(1000) == pytest.approx(1000, rel=0.1)
    assert progress.finished("10", 1005) is None  # not so often
    assert progress.finished("11", 1100) == "12 of 20 jobs done, about 12 min left"
    for i in range(12, 20):
        last = progress.finished(str(i), 2000)
    assert last is None
    # A chain can't be shortened by more cores.
    chain = {"a": FakeJob(50), "b": FakeJob(50, "a")}
    assert Progress(chain, 8, where="8 cores", overhead=0.0).remaining(0) == 100


def test_durations_are_words():
    assert [duration(seconds) for seconds in (40, 600, 3 * 3600 + 20 * 60)] == ["40 s", "10 min", "3 h 20 min"]


def test_cheap_figures_come_first_and_shared_work_with_the_first_that_needs_it():
    pending = {"shared": FakeJob(10), "few": FakeJob(5), "many": FakeJob(500), "done later": FakeJob(1)}
    figures = {"large": ["shared", "many"], "small": ["shared", "few", "there already"], "tiny": ["done later"]}
    assert priorities(figures, pending) == {"done later": 3, "shared": 2, "few": 2, "many": 1}


# ---- make


def make(*arguments, folder=ROOT, **more):
    # Without the words of the make that runs the tests.
    return subprocess.run(
        ["make", "--no-print-directory", *arguments], cwd=folder, capture_output=True, text=True, timeout=600, **more
    )


def new(folder, *arguments):
    command = [sys.executable, str(ROOT / "workflow/new.py"), *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def test_a_new_question_is_a_valid_file_that_is_never_overwritten(tmp_path, raw):
    result = new(tmp_path, "my_question")
    assert (
        result.stdout == "my_question.yaml is made; change it, and then: make figures/my_question.pdf CONFIG=my_question.yaml\n"
    )
    text = (tmp_path / "my_question.yaml").read_text()
    assert "NAME" not in text
    config = read_config(load([*default_files(ROOT), tmp_path / "my_question.yaml"]))
    assert config.curves_of("my_question") == [("my_question", "theory"), ("my_question", "gp")]
    assert isinstance(config.figures["my_question"], Figure)
    # What stands in comments is accepted too.
    heatmap = re.search(r"# (\{kind: heatmap.*\})", text)[1]
    sweep, methods = re.search(r"such as (\{network.*\}), methods: (\{.*\}),", text).groups()
    assert "sigma: 0.5, " in text
    assert "methods: {theory: {}, gp: {}}" in text
    other = text.replace("sigma: 0.5, ", "").replace("{network.N: [10, 30, 100, 300, 1000]}", sweep)
    other = other.replace("methods: {theory: {}, gp: {}}", f"methods: {methods}")
    other = other.replace("{kind: curves, quantity: generalization_error, legend: true} # or legend: beside", heatmap)
    other = re.sub(r"      b: \{kind: curves.*\n|    defaults:\n.*\n", "", other).replace("mosaic: [ab]", "mosaic: [a]")
    (tmp_path / "other.yaml").write_text(other)
    assert read_config(load([*default_files(ROOT), tmp_path / "other.yaml"])).figures["my_question"].panels["a"].y == "sigma"
    for name, told in (
        ("my_question", "my_question.yaml is there already and was left as it is"),
        ("fig1", "NAME=fig1 is a figure or an experiment of the paper"),
        ("my-question", "NAME=my-question can't be the name of a figure; accepted: letters, digits and _, a letter first"),
        ("../x", "accepted: letters"),
        ("", "accepted: letters"),
    ):
        result = new(tmp_path, name)
        assert result.returncode == 1
        assert told in result.stderr
    assert (tmp_path / "my_question.yaml").read_text() == text
    assert sorted(path.name for path in tmp_path.iterdir()) == ["my_question.yaml", "other.yaml"]


def test_make_answers_what_it_does_not_know():
    head = (ROOT / "Makefile").read_text().split("\n\n")[0]
    assert make("help").stdout == re.sub(r"^# ?", "", head, flags=re.M) + "\n"
    result = make("fig1")
    assert (result.returncode, "There is no target fig1." in result.stderr) == (2, True)
    result = make("figures", "PROFILE=slrum")
    assert result.returncode == 2
    assert "PROFILE=slrum is not there; accepted: default slurm" in result.stderr
    plan = subprocess.run([sys.executable, ROOT / "workflow/plan.py", "--profile", "slrum"], capture_output=True, text=True)
    assert plan.stderr.strip().endswith("accepted: a folder, or default, slurm; did you mean 'slurm'?")


# ---- What documents print: that it is there, and what it does

SHORT = [
    # The table of figures: what make hands to Snakemake, which is asked for all of them at once.
    (r"^make (figures/fig\w+\.pdf)$", r"make --dry-run \1 | grep -q 'snakemake .* -- \1$'"),
    # Runs of hours, minutes or on a cluster are planned and not done; tests and installations have tests of their own.
    (r"^make (figures|quick|report)\b(?!/my_question)(?!.*mine\.yaml)(.*)$", r"make \1\2 OPTIONS='--dry-run --quiet'"),
    (r"^snakemake --report .*$", "make --dry-run report"),
    (r"^(PATH=\S+ )?snakemake (?!.*mine\.yaml)(.*)$", r"\1snakemake --dry-run --quiet all \2"),
    (r"^make (test\S*|lint|types|docs|bench|dist|setup|calibrate|check-gpu|linkcheck)$", r"make --dry-run \1"),
    (r"^(pip install|git clone|git worktree) .*$", "true"),
    (r"^cd \.\./ggdln-run && make figures(.*)$", r"make figures\1 OPTIONS='--dry-run --quiet'"),
    (r"^source (.*)$", r". \1"),
]  # fmt: skip


PAGES = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True).stdout.split()
VARIABLES = [*re.findall(r"^(\w+) \?=", (ROOT / "Makefile").read_text(), re.M), "NAME"]
TARGETS = re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.M)
OWN = {"mine", "my_question", "bands"}
"""Questions that the documents make files for."""
PROGRAMS = {"cd", "git", "pip", "source"}
"""What else stands in commands of the documents."""


def blocks(text):
    """The commands in blocks of a document: those of bash, and those that are set in."""
    fenced = re.findall(r"^```bash\n(.*?)^```", text, re.M | re.S)
    rest = re.sub(r"^(```+|:::+).*?^\1$", "", text, flags=re.M | re.S)
    set_in = re.findall(r"(?<=\n\n)((?:    \S.*\n|     +\S.*\n)+)", rest)
    lines = "\n".join([*fenced, *set_in]).replace("\\\n", " ").splitlines()
    return [line for line in (re.sub(r"\s+# .*", "", line).strip() for line in lines) if line]


def in_words(text):
    """The commands that stand in a sentence or a table."""
    return re.findall(r"`((?:[A-Z_]+=\S+ )*(?:make|snakemake|python|pytest) [^`]+)`", text)


def options():
    """All options of snakemake and its plugins, and of pytest."""
    from snakemake.cli import get_argument_parser

    return {"snakemake": set(get_argument_parser()._option_string_actions), "pytest": {"-rP", "-k", "-m", "-q"}}


def unknown(command, figures, known):
    """What a command names that isn't there: targets, variables, files, options, figures, programs."""
    found = []
    for part in command.split(" && "):
        program, *words = itertools.dropwhile(lambda word: re.match(r"[A-Z_]+=", word), shlex.split(part))
        given = [word for word in words if not word.startswith("-")]
        files = [w.split("=")[-1] for w in given if re.search(r"[\w/]\.(py|yaml)$", w)]
        files += [w for w in given if w.startswith("workflow/")]
        found += [w for w in files if not (ROOT / w).exists() and Path(w).stem not in OWN]
        found += [w for w in given if (name := re.match(r"figures/(?:\w+/)?(\w+)\.", w)) and name[1] not in figures | OWN]
        if program == "make":
            found += [w for w in given if not re.match(rf"figures/|({'|'.join(VARIABLES)})=", w) and w not in TARGETS]
            found += [w for w in given if w.startswith("PROFILE=") and not (ROOT / "workflow/profiles" / w[8:]).exists()]
        elif program in ("snakemake", "pytest"):
            found += [w for w in words if w.startswith("-") and w != "--" and w.split("=")[0] not in known[program]]
        elif program == "python":
            script = (ROOT / words[0]).read_text() if (ROOT / words[0]).is_file() else ""
            found += [w for w in words if w.startswith("--") and w != "--help" and w not in script]
        elif program not in PROGRAMS:
            found.append(program)
    return found


def test_commands_of_the_documents_name_what_is_there():
    names = {name for path in (*default_files(ROOT), ROOT / "config/gallery.yaml") for name in load([path]).get("figures", {})}
    known = options()
    for page in PAGES:
        text = (ROOT / page).read_text()
        for command in [*blocks(text), *in_words(text)]:
            assert unknown(command, names, known) == [], f"{page}: {command}"
    head = re.findall(r"^# (snakemake .*?)(?:  |$)", (ROOT / "Snakefile").read_text(), re.M)
    assert head
    assert [unknown(command, names, known) for command in head] == [[]] * len(head)


@pytest.mark.parametrize("command", ["make figure", "make figures/fig9.pdf", "make plan PROFIL=slurm", "make plan PROFILE=slrum", "mak plan", "python benchmarks/cost.py", "python benchmarks/gpu.py --cards", "snakemake --core 8", "snakemake --configfile config/quik.yaml", "cd x && pytest tests/test_gone.py"])  # fmt: skip
def test_what_a_command_names_wrongly_is_found(command):
    assert len(unknown(command, {"fig1"}, options())) == 1


@pytest.mark.slow
def test_every_command_in_a_block_of_the_documents_is_planned(checkout):
    """Those of the README have a test of their own, and so have the kinds of CONTRIBUTING.md."""
    pages = [page for page in PAGES if page not in ("README.md", "CONTRIBUTING.md")]
    commands = dict.fromkeys(command for page in pages for command in blocks((ROOT / page).read_text()))
    assert {"make check-gpu", "make figures PROFILE=slurm", "snakemake --cores 8 figures/fig5.pdf"} <= set(commands)
    environment = os.environ | {"PATH": f"{checkout}/.venv/bin:{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}
    for command in dict.fromkeys(map(shortened, commands)):
        result = subprocess.run(
            ["bash", "-c", command], cwd=checkout, capture_output=True, text=True, env=environment, timeout=600
        )
        assert result.returncode == 0, (command, result.stdout[-2000:], result.stderr[-2000:])
    assert not list((checkout / "figures").glob("fig*"))


def shortened(command):
    for pattern, replacement in SHORT:
        if re.search(pattern, command):
            return re.sub(pattern, replacement, command)
    return command


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A copy of the project whose environment is the one in which the tests run."""
    folder = tmp_path_factory.mktemp("checkout")
    copy_project(ROOT, folder)
    link_environment(folder)
    write_files(folder)
    return folder


@pytest.mark.slow
def test_every_command_of_the_readme_does_what_it_says(checkout):
    assert {"make new NAME=my_question", "make figures/my_question.pdf CONFIG=my_question.yaml", "make figures"} <= set(
        COMMANDS
    )
    environment = os.environ | {"PATH": f"{checkout}/.venv/bin:{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}
    tabled = re.findall(r"make (figures/fig\w+\.pdf)", README)
    for command in dict.fromkeys([*COMMANDS, f"snakemake --cores 2 {' '.join(tabled)}"]):
        words = ["bash", "-c", shortened(command)]
        result = subprocess.run(words, cwd=checkout, capture_output=True, text=True, env=environment, timeout=600)
        assert result.returncode == 0, (command, shortened(command), result.stdout[-2000:], result.stderr[-2000:])
    assert (checkout / "figures/my_question.pdf").read_bytes().startswith(b"%PDF")
    assert not list((checkout / "figures").glob("fig*"))


@pytest.mark.slow
def test_tasks_that_the_tutorial_lists_are_accepted(tmp_path, monkeypatch):
    import yaml

    monkeypatch.chdir(tmp_path)
    write_files(tmp_path)
    np.savez("gates.npz", gates=np.ones((400, 2)))
    raw = load([*default_files(ROOT), "mine.yaml"])
    (tmp_path / "data.csv").write_text(
        "a,b,age,dose,label\n" + "".join(f"{i},{i % 7},{i % 5},{i % 4},{'cat' if i % 3 else 'dog'}\n" for i in range(400))
    )
    rows = re.findall(r"^\| `(\{kind: .*?\})` \|", TUTORIAL, re.M)
    assert len(rows) == 6
    mine = raw["experiments"]["mine"]["assumed"]
    for row in rows:
        mine["task"] = yaml.safe_load(row)
        if mine["task"]["kind"] == "torchvision":
            shutil.rmtree("data", ignore_errors=True)
            continue
        assert read_config(raw).experiments["mine"]
    mine["task"] = yaml.safe_load(rows[0])
    mine["gates"] = yaml.safe_load(re.search(r"`gates: (\{kind: file.*?\})`", TUTORIAL)[1])
    mine["sweep"] = {"gates.M": [1, 2], "network.sigma": [1.0, 2.0]}
    assert read_config(raw).experiments["mine"].curve("theory").pieces[1].points[0]["gates"]["M"] == 2
