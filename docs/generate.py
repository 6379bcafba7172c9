"""Write every document that follows from the code, the configuration and the results.

    python docs/generate.py [CLAIMS]        what `make docs` does; CLAIMS: results/claims.json unless given

docs/assumptions.md: every value that the paper leaves open. docs/rulegraph.svg: the rules and what they need from each other.
workflow/schemas/config.schema.json: the configuration, for editors. constraints.txt and environment.yml: the versions of
lock.toml, for pip and conda. With verdicts, which `make report` makes: docs/verdicts.md, docs/agreement.md and a few lines
of README.md; with a calibration, which `make calibrate` makes, also docs/calibration.md.
"""

import io
import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import xarray as xr

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "docs"), str(ROOT / "tools")]

import lock
import verdicts

from ggdln.workflow import schema
from ggdln.workflow.choices import calibrated
from ggdln.workflow.config import read_config
from ggdln.workflow.files import load
from ggdln.workflow.overview import parameter_rows
from ggdln.workflow.sections import join


def assumptions():
    """The table of assumed values, as Markdown."""
    config = read_config(load([ROOT / "config" / name for name in ("config.yaml", "figures.yaml", "calibration.yaml")]))
    shown = {figure: [experiment for experiment, _ in config.curves_of(figure)] for figure in config.figures}
    rows = [
        [name, ", ".join(figure for figure in shown if name in shown[figure]), f"`{row['key']}`", row["value"], row["meaning"]]
        for name, sections in config.written.items()
        if "varied" not in sections
        for row in parameter_rows(join(sections), sections["assumed"], calibrated(config.calibration, name))
    ]
    lines = [
        "# What was assumed",
        "",
        "The paper leaves these values open. They stand under `assumed` in `config/config.yaml`, apart from the paper's own;",
        "this table is generated from there by `make docs`. Those marked as calibrated were tried against others",
        "(`config/calibration.yaml`); experiments that repeat a figure with another method take the same values.",
        "",
        *verdicts.table(["experiment", "figures", "value", "assumed", "meaning"], rows),
    ]
    return "\n".join(lines) + "\n"


def rule_graph():
    """Edges (needed rule, rule) of the workflow, from Snakemake itself."""
    targets = ["figures/report.html", "results/calibration.json"]
    command = [sys.executable, "-m", "snakemake", "--rulegraph", "dot", "--quiet", "--", *targets]
    dot = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    names = dict(re.findall(r'(\d+)\s*\[\s*label\s*=\s*"([^"]+)"', dot))
    edges = {(names[a], names[b]) for a, b in re.findall(r"(\d+)\s*->\s*(\d+)", dot)}
    # The calibration is told beside the verdicts once it has been made.
    return sorted(edges | {("weigh_choices", "collect_claims")})


def direct(edges):
    """The edges without those between rules that are connected through others too."""

    def needed(rule):
        return {above for a, b in edges if b == rule for above in (a, *needed(a))}

    return [(a, b) for a, b in edges if not any(a in needed(other) for other, rule in edges if rule == b)]


def places(edges):
    """Rule -> (column, height): each right of all that it needs, and as near to their height as its neighbours allow."""
    column, height = {}, {}

    def column_of(rule):
        if rule not in column:
            column[rule] = 1 + max((column_of(a) for a, b in edges if b == rule), default=-1)
        return column[rule]

    rules = sorted({rule for edge in edges for rule in edge})
    for i in range(1 + max(map(column_of, rules))):
        members = [rule for rule in rules if column[rule] == i]
        wish = {rule: [height[a] for a, b in edges if b == rule] or [0.0] for rule in members}
        wish = {rule: sum(heights) / len(heights) for rule, heights in wish.items()}
        top = sum(wish.values()) / len(members) + (len(members) - 1) / 2
        height |= {rule: top - k for k, rule in enumerate(sorted(members, key=lambda rule: (-wish[rule], rule)))}
    return {rule: (column[rule], height[rule]) for rule in rules}


def picture(edges):
    """The rules from left to right, as SVG."""
    edges = direct(edges)
    place = {rule: (2.3 * x, y) for rule, (x, y) in places(edges).items()}
    right, (low, high) = max(x for x, _ in place.values()), (f(y for _, y in place.values()) for f in (min, max))
    with plt.rc_context({"svg.hashsalt": "ggdln", "svg.fonttype": "path", "font.size": 9}):
        figure, ax = plt.subplots(figsize=(0.7 * (right + 2.2), 0.7 + 0.55 * (high - low)), layout="constrained")
        for a, b in edges:
            (xa, ya), (xb, yb) = place[a], place[b]
            ax.annotate("", (xb - 0.85, yb), (xa + 0.85, ya), arrowprops={"arrowstyle": "-|>", "color": "#718096"})
        for rule, (x, y) in place.items():
            box = {"boxstyle": "round,pad=0.4", "facecolor": "#ebf4ff", "edgecolor": "#2b6cb0"}
            ax.text(x, y, rule, ha="center", va="center", bbox=box)
        ax.set(xlim=(-1.1, right + 1.1), ylim=(low - 0.6, high + 0.6))
        ax.axis("off")
        file = io.StringIO()
        figure.savefig(file, format="svg", metadata={"Date": None})
        plt.close(figure)
    return file.getvalue()


GENERATED = {
    "docs/assumptions.md": assumptions,
    "docs/rulegraph.svg": lambda: picture(rule_graph()),
    "workflow/schemas/config.schema.json": schema.text,
    "constraints.txt": lock.constraints,
    "environment.yml": lock.environment,
}
"""What follows from code and configuration alone: path -> function that gives the text."""


def commits(folder):
    """How many figures in a folder have numbers that were put together at which commit, the latest file first."""
    files = sorted(folder.glob("fig*.nc"), key=lambda file: -file.stat().st_mtime)
    found = []
    for file in files:
        with xr.open_dataset(file, engine="netcdf4") as root:
            # The version of the package and, in a checkout, the commit.
            found += root.attrs["code_version"].split()[1:]
    return dict(Counter(found))


def main(claims=None):
    claims = Path(claims) if claims else ROOT / "results/claims.json"
    documents = {path: text() for path, text in GENERATED.items()}
    if claims.exists():
        readme = (ROOT / "README.md").read_text()
        documents |= verdicts.documents(json.loads(claims.read_text()), readme, commits(claims.parent))
    else:
        print(f"There is no {claims}, which `make report` makes: verdicts are left as they are.")
    for path, text in documents.items():
        (ROOT / path).write_text(text)
        print(path)


if __name__ == "__main__":
    main(*sys.argv[1:])
