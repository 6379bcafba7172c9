"""Every key of the configuration: from the models that check it."""

import json
import typing

from pydantic import BaseModel

from ggdln.core.problems import accepted
from ggdln.study.claims import Agreement, Claim, Control, ControlCondition, Measured, Sheet
from ggdln.study.conditions import Comparison
from ggdln.study.panels.curves import Series
from ggdln.study.panels.heatmap import Marked
from ggdln.tasks._samples import OneVsRest
from ggdln.workflow.models import (
    Batch,
    Choice,
    Digits,
    ExperimentValues,
    Machine,
    Network,
    PartialBatch,
    Root,
    Sections,
    WrittenFigure,
)
from pages.markdown import code, escape, table

PARTS = {
    # heading: (model, where it stands)
    "The file": (Root, ""),
    "Digits": (Digits, "digits"),
    "Jobs": (Batch, "batch"),
    "Machine": (Machine, "machine"),
    "Experiments": (Sections, "experiments.NAME"),
    "Values of an experiment": (ExperimentValues, "experiments.NAME.paper, .assumed, .reduced, .varied"),
    "Networks": (Network, "experiments.NAME.assumed.network"),
    "One class against others": (OneVsRest, "experiments.NAME.assumed.task.labels"),
    "Jobs of an experiment": (PartialBatch, "experiments.NAME.batch, calibration.NAME.batch"),
    "Figures": (WrittenFigure, "figures.NAME"),
    "A series": (Series, "figures.NAME.panels.LETTER.series[]"),
    "The best point": (Marked, "figures.NAME.panels.LETTER.best"),
    "Choices": (Choice, "calibration.NAME"),
    "Claims": (Sheet, "claims.FIGURE"),
    "A claim": (Claim, "claims.FIGURE.statements.NAME"),
    "What is measured": (Measured, "claims.FIGURE.statements.NAME.measured"),
    "A control": (Control, "claims.FIGURE.statements.NAME.control"),
    "The condition of a control": (ControlCondition, "claims.FIGURE.statements.NAME.control.condition"),
    "A comparison": (
        Comparison,
        "claims.FIGURE.statements.NAME.condition.other, .condition.reference, .control.condition.other, "
        "claims.FIGURE.agreement[].reference",
    ),
    "Agreement": (Agreement, "claims.FIGURE.agreement[]"),
}
LINKS = {
    "task": "task",
    "gates": "gates",
    "methods": "method",
    "observables": "observable",
    "panels": "panel",
    "condition": "condition",
}
TITLES = {model: title for title, (model, _) in PARTS.items()}


def models(annotation):
    """The models in a type."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in typing.get_args(annotation) for model in models(part)]


def below(model, name, page=""):
    """A link to the tables of the models that a key has as values, if they have some."""
    titles = [TITLES[found] for found in models(model.model_fields[name].annotation) if found in TITLES]
    return " ".join(f"[{title}]({page}#{title.lower().replace(' ', '-')})." for title in titles)


def default(node, required):
    """The default of a key, as YAML would have it."""
    if required:
        return "needed"
    value = node.get("default")
    return "" if value in (None, {}, [], "") or isinstance(value, dict) else code(json.dumps(value, ensure_ascii=False))


def rows(model, links=LINKS):
    """Key, meaning, accepted values and default, of each key of a model; links: key -> page, nothing on a page of kinds."""
    schema = model.model_json_schema()
    found = []
    for name, node in schema.get("properties", {}).items():
        told = escape(_meaning(node))
        more = below(model, name, "" if links else "configuration.md")
        if links and name in links and not more:
            told += f"{' ' if told else ''}[All kinds]({links[name]}.md)."
        told += f"{' ' if told and more else ''}{more}"
        found.append([code(name), told, escape(_words(node, schema)), default(node, name in schema.get("required", ()))])
    return found


def _meaning(node):
    text = node.get("description", "")
    return text if not text or text.endswith(".") else f"{text}."


def _words(node, root):
    """What is accepted, in the words of the messages."""
    text = accepted(node, root)
    return {"a value": "anything"}.get(text, text)


def page():
    lines = [
        "# The configuration",
        "",
        "A configuration is one or more YAML files; `config/` holds that of the paper, and a file of one's own adds to it. Everything is",
        "checked before anything runs, and a mistake is answered with its place, the value, and what would be accepted.",
        "",
        "Editors that know the YAML language server complete and check by the same models, through the first line of a file:",
        "",
        "```yaml",
        "# yaml-language-server: $schema=workflow/schemas/config.schema.json",
        "```",
        "",
        "Where values repeat, `for` writes an entry several times: `for: {name: [a, b], M: [5, 50]}` stands for two entries in which",
        "`{name}` and `{M}` are replaced by values that are read side by side. Anchors and `<<` of YAML work too.",
        "",
    ]
    for title, (model, where) in PARTS.items():
        lines += [f"## {title}", ""]
        lines += [f"Under {', '.join(map(code, where.split(', ')))}." if where else "At the top."]
        lines += ["", table(["key", "meaning", "accepted", "default"], rows(model))]
    return "\n".join(lines)
