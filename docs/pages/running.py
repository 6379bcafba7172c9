"""What make can do, which files a run leaves behind, and the index of the reference."""

import re
import subprocess
from functools import cache

from ggdln.core.kinds import REGISTRIES
from ggdln.experiments import variables
from ggdln.workflow.config import read_config
from ggdln.workflow.files import default_files, load
from ggdln.workflow.stages import Stages
from pages import ROOT
from pages.markdown import code, escape, table

STAGES_IN_WORDS = {
    "prepare_task": "inputs and labels of some draws",
    "fit_gates": "gates fitted to them",
    "assemble_curve": "all draws and points of a method on an experiment",
    "collect_figure": "the numbers behind a figure, one group a curve",
    "draw_figure": "the figure",
    "judge_claim": "the verdict on a claim",
    "weigh_choices": "what becomes of the paper's statements with other values where it leaves them open",
    "collect_claims": "all verdicts, and how far simulations are from the theory",
    "make_report": "the page with all of it",
}


@cache
def stages():
    """The workflow at the paper's sizes."""
    return Stages(read_config(load(default_files(ROOT))), ROOT)


def help_text():
    """What `make help` prints: (target, meaning) of each, and what stands below them."""
    text = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    listed, _, options = text.partition("\n\n")
    pairs = [
        pair for line in listed.splitlines() for pair in re.findall(r"(make \S+(?: \w+=\S+)?)\s{2,}(.+?)(?:\s{3,}|$)", line)
    ]
    return pairs, " ".join(options.split())


def commands():
    pairs, options = help_text()
    listed = [(target, meaning) for target, meaning in pairs]
    return "\n".join([
        "# Commands",
        "",
        "As `make help` lists them. All but `make help` set up the environment in `.venv` if it isn't there.",
        "",
        table(["command", "what it does"], [[code(target), escape(meaning)] for target, meaning in listed]),
        "## Options",
        "",
        "\n".join(f"- {_option(sentence)}" for sentence in re.split(r"(?<=[.;]) (?=[A-Z]+=)", options)),
        "",
        "In an activated environment (`source .venv/bin/activate`) Snakemake works as it is; the head of the `Snakefile` lists the",
        "usual calls. The target comes first, since `--configfile` takes all words that follow it:",
        "",
        "```text",
        *_snakefile_head(),
        "```",
        "",
    ])  # fmt: skip


def _option(sentence):
    return re.sub(r"\b([A-Z]+=[\w./-]+)", r"`\1`", escape(sentence).replace("\\_", "_"))


def _snakefile_head():
    return [line[2:] for line in (ROOT / "Snakefile").read_text().splitlines() if line.startswith("# snakemake ")]


def files():
    rows = []
    for stage in stages().table.values():
        meaning = STAGES_IN_WORDS.get(stage.name) or _method_stage(stage.name)
        rows.append([code(stage.name), "<br>".join(map(code, stage.output.values())), escape(meaning)])
    return "\n".join([
        "# Files and their variables",
        "",
        "What each stage of a run writes. Names in braces are hashes of all that determines the content, ranges of draws, or names of",
        "the configuration; with `run: NAME` figures and their numbers are in folders of that name.",
        "",
        table(["stage", "files", "what is in them"], rows),
        "Every NetCDF file says in its attributes what it was made from (`code_version`, `parameters`, `config_hash`, `seed`,",
        "`data_source`, `packages`), and carries a checksum of its content (`content_sha256`) that is compared at reading.",
        "`xarray.open_datatree(\"results/fig1.nc\")` reads the numbers of a figure: one group for each experiment and method.",
        "",
        "## Variables",
        "",
        "As files describe them in the attributes `long_name`, `symbol` and `equation`.",
        "",
        *_variables(),
    ])  # fmt: skip


def _method_stage(name):
    verb, method = name.split("_", 1)
    label = REGISTRIES["method"].get(method).look.label
    return f"{label}: some draws of a piece of a sweep" if verb == "run" else f"{label}: runs of several jobs put together"


def _variables():
    groups = {"Axes and dimensions": variables.AXES, "Tasks": variables.VARIABLES}
    for sort in ("task", "gates", "observable", "method"):
        for kind in REGISTRIES[sort].own():
            cls = REGISTRIES[sort].get(kind)
            found = cls.variables | getattr(cls, "run_variables", {})
            groups.setdefault({"task": "Tasks", "gates": "Gates", "observable": "Observables", "method": "Methods"}[sort], {})
            groups[{"task": "Tasks", "gates": "Gates", "observable": "Observables", "method": "Methods"}[sort]] |= found
    for title, found in groups.items():
        rows = [[code(name), escape(v.long_name), code(v.symbol), code(v.equation)] for name, v in found.items()]
        yield f"### {title}\n\n" + table(["variable", "meaning", "symbol", "equation"], rows)


def index():
    from pages.kinds import SORTS

    kinds = "\n".join(f"{title} <{sort}>" for sort, (title, _) in SORTS.items())
    return f"""\
# Reference

All of this is written from the code when the site is built.

```{{toctree}}
:maxdepth: 1

The library <api>
The configuration <configuration>
{kinds}
Commands <commands>
Files and variables <files>
```
"""
