"""The page from its parts: verdicts, figures with their parameters, cost and origin, and the agreement with simulations."""

import base64
import csv
import hashlib
import io
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import xarray as xr
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from ggdln.experiments import store
from ggdln.experiments.variables import describe
from ggdln.study import style, words
from ggdln.study.compose import Figure
from ggdln.study.panels._text import formula, plain
from ggdln.study.report import graphs, text

SECTIONS = {
    "paper": "From the paper",
    "assumed": "Assumed, since the paper doesn’t say",
    "varied": "Varied on purpose",
    "reduced": "Reduced for this run, in place of the above",
}
PROVENANCE = {
    "code_version": "code",
    "seed": "root seed",
    "data_source": "data",
    "config_hash": "configuration",
    "packages": "packages",
}


@dataclass(frozen=True)
class Entry:
    """What the page has of a figure.

    name, layout: as configured. numbers, picture: its NetCDF file and its PNG. experiments: those that it shows, by name.
    parameters: for each experiment and section ("paper", "assumed", "varied", "reduced") rows with "key", "value", "meaning".
    cost: "jobs" and how many of these are "measured"; seconds "wall" and "cpu" and "memory" in MB of these, seconds that were
    "predicted" for them and "predicted_all" for all jobs.
    """

    name: str
    layout: Figure
    numbers: Path
    picture: Path
    experiments: dict = field(default_factory=dict)
    parameters: dict = field(default_factory=dict)
    cost: dict = field(default_factory=dict)


def render(entries, claims, run=""):
    """The page, as text. entries: an `Entry` for each figure; claims: verdicts and agreement, as in claims.json."""
    layouts = {entry.name: entry.layout for entry in entries}
    verdicts = [_claim(claim, layouts) for claim in claims["claims"]]
    figures = [_figure(entry) | {"claims": [c for c in verdicts if c["figure"] == entry.name]} for entry in entries]
    agreement = _agreement(claims["agreement"])
    looks = [look for part in (*figures, *agreement) for shown in part["legend"] for look in shown["looks"]]
    return (
        _templates()
        .get_template("page.html")
        .render(
            run=run,
            version=store.code_version(),
            figures=figures,
            claims=verdicts,
            claimed=_by_figure(verdicts),
            outcomes=_outcomes(verdicts),
            agreement=agreement,
            calibration=[choice | {"rows": words.options(choice)} for choice in claims.get("calibration", [])],
            plotly=Markup(get_plotlyjs().replace("</script", "<\\/script")),
            swaps=_json(json.dumps(graphs.dark_colours(looks))),
        )
    )


def figure_name(name):
    """How a figure is called: fig2 -> Fig. 2."""
    return re.sub(r"^fig(?=S?\d)", "Fig. ", name)


def _claim(claim, layouts):
    figure = claim["figure"]
    letters = layouts[figure].letters() if figure in layouts else {}
    return (
        claim
        | _judged(claim)
        | {
            "order": list(words.OUTCOMES).index(claim["outcome"]),
            "ours": claim["source"] == "ours",
            "place": figure_name(figure) + letters.get(claim["panel"], claim["panel"]),
            "quantity": words.quantity(claim["measured"]),
            "condition_text": words.condition(claim["condition"]),
            "reason": words.caveats(claim["caveats"]),
            "source": words.SOURCES[claim["source"]],
            "sensitivity": [row | _judged(row) for row in claim["sensitivity"]],
            "tried": [row | _judged(row) for row in claim.get("tried", [])],
            "finding": text.markdown(claim["finding"]),
        }
    )


def _judged(result):
    """The verdict on a claim or on a variant of it, in words."""
    sign, _ = words.OUTCOMES[result["outcome"]]
    return {"sign": sign, "verdict": words.verdict(result), "effect_text": words.effect(result.get("effect"))}


def _by_figure(claims):
    """The figures that claims are about, each with its claims."""
    found = {}
    for claim in claims:
        found.setdefault(claim["figure"], []).append(claim)
    return [{"id": figure, "name": figure_name(figure), "claims": own} for figure, own in found.items()]


def _outcomes(claims):
    """Every outcome with its sign, its name and how many claims have it."""
    found = [claim["outcome"] for claim in claims]
    return [{"id": key, "sign": sign, "name": name, "count": found.count(key)} for key, (sign, name) in words.OUTCOMES.items()]


def _figure(entry):
    name, layout, data = entry.name, entry.layout, store.groups(entry.numbers)
    panels, drawn, letters = [], [], layout.letters()
    for key, panel in layout.panels.items():
        graph, table = panel.graph(data, entry.experiments), panel.table(data, entry.experiments)
        if graph is None:
            continue
        drawn.append(graph)
        title, spec = formula(panel.heading()), _json(graph.to_json())
        panels.append({"letter": letters[key], "title": title, "spec": spec})
        if table:
            file = f"{name}_{letters[key]}_{_slug(plain(panel.heading()))}.csv"
            panels[-1] |= {"file": file, "csv": csv_uri(table)}
    picture = Path(entry.picture).read_bytes()
    return {
        "id": name,
        "name": figure_name(name),
        "caption": layout.caption,
        "picture": "data:image/png;base64," + base64.b64encode(picture).decode(),
        "ratio": f"{_side(picture, 16) / _side(picture, 20):.3f}",
        "panels": panels,
        "legend": _legend(drawn),
        "experiments": _parameters(entry.parameters),
        "cost": _cost(entry.cost),
        "file": str(entry.numbers),
        "provenance": _provenance(entry.numbers),
    }


def _side(png, place):
    """Width or height of a PNG, which stand at fixed places."""
    return int.from_bytes(png[place : place + 4], "big")


def csv_uri(table):
    """A table as a link that holds its own content."""
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows(table)
    return "data:text/csv;charset=utf-8," + quote(file.getvalue(), safe=", /:;()=-+.")


def _legend(drawn):
    return [{"label": Markup(key), "looks": looks} for key, looks in graphs.legend(drawn).items()]


def _slug(heading):
    return re.sub(r"[^A-Za-z0-9]+", "_", heading).strip("_")


def _parameters(experiments):
    """Parameters of each experiment, by section."""
    found = []
    for name, sections in experiments.items():
        tables = [
            {"id": id, "name": title, "rows": [row | {"value": _value(row["value"])} for row in sections[id]]}
            for id, title in SECTIONS.items()
            if sections.get(id)
        ]
        found.append({"name": name, "tables": tables})
    return found


def _value(value):
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else "on" if value == {} else str(value)


def _cost(cost):
    """What the jobs of a figure took and what was predicted, in words."""
    times = {key: _minutes(cost[key]) for key in ("wall", "cpu", "predicted", "predicted_all")}
    return times | {"jobs": cost["jobs"], "measured": cost["measured"], "memory": f"{cost['memory']:.0f} MB"}


def _minutes(seconds):
    return f"{seconds / 60:.2g} min" if seconds < 600 else f"{seconds / 60:.0f} min"


def _provenance(file):
    """What the file of a figure says about where it comes from, and its checksum."""
    with xr.open_dataset(file, engine="netcdf4") as root:
        attributes = dict(root.attrs)
    rows = [{"name": name, "value": _readable(attributes[key])} for key, name in PROVENANCE.items() if key in attributes]
    return [*rows, {"name": "sha256 of the file", "value": hashlib.sha256(Path(file).read_bytes()).hexdigest()}]


def _readable(attribute):
    """Lists and mappings are stored as JSON."""
    try:
        value = json.loads(attribute)
    except (TypeError, ValueError):
        return str(attribute)
    if isinstance(value, dict):
        return ", ".join(f"{key} {item}" for key, item in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _agreement(entries):
    """Comparisons by figure: a graph for each experiment and quantity, and a row of the table for each method."""
    figures = {}
    for entry in entries:
        groups = figures.setdefault(entry["figure"], {})
        groups.setdefault((entry["experiment"], entry["quantity"]), []).append(entry)
    found = []
    for name, groups in figures.items():
        drawn = {key: graphs.agreement_graph(group) for key, group in groups.items()}
        panels = [
            {"letter": "", "title": f"{describe(quantity).long_name}, {experiment}", "spec": _json(graph.to_json())}
            for (experiment, quantity), graph in drawn.items()
        ]
        rows = [_agreement_row(entry) for group in groups.values() for entry in group]
        found.append({"id": name, "name": figure_name(name), "panels": panels, "legend": _legend(drawn.values()), "rows": rows})
    return found


def _agreement_row(entry):
    rows = [row for row in entry["rows"] if row["difference"] is not None]
    ends = [f"{_percent(row)}{_at(entry['axis'], row['x'])}" for row in (rows[0], rows[-1])] if rows else ["–", "–"]
    exponent = entry.get("exponent")
    return {
        "experiment": entry["experiment"],
        "methods": f"{style.look(entry['method']).label} against {style.look(entry['reference']).label}",
        "quantity": describe(entry["quantity"]).long_name,
        "ends": ends,
        "exponent": words.with_error(exponent["value"], exponent.get("error")) if exponent else "–",
    }


def _percent(row):
    return words.with_error(row["difference"], row["error"], percent=True)


def _at(axis, x):
    return "" if x is None else f" at {axis}\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}{x:g}"


def _json(content):
    """JSON that can stand in a script element."""
    return Markup(content.replace("<", "\\u003c"))


def _templates():
    environment = Environment(
        loader=PackageLoader("ggdln.study.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["prose"] = text.prose
    return environment
