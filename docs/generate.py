"""Write the parts of the documentation that follow from the configuration and the workflow.

docs/assumptions.md: every value that the paper leaves open. docs/rulegraph.svg: the rules and what they need from each other.
"""

import re
import subprocess
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import yaml

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

from ggdln.workflow.config import describe, join, leaves, shown_series


def assumptions():
    """The table of assumed values, as Markdown."""
    schema = _yaml("workflow/schemas/config.schema.yaml")
    config, figures = _yaml("config/config.yaml"), _yaml("config/figures.yaml")["figures"]
    lines = [
        "# What was assumed",
        "",
        "The paper leaves these values open. They stand under `assumed` in `config/config.yaml`, apart from the paper's own;",
        "this table is generated from there by `make docs`.",
        "",
        "| experiment | figures | value | assumed | meaning |",
        "|---|---|---|---|---|",
    ]
    for name, sections in config["experiments"].items():
        shown = {
            f: [s["experiment"] for p in figure["panels"].values() for s in shown_series(p)] for f, figure in figures.items()
        }
        used = ", ".join(figure for figure, experiments in shown.items() if name in experiments)
        values = join(sections)
        for path, value in leaves(sections["assumed"]):
            key = path[1] + " (swept)" if path[0] == "sweep" else ".".join(path)
            text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
            lines.append(f"| {name} | {used} | `{key}` | {text} | {describe(schema, values, path)} |")
    return "\n".join(lines) + "\n"


def rule_graph():
    """Edges (needed rule, rule) of the workflow, from Snakemake itself."""
    command = [sys.executable, "-m", "snakemake", "--rulegraph", "dot", "--quiet", "--", "report"]
    dot = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    names = dict(re.findall(r'(\d+)\s*\[\s*label\s*=\s*"([^"]+)"', dot))
    return sorted((names[a], names[b]) for a, b in re.findall(r"(\d+)\s*->\s*(\d+)", dot))


def draw_rule_graph(edges, path):
    """Rules from left to right, each right of all that it needs."""
    level = {}

    def level_of(rule):
        if rule not in level:
            level[rule] = 1 + max((level_of(a) for a, b in edges if b == rule), default=-1)
        return level[rule]

    rules = sorted({rule for edge in edges for rule in edge}, key=lambda rule: (level_of(rule), rule))
    columns = {}
    for rule in rules:
        columns.setdefault(level[rule], []).append(rule)
    tallest = max(map(len, columns.values()))
    place = {
        rule: (2.3 * column, (tallest - 1) / 2 - (i - (len(names) - 1) / 2))
        for column, names in columns.items()
        for i, rule in enumerate(names)
    }
    with plt.rc_context({"svg.hashsalt": "ggdln", "svg.fonttype": "path", "font.size": 9}):
        figure, ax = plt.subplots(figsize=(1.6 * len(columns), 0.7 + 0.55 * tallest), layout="constrained")
        for a, b in edges:
            (xa, ya), (xb, yb) = place[a], place[b]
            bend = 0.0 if level[b] - level[a] == 1 else -0.35
            ax.annotate(
                "",
                (xb - 0.75, yb),
                (xa + 0.75, ya),
                arrowprops={"arrowstyle": "-|>", "color": "#718096", "connectionstyle": f"arc3,rad={bend}"},
            )
        for rule, (x, y) in place.items():
            box = {"boxstyle": "round,pad=0.4", "facecolor": "#ebf4ff", "edgecolor": "#2b6cb0"}
            ax.text(x, y, rule, ha="center", va="center", bbox=box)
        ax.set(xlim=(-1.1, 2.3 * (len(columns) - 1) + 1.1), ylim=(-0.8, tallest - 0.2))
        ax.axis("off")
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)


def _yaml(path):
    return yaml.safe_load((ROOT / path).read_text())


if __name__ == "__main__":
    (ROOT / "docs/assumptions.md").write_text(assumptions())
    draw_rule_graph(rule_graph(), ROOT / "docs/rulegraph.svg")
