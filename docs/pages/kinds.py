"""Every kind of task, gates, method, observable, panel and condition: docstring, picture, parameters, and a place where it is used."""

import inspect
import sys

import yaml

from ggdln.core.kinds import REGISTRIES
from pages import DOCS, REPOSITORY, ROOT, sketches
from pages.api import reference
from pages.configuration import rows
from pages.markdown import code, docstring, escape, table
from pages.running import stages

SORTS = {
    # sort: (title, what a kind of it is)
    "task": (
        "Tasks",
        "A task makes inputs and labels, one independent draw at a time: `task: {kind: ..., P: ...}` in an experiment.",
    ),
    "gates": ("Gates", "Gates say which dendrites an input opens. They are fitted to inputs without labels, and then fixed."),
    "method": ("Methods", "A method computes something at each point of a sweep: `methods: {theory: {}, gd: {runs: 4}}`."),
    "observable": ("Observables", "An observable is measured on whatever a method has found: `observables: [predictor]`."),
    "panel": ("Panels", "A panel shows curves in a figure. The pictures here are made from invented numbers."),
    "condition": ("Conditions", "A condition says of one draw whether a claim holds in it, with the size of the effect."),
}


def pages():
    return {sort: lambda sort=sort: page(sort) for sort in SORTS}


def used(sort, name):
    """The parameters of a kind in the first place of the configuration that uses it."""
    config = stages().config
    if sort in ("task", "gates"):
        for written, experiment in config.experiments.items():
            spec = getattr(experiment, sort)
            if spec and spec["kind"] == name:
                return f"{sort} of the experiment `{written}`", {sort: _plain(spec)}
    if sort == "method":
        for written, experiment in config.experiments.items():
            if name in experiment.methods:
                return f"the experiment `{written}`", {"methods": {name: _plain(dict(experiment.methods[name] or {}))}}
    if sort == "observable":
        for written, experiment in config.experiments.items():
            if name in experiment.observables:
                return f"the experiment `{written}`", {"observables": list(experiment.observables)}
    if sort == "panel":
        for figure, layout in config.figures.items():
            for letter, panel in layout.panels.items():
                if panel.kind_name() == name:
                    spec = {"kind": name} | panel.model_dump(exclude_defaults=True, exclude_none=True)
                    return f"panel {letter} of [{figure}](../gallery.md#{figure.lower()})", {letter: spec}
    if sort == "condition":
        for written, claim in config.claims.items():
            if claim["condition"]["kind"] == name:
                return f"the claim `{written}`", {"condition": _plain(claim["condition"])}
    return None, None


def _plain(spec):
    return {key: value for key, value in spec.items() if value is not None}


def entry(sort, name):
    """The section of a kind."""
    registry = REGISTRIES[sort]
    cls = registry.get(name)
    module = inspect.cleandoc(sys.modules[cls.__module__].__doc__ or "").split("\n\n")[0]
    lines = [f"({sort}-{name.replace('_', '-')})=", f"## {code(name)}", "", docstring(module, reference), ""]
    if "__doc__" in vars(cls) and cls.__doc__:
        lines += [docstring(cls, reference), ""]
    picture = sketches.save(sort, name, DOCS / "reference/pictures")
    if picture:
        lines += [f"```{{image}} pictures/{picture}\n:alt: what {name} does\n:class: plate sketch\n```", ""]
    if sort == "condition" and cls.meaning:
        lines += [f"The effect is the {escape(cls.meaning)}.", ""]
    found = table(["parameter", "meaning", "accepted", "default"], rows(cls, links=None))
    if found:
        lines += [found]
    variables = cls.variables | getattr(cls, "run_variables", {})
    if variables and sort in ("observable", "method"):
        told = [[code(key), escape(v.long_name), code(v.symbol), code(v.equation)] for key, v in variables.items()]
        lines += [table(["gives", "meaning", "symbol", "equation"], told)]
    where, spec = used(sort, name)
    if where:
        text = yaml.safe_dump(spec, sort_keys=False, default_flow_style=None, width=110).strip()
        lines += [f"Used by {where}:", "", "```yaml", text, "```", ""]
    path = registry.file(name).relative_to(ROOT)
    return "\n".join([*lines, f"[{path}]({REPOSITORY}/{path})", ""])


def page(sort):
    title, told = SORTS[sort]
    more = {"task": "own_data", "gates": "own_gates"}.get(sort)
    link = f" One of your own: [the tutorial](../tutorials/{more}.md)." if more else ""
    names = REGISTRIES[sort].own()
    listed = " · ".join(f"[{code(name)}](#{sort}-{name.replace('_', '-')})" for name in names)
    own = "A kind is one file, found by its name; [contributing](../contributing.md) has a complete example of each sort."
    return "\n".join([f"# {title}", "", f"{told} {own}{link}", "", listed, "", *(entry(sort, name) for name in names)])
