"""The page from its parts: verdicts, figures with their parameters, cost and origin, and the agreement with simulations."""

import base64
import hashlib
import json
import re
from dataclasses import asdict
from pathlib import Path

import xarray as xr
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from ggdln.experiments import store
from ggdln.workflow.config import SECTIONS, describe, join, leaves, read_config
from ggdln.study.figures import style
from ggdln.workflow.jobs import Jobs, read_benchmark
from ggdln.study.report import graphs, text
from ggdln.study.report.numbers import csv_uri, panel_table

OUTCOMES = {
    # outcome: (sign, name)
    "holds": ("✓", "holds"),
    "partly": ("◐", "holds in part of the draws"),
    "fails": ("✗", "doesn’t hold"),
    "untestable": ("–", "not testable here"),
}
SECTION_NAMES = {
    "paper": "From the paper",
    "assumed": "Assumed, since the paper doesn’t say",
    "varied": "Varied on purpose",
    "reduced": "Reduced for this run, in place of the above",
}
SOURCES = {"caption": "the caption of the figure", "text": "the text of the paper", "ours": "not in the paper in these words"}
PROVENANCE = {
    "code_version": "code",
    "seed": "root seed",
    "data_source": "data",
    "config_hash": "configuration",
    "packages": "packages",
}


def render(raw, schema, claims, numbers, pictures, benchmarks="benchmarks"):
    """The page, as text. `raw` and `schema`: the configuration; `claims`: the verdicts and the agreement, as in claims.json;
    `numbers` and `pictures`: the NetCDF file and the PNG of each figure; `benchmarks`: the folder of the benchmark files.
    """
    config = read_config(raw, schema)
    jobs = Jobs(config)
    verdicts = [_claim(claim, config.figures) for claim in claims["claims"]]
    figures = [
        _figure(name, config, numbers[name], pictures[name])
        | {
            "claims": [claim for claim in verdicts if claim["figure"] == name],
            "experiments": _parameters(raw["experiments"], schema, config.experiments_of(name)),
            "cost": _cost(jobs.of_figure(name).values(), benchmarks),
        }
        for name in config.figures
    ]
    agreement = _agreement(claims["agreement"])
    looks = [look for part in (*figures, *agreement) for entry in part["legend"] for look in entry["looks"]]
    template = _templates().get_template("page.html")
    return template.render(
        run=config.run,
        version=store.code_version(),
        figures=figures,
        claims=verdicts,
        claimed=_by_figure(verdicts),
        outcomes=_outcomes(verdicts),
        agreement=agreement,
        plotly=Markup(get_plotlyjs().replace("</script", "<\\/script")),
        swaps=_json(json.dumps(graphs.dark_colours(looks))),
    )


def figure_name(name):
    """How a figure is called: fig2 -> Fig. 2."""
    return re.sub(r"^fig(?=S?\d)", "Fig. ", name)


def outcome(claim):
    """Which of the four outcomes the verdict of a claim is."""
    verdict = claim["verdict"].replace("’", "'")
    if verdict.startswith("holds in "):
        return "partly"
    known = {"holds": "holds", "doesn't hold": "fails", "not testable here": "untestable"}
    if verdict not in known:
        raise ValueError(f"claim {claim['id']}: verdict {verdict!r}; accepted: {', '.join(known)} or holds in k of n")
    return known[verdict]


def letters(layout):
    """The letter under which each panel is shown: panels without one of their own belong to the one before."""
    shown, letter = {}, ""
    for key, panel in layout["panels"].items():
        letter = shown[key] = panel.get("label", key) or letter
    return shown


def _claim(claim, layouts):
    kind, figure = outcome(claim), claim["figure"]
    shown = letters(layouts[figure]) if figure in layouts else {}
    sensitivity = [
        row | {"effect": _effect(row.get("effect")), "outcome": outcome({"id": claim["id"]} | row)}
        for row in claim.get("sensitivity") or []
    ]
    return claim | {
        "outcome": kind,
        "order": list(OUTCOMES).index(kind),
        "ours": claim.get("source") == "ours",
        "sign": OUTCOMES[kind][0],
        "place": figure_name(figure) + shown.get(claim["panel"], claim["panel"]),
        "reason": claim.get("reason") or claim.get("caveat", ""),
        "source": SOURCES.get(claim.get("source"), claim.get("source")),
        "effect_text": _effect(claim["effect"]),
        "sensitivity": [row | {"sign": OUTCOMES[row["outcome"]][0]} for row in sensitivity],
        "finding": text.markdown(claim.get("finding")),
    }


def _by_figure(claims):
    """The figures that claims are about, each with its claims."""
    found = {}
    for claim in claims:
        found.setdefault(claim["figure"], []).append(claim)
    return [{"id": figure, "name": figure_name(figure), "claims": own} for figure, own in found.items()]


def _effect(effect):
    return text.with_error(effect["value"], effect.get("error")) if effect else "–"


def _outcomes(claims):
    """Every outcome with its sign, its name and how many claims have it."""
    found = [claim["outcome"] for claim in claims]
    return [{"id": key, "sign": sign, "name": name, "count": found.count(key)} for key, (sign, name) in OUTCOMES.items()]


def _figure(name, config, numbers, picture):
    layout, data = config.figures[name], store.groups(numbers)
    experiments = {experiment.name: asdict(experiment) for experiment in config.experiments_of(name)}
    panels, drawn, shown = [], [], letters(layout)
    for key, panel in layout["panels"].items():
        graph = graphs.panel_graph(panel, data, experiments)
        if graph is None:
            continue
        drawn.append(graph)
        letter = shown[key]
        title = text.formula(_title(panel, data))
        file = f"{name}_{letter}_{_slug(text.plain(_title(panel, data)))}.csv"
        csv = csv_uri(panel_table(panel, data))
        panels.append({"letter": letter, "title": title, "spec": _json(graph.to_json()), "file": file, "csv": csv})
    size = f"{layout['size'][0] / layout['size'][1]:.3f}"
    return {
        "id": name,
        "name": figure_name(name),
        "caption": layout["caption"],
        "picture": "data:image/png;base64," + base64.b64encode(Path(picture).read_bytes()).decode(),
        "ratio": size,
        "panels": panels,
        "legend": _legend(drawn),
        "file": str(numbers),
        "provenance": _provenance(numbers),
    }


def _legend(drawn):
    return [{"label": Markup(key), "looks": looks} for key, looks in graphs.legend(drawn).items()]


def _title(panel, data):
    """What a panel shows, in a few words."""
    quantity = {"kernel_profile": "kernel_profile"}.get(panel["kind"], panel.get("quantity"))
    name = style.QUANTITIES.get(quantity) or store.DESCRIPTIONS[quantity][0]
    if panel["kind"] == "densities":
        name = "density of kernel elements"
    if panel["kind"] == "matrix" and "title" in panel:
        name = {"task_correlation": "influence between tasks $C$", "kernel_picture": "kernel $\\tilde{K}$"}.get(quantity, "")
    return ", ".join(part for part in (name, panel.get("title")) if part)


def _slug(words):
    return re.sub(r"[^A-Za-z0-9]+", "_", words).strip("_")


def _parameters(sections, schema, experiments):
    """Parameters of each experiment, by section: rows of name, value and meaning."""
    found = []
    for experiment in experiments:
        own = sections[experiment.name]
        own = sections[own["base"]] | own if "base" in own else own
        values = join(own)
        tables = []
        for section in SECTIONS:
            rows = [
                {"key": _key(path), "value": _value(value), "meaning": describe(schema, values, path)}
                for path, value in leaves(own.get(section, {}))
            ]
            if rows:
                tables.append({"id": section, "name": SECTION_NAMES[section], "rows": rows})
        found.append({"name": experiment.name, "tables": tables})
    return found


def _key(path):
    return f"{path[1]} (swept)" if path[0] == "sweep" else ".".join(path)


def _value(value):
    return ", ".join(map(str, value)) if isinstance(value, list) else "on" if value == {} else str(value)


def _cost(jobs, folder):
    """What the jobs of a figure took, as far as there are benchmark files, and what was predicted for them."""
    jobs = list(jobs)
    known = [(job, values) for job in jobs if (values := read_benchmark(Path(folder) / job.benchmark))]
    return {
        "jobs": len(jobs),
        "measured": len(known),
        "wall": _minutes(sum(values["s"] for _, values in known)),
        "cpu": _minutes(sum(values["cpu_time"] for _, values in known)),
        "memory": f"{max((values['max_rss'] for _, values in known), default=0):.0f} MB",
        "predicted": _minutes(sum(job.cost.seconds for job, _ in known)),
        "predicted_all": _minutes(sum(job.cost.seconds for job in jobs)),
    }


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
            {"letter": "", "title": f"{_quantity(quantity)}, {experiment}", "spec": _json(graph.to_json())}
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
        "methods": f"{_method(entry['method'])} against {_method(entry['reference'])}",
        "quantity": _quantity(entry["quantity"]),
        "ends": ends,
        "exponent": text.with_error(exponent["value"], exponent.get("error")) if exponent else "–",
    }


def _percent(row):
    return text.with_error(row["difference"], row["error"], percent=True)


def _at(axis, x):
    return "" if x is None else f" at {axis}\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}{x:g}"


def _method(name):
    return style.METHODS.get(name, {"label": name})["label"]


def _quantity(name):
    return store.DESCRIPTIONS.get(name, (name,))[0]


def _json(text):
    """JSON that can stand in a script element."""
    return Markup(text.replace("<", "\\u003c"))


def _templates():
    environment = Environment(
        loader=PackageLoader("ggdln.study.report"), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["prose"] = text.prose
    return environment
