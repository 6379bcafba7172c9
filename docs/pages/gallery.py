"""The gallery: every figure with its picture, what it shows, what was said of it and whether that holds, and how to make it."""

import re

from ggdln.study import words
from ggdln.workflow.config import read_config
from ggdln.workflow.files import default_files, load
from ggdln.workflow.overview import parameter_tables
from ggdln.workflow.stages import Stages
from pages import DOCS, REPOSITORY, ROOT
from pages.markdown import code, escape, table
from pages.running import stages
from pages.verdicts import COLOURS, claims, counts

OWN = ROOT / "config/gallery.yaml"
SECTIONS = {"paper": "from the paper", "assumed": "assumed", "varied": "varied", "reduced": "reduced"}
HEAD = """\
# Gallery

Every figure of the paper, made by one command each from raw digits. The badges say how many of the paper's statements about a
figure hold in our draws; the core-minutes are predicted for one core, and figures share work. The numbers as CSV are those of the
lines; of densities and profiles they may have some of the points only, and a run leaves all in `results/fig1.nc` and the like.
Questions that the paper leaves open have [figures of our own](#beyond-the-paper).

"""
BEYOND = """\
## Beyond the paper

"""
NOTHING_YET = """\
:::{note}
Figures of questions that the paper doesn't ask stand here once `config/gallery.yaml` has some.
:::
"""


def title(name, layout):
    """A figure by its number and the first words of its caption."""
    first = re.split(r"[.;,:(]", layout.caption)[0].strip()
    return f"{words.figure(name)}: {first}" if name != words.figure(name) else first


def minutes(work, figure):
    """Predicted core-minutes of a figure, all that it shares with others included."""
    found = sum(job.cost.seconds for job in work.jobs(work.figure_file(figure)).values()) / 60
    return f"{found:.0f}" if found >= 3 else f"{found:.1g}"


def picture(name, alt):
    if (DOCS / f"figures/{name}.png").exists():
        return f"```{{image}} figures/{name}.png\n:alt: {alt}\n:class: plate\n:loading: lazy\n:target: ../_images/{name}.png\n```\n"
    return ":::{note}\nThis figure has not been drawn for the site yet.\n:::\n"


def badges(found):
    return " ".join(f"{{bdg-{COLOURS[name]}}}`{number} {name}`" for name, number in found.items() if number)


def entry(work, name, *, config, files, command):
    """The section of a figure."""
    layout, told = work.config.figures[name], [claim for claim in claims() if claim["figure"] == name]
    found = counts(claim for claim in told if claim["paper"])
    lines = [
        f"({name})=",
        f"### {escape(title(name, layout))}",
        "",
        picture(name, title(name, layout)),
        re.sub(r"\b([A-Za-z])\\_(\w)\b", r"$\1_{\2}$", escape(layout.caption)),
        "",
    ]
    if told:
        lines += [badges(found), ""]
    links = [f"[layout]({REPOSITORY}/{config})", *(f"[{text}]({REPOSITORY}/{path})" for text, path in files.items())]
    if (DOCS / f"figures/{name}.csv").exists():
        links.append(f"{{download}}`numbers as CSV <figures/{name}.csv>`")
    lines += [f"{code(command)} · {minutes(work, name)} core-minutes · {' · '.join(links)}", ""]
    if told:
        rows = [[c["panel"], escape(c["statement"]), escape(c["verdict"]), c["draws"], escape(c["control"])] for c in told]
        head = ["panel", "statement", "verdict", "draws", "control"]
        lines += ["::::{dropdown} What is said of it, and whether it holds", "", table(head, rows), "::::", ""]
    lines += ["::::{dropdown} Parameters", ""]
    for experiment, sections in parameter_tables(work.config, name).items():
        rows = [
            [code(row["key"]), escape(row["value"]), SECTIONS[section], escape(row["meaning"])]
            for section, found in sections.items()
            for row in found
        ]
        lines += [f"**{escape(experiment)}**", "", table(["parameter", "value", "", "meaning"], rows)]
    return "\n".join([*lines, "::::", ""])


def overview(names, work):
    """All figures as small pictures that lead to them."""
    lines = ["::::{grid} 2 3 4 4", ":gutter: 2", ""]
    for name in names:
        top = f":img-top: figures/{name}.png\n" if (DOCS / f"figures/{name}.png").exists() else ""
        label = words.figure(name) if name != words.figure(name) else title(name, work.config.figures[name])
        lines += [f":::{{grid-item-card}} {label}\n:link: {name}\n:link-type: ref\n:class-card: thumbnail\n{top}:::\n"]
    return "\n".join([*lines, "::::", ""])


def page():
    work = stages()
    names = list(work.config.figures)
    parts = [HEAD, overview(names, work), "## The paper\n"]
    for name in names:
        files = {"experiments": "config/config.yaml", "statements": f"config/claims/{name}.yaml"}
        files = {text: path for text, path in files.items() if (ROOT / path).exists()}
        parts.append(entry(work, name, config="config/figures.yaml", files=files, command=f"make figures/{name}.pdf"))
    parts.append(BEYOND)
    if OWN.exists():
        own = load([OWN])
        more = Stages(read_config(load([*default_files(ROOT), OWN]), own.get("figures")), ROOT)
        parts.append(overview(own["figures"], more))
        for name in own["figures"]:
            command = f"make figures/{name}.pdf CONFIG=config/gallery.yaml"
            parts.append(entry(more, name, config="config/gallery.yaml", files={}, command=command))
    else:
        parts.append(NOTHING_YET)
    return "\n".join(parts)
