"""Configuration: from nested dictionaries to experiments, with every mistake named.

The sections of an experiment (paper, assumed, reduced) are joined and checked against a JSON schema, defaults are filled in,
and what a schema can't say is checked in words: digits that the source doesn't have, axes that don't exist, figures of
experiments that aren't there. All problems are reported together in one `ConfigError`.
"""

import copy
import difflib
import itertools
import math
from dataclasses import dataclass, replace
from pathlib import Path

from jsonschema import Draft202012Validator

from ggdln.study.claims import references
from ggdln.core.errors import ConfigError
from ggdln.experiments.experiment import Experiment
from ggdln.tasks.digits import COUNTS

SECTIONS = ("paper", "assumed", "varied", "reduced")
DEEPEST = 20
SEVERAL_TASKS = ("mnist_permuted", "mnist_conflicting")
OBSERVED_ON = {
    "kernel_profile": ("angles",),
    "kernel_shape": ("mnist_parity", *SEVERAL_TASKS),
    "task_correlation": SEVERAL_TASKS,
    "kernel_blocks": ("mnist_conflicting",),
}
"""Kinds of tasks on which an observable is defined, where not on all."""


@dataclass(frozen=True)
class Config:
    """A valid configuration. `figures` maps each figure to its layout; `varied` says how a variant differs from its base."""

    run: str
    seed: int
    digits: dict
    machine: dict
    experiments: dict
    figures: dict
    claims: dict
    agreement: list
    varied: dict

    def experiments_of(self, figure):
        """The experiments that a figure shows, each with the methods that are shown, in the order of its panels."""
        shown = {}
        for panel in self.figures[figure]["panels"].values():
            for series in shown_series(panel):
                shown.setdefault(series["experiment"], []).append(series["method"])
        return [self._restricted(name, methods) for name, methods in shown.items()]

    def experiments_of_claim(self, claim, *, beyond_figure=False):
        """The experiments that a claim looks at, with the methods that it looks at, or only those that its figure lacks."""
        shown = {e.name: e.methods for e in self.experiments_of(self.claims[claim]["figure"])} if beyond_figure else {}
        seen = {}
        for experiment, method in references(self.claims[claim]):
            if method not in shown.get(experiment, ()):
                seen.setdefault(experiment, []).append(method)
        return [self._restricted(name, methods) for name, methods in seen.items()]

    def _restricted(self, name, methods):
        experiment = self.experiments[name]
        return replace(experiment, methods={method: experiment.methods[method] for method in dict.fromkeys(methods)})


def shown_series(panel):
    """What a panel shows: mappings with an experiment, a method, and where it matters a hue and a selection."""
    return panel.get("series", [panel] if "experiment" in panel else [])


def read_config(raw, schema):
    """Check the configuration `raw` against `schema` and give it as a `Config`."""
    raw = copy.deepcopy(raw)
    problems = _not_finite(raw)
    if not problems:
        problems = _violations(raw, schema, schema)
    if problems:
        raise _error(problems)
    problems = _fill_variants(raw["experiments"])
    if problems:
        raise _error(problems)
    _fill_defaults(raw, schema, schema)
    experiments = {}
    for name, sections in raw["experiments"].items():
        try:
            experiments[name] = _experiment(name, sections, raw, schema)
        except ConfigError as error:
            problems += str(error).splitlines()[1:]
    if not problems:
        problems = _figure_problems(raw["figures"], experiments)
        problems += _claim_problems(raw["claims"], raw["agreement"], raw["figures"], experiments)
    if problems:
        raise _error(problems)
    varied = {name: _difference(sections["varied"]) for name, sections in raw["experiments"].items() if "varied" in sections}
    kept = {key: raw[key] for key in ("run", "seed", "digits", "machine", "figures", "claims", "agreement")}
    return Config(experiments=experiments, varied=varied, **kept)


def load_config(root, files):
    """The configuration in YAML `files` of the project in `root`, each adding to those before it, as Snakemake reads them."""
    import yaml  # which the library itself doesn't need

    raw = {}
    for file in files:
        with open(file) as text:
            _merge(raw, yaml.safe_load(text) or {})
    with open(Path(root) / "workflow/schemas/config.schema.yaml") as text:
        return read_config(raw, yaml.safe_load(text))


def join(sections):
    """The values of an experiment from its sections; `reduced` replaces values of the other two."""
    joined = {}
    for section in SECTIONS:
        _merge(joined, copy.deepcopy(sections.get(section, {})))
    return _without_none(joined)


def leaves(tree, path=()):
    """(path, value) of everything in nested dictionaries that is not itself a non-empty dictionary."""
    for key, value in tree.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, (*path, key))
        else:
            yield (*path, key), value


def describe(schema, experiment, path):
    """Description of a parameter of an experiment, from the schema."""
    node = schema["$defs"]["experiment"]
    values = experiment
    for key in path:
        if path[0] == "sweep" and key != "sweep":
            section, parameter = key.split(".")
            return describe(schema, experiment, (section, parameter))
        node = _property(node, key, values, schema)
        values = values.get(key, {}) if isinstance(values, dict) else {}
    return node.get("description", "")


def _experiment(name, sections, raw, schema):
    where = f"experiments.{name}"
    problems = []
    for path, _ in leaves(sections["paper"]):
        if _has(sections["assumed"], path):
            problems.append(f"{where}: {'.'.join(path)} stands under both paper and assumed; accepted: one of them")
    values = join(sections)
    if "varied" in sections:
        # A variant on fewer draws than its base has fewer simulated ones too.
        for settings in values["methods"].values():
            if "draws" in settings:
                settings["draws"] = min(settings["draws"], values["draws"])
    sweep = values.get("sweep", {})
    grid = schema["$defs"]["experiment"]["properties"]["sweep"]
    problems += _violations(sweep, grid, schema, f"{where}.sweep")
    if problems:
        raise _error(problems)
    # A swept parameter is checked at each of its values, in the place where it acts.
    first = copy.deepcopy(values)
    for axis, points in sweep.items():
        section, key = axis.split(".")
        if not isinstance(first.setdefault(section, {}), dict):
            break
        if key in values.get(section, {}):
            problems.append(f"{where}: {axis} is given and swept; accepted: one of them")
        first[section][key] = points[0]
    experiment_schema = schema["$defs"]["experiment"]
    found = _violations(first, experiment_schema, schema, where, sections)
    # The value of an axis is named below, by its place in the sweep.
    problems += [
        text
        for text in found
        if not any(text.startswith(f"{where}.{axis} = {_short(values[0])};") for axis, values in sweep.items())
    ]
    if problems:
        raise _error(problems)
    single = first | {"sweep": {}}  # the sweep itself has been checked, and is long
    for axis, points in sweep.items():
        for i, value in enumerate(points):
            found = _violations(_at(single, {axis: value}), experiment_schema, schema, where)
            problems += [text.replace(f"{where}.{axis} ", f"{where}.sweep.{axis}[{i}] ", 1) for text in found]
    if problems:
        raise _error(problems)
    _fill_defaults(first, experiment_schema, schema)
    for point in itertools.product(*sweep.values()):
        problems += _semantic_problems(where, _at(first, dict(zip(sweep, point, strict=True))), raw["digits"])
    if problems:
        raise _error(list(dict.fromkeys(problems)))
    for axis in sweep:
        section, key = axis.split(".")
        del first[section][key]
    task = first["task"]
    if task["kind"].startswith("mnist"):
        task["digits"] = raw["digits"]["source"]
    batch = raw["batch"] | sections.get("batch", {})
    return Experiment(
        name=name,
        task=task,
        gates=first["gates"],
        network=first["network"],
        sweep=sweep,
        methods=first["methods"],
        observables=tuple(first["observables"]),
        draws=first["draws"],
        seed=raw["seed"],
        draws_per_job=batch["draws"],
        points_per_job=batch["points"],
        runs_per_job=batch["runs"],
    )


def _fill_variants(experiments):
    """Give each variant the sections of the experiment that it varies."""
    problems = []
    for name, sections in experiments.items():
        base = sections.pop("base", None)
        if base is None:
            continue
        if base not in experiments or "base" in experiments[base] or "varied" in experiments[base]:
            plain = [other for other, found in experiments.items() if "base" not in found and "varied" not in found]
            problems.append(
                f"experiments.{name}.base = {base!r}; accepted: an experiment that is not a variant{_near(base, plain)}"
            )
            continue
        filled = copy.deepcopy(experiments[base])
        _merge(filled, sections)
        sections |= filled
        sections.setdefault("varied", {})
    return problems


def _difference(varied):
    """What is varied, in words; how long the sweep is and how many draws are made is not what a variant is about."""
    found = [
        (path, value) for path, value in leaves(varied) if path[0] in ("task", "gates", "network") and value not in (None, {})
    ]
    found += [(("sweep", path[1]), value) for path, value in leaves(varied) if path[0] == "sweep"] if not found else []
    text = (
        f"{'.'.join(path)} = {value}" if path[0] != "sweep" else f"{path[1]} = {value[0]} ... {value[-1]}"
        for path, value in found
    )
    return ", ".join(text)


def _without_none(tree):
    """Without the keys that a variant has set to nothing."""
    return {key: _without_none(value) if isinstance(value, dict) else value for key, value in tree.items() if value is not None}


def _at(values, point):
    """The values with swept parameters set to those of one point."""
    values = values | {axis.split(".")[0]: dict(values[axis.split(".")[0]]) for axis in point}
    for axis, value in point.items():
        section, key = axis.split(".")
        values[section][key] = value
    return values


def _semantic_problems(where, values, digits):
    """What the schema can't say about one point of an experiment."""
    task, gates, problems = values["task"], values["gates"], []

    def need(ok, key, value, accepted):
        if not ok:
            problems.append(f"{where}.{key} = {value!r}; accepted: {accepted}")

    kind = task["kind"]
    if kind.startswith("mnist"):
        step = 4 if kind == "mnist_conflicting" else 2
        for key in ("P", "P_t"):
            need(task[key] % step == 0, f"task.{key}", task[key], f"multiples of {step}, for equal classes")
        counts = COUNTS[digits["source"]]
        classes = counts[:2] if kind == "mnist_conflicting" else (sum(counts[0::2]), sum(counts[1::2]))
        needed = (task["P"] + task["P_t"]) // step
        need(
            needed <= min(classes),
            "task.P + P_t",
            task["P"] + task["P_t"],
            f"at most {step * min(classes)}, since the digits source {digits['source']!r} has {min(classes)} digits of a class",
        )
    if kind == "noisy_teacher":
        need(task["P_t"] <= task["P"], "task.P_t", task["P_t"], f"at most task.P = {task['P']}")
    if kind == "clustered_teacher":
        need(task["N0"] % task["subsets"] == 0, "task.N0", task["N0"], f"multiples of task.subsets = {task['subsets']}")
    if gates["kind"] == "local":
        need(
            gates["M"] % gates["subsets"] == 0,
            "gates.M",
            gates["M"],
            f"multiples of gates.subsets = {gates['subsets']}",
        )
        N0 = task.get("N0", 784)
        need(N0 % gates["subsets"] == 0, "gates.subsets", gates["subsets"], f"divisors of the input dimension {N0}")
    if gates["kind"] == "soft_kmeans" and "P" in task:
        n = task["P"] * task.get("permutations", 1)
        need(gates["M"] <= n, "gates.M", gates["M"], f"at most the {n} training inputs, for soft_kmeans gates")
    if gates["kind"] == "top_down":
        need(kind in SEVERAL_TASKS, "task.kind", kind, f"{' or '.join(SEVERAL_TASKS)}, for top_down gates")
    for observable in values["observables"]:
        kinds = OBSERVED_ON.get(observable)
        if kinds:
            need(kind in kinds, "task.kind", kind, f"{' or '.join(kinds)}, for the observable {observable}")
    if "kernel_profile" not in values["observables"]:
        need(kind != "angles", "task.kind", kind, "a task with labels, for observables other than kernel_profile")
        need(values["network"]["L"] >= 1, "network.L", values["network"]["L"], "at least 1 for a network that learns")
    for name, settings in values["methods"].items():
        draws, most = settings.get("draws", 1), values["draws"]
        need(draws <= most, f"methods.{name}.draws", draws, f"at most the draws of the experiment, {most}")
        if name in ("langevin", "posterior"):
            need(values["network"]["T"] > 0, "network.T", values["network"]["T"], f"a temperature above 0, for {name}")
    if set(values["methods"]) != {"gp"}:
        need("N" in values["network"], "network.N", None, "a width, for methods other than gp")
        need(kind != "angles", "task.kind", kind, "a task with labels, for methods other than gp")
    return problems


def _figure_problems(figures, experiments):
    problems = []
    for name, figure in figures.items():
        where = f"figures.{name}"
        letters = set("".join(figure["mosaic"])) - {"."}
        if letters != set(figure["panels"]):
            problems.append(
                f"{where}.mosaic has panels {sorted(letters)}; accepted: those of panels, {sorted(figure['panels'])}"
            )
        if len({len(row) for row in figure["mosaic"]}) > 1:
            problems.append(f"{where}.mosaic = {figure['mosaic']}; accepted: rows of one length")
        for letter, panel in figure["panels"].items():
            for series in shown_series(panel):
                problems += _series_problems(f"{where}.panels.{letter}", panel, series, experiments)
    return problems


def _series_problems(key, panel, series, experiments):
    name = series["experiment"]
    if name not in experiments:
        return [f"{key}.experiment = {name!r}; accepted: {', '.join(experiments)}{_near(name, experiments)}"]
    problems = []
    axes = {axis.split(".")[1]: values for axis, values in experiments[name].sweep.items()}
    for role in ("x", "hue"):
        axis = series.get(role, panel.get(role))
        if axis is not None and axis not in axes:
            problems.append(f"{key}.{role} = {axis!r}; accepted: an axis of the sweep of {name}, {', '.join(axes) or 'none'}")
    methods = experiments[name].methods
    if series["method"] not in methods:
        problems.append(f"{key}.method = {series['method']!r}; accepted: a method of {name}, {', '.join(methods)}")
    for axis, value in series.get("select", {}).items():
        if value not in axes.get(axis, ()):
            problems.append(f"{key}.select.{axis} = {value!r}; accepted: {axes.get(axis) or 'an axis of the sweep'}")
    return problems


def _claim_problems(claims, agreement, figures, experiments):
    """Claims about figures, experiments, methods and axes that aren't there."""
    problems = []
    for name, claim in claims.items():
        where, figure = f"claims.{name}", claim["figure"]
        if figure not in figures:
            problems.append(f"{where}.figure = {figure!r}; accepted: {', '.join(figures)}")
        elif claim["panel"] not in figures[figure]["panels"]:
            problems.append(f"{where}.panel = {claim['panel']!r}; accepted: {', '.join(figures[figure]['panels'])}")
        unknown = [variant for variant in claim["sensitivity"] if variant not in experiments]
        problems += [f"{where}.sensitivity: {v!r}; accepted: {', '.join(experiments)}{_near(v, experiments)}" for v in unknown]
        if not unknown:
            for reference in references(claim):
                problems += _reference_problems(where, *reference, experiments)
    for i, entry in enumerate(agreement):
        where = f"agreement[{i}]"
        for found in (entry, entry | entry["reference"]):
            problems += _reference_problems(where, found["experiment"], found["method"], experiments)
        if entry["figure"] not in figures:
            problems.append(f"{where}.figure = {entry['figure']!r}; accepted: {', '.join(figures)}")
    return list(dict.fromkeys(problems))


def _reference_problems(where, experiment, method, experiments):
    if experiment not in experiments:
        return [f"{where}: experiment {experiment!r}; accepted: {', '.join(experiments)}{_near(experiment, experiments)}"]
    if method not in experiments[experiment].methods:
        return [f"{where}: method {method!r}; accepted: a method of {experiment}, {', '.join(experiments[experiment].methods)}"]
    return []


def _violations(value, node, schema, where="", sections=None):
    """One line for each way in which `value` breaks the schema `node`."""
    resolved = {"$schema": schema["$schema"], "$defs": schema["$defs"]} | {k: v for k, v in node.items() if k != "$defs"}
    lines = []
    for error in sorted(Draft202012Validator(resolved).iter_errors(value), key=lambda e: list(map(str, e.absolute_path))):
        lines += _explain(error, where, sections, schema)
    return list(dict.fromkeys(lines))


def _explain(error, where, sections, schema):
    path = list(error.absolute_path)
    key = _key(where, path)
    if sections:
        section = next((s for s in reversed(SECTIONS) if _has(sections.get(s, {}), tuple(path))), None)
        key += f" (under {section})" if section and path else ""
    if error.validator == "additionalProperties":
        allowed = list(error.schema.get("properties", {}))
        unknown = [k for k in error.instance if k not in allowed]
        return [
            f"{_key(where, [*path, k])} = {_short(error.instance[k])} is not a known key; accepted here: "
            f"{', '.join(allowed)}{_near(k, allowed)}"
            for k in unknown
        ]
    if error.validator == "required":
        missing = [k for k in error.validator_value if k not in error.instance]
        accepted = {k: _accepted(_deref(error.schema.get("properties", {}).get(k, {}), schema)) for k in missing}
        return [f"{_key(where, [*path, k])} is missing; accepted: {accepted[k]}" for k in missing]
    if "propertyNames" in error.absolute_schema_path:
        return [f"{key}: the name {error.instance!r} is not possible; accepted: names that match {error.validator_value}"]
    near = _near(error.instance, error.validator_value) if error.validator == "enum" else ""
    return [f"{key} = {_short(error.instance)}; accepted: {_accepted(error.schema)}{near}"]


def _accepted(node):
    if "enum" in node:
        return ", ".join(map(str, node["enum"]))
    low = (
        f">= {node['minimum']}" if "minimum" in node else f"> {node['exclusiveMinimum']}" if "exclusiveMinimum" in node else ""
    )
    high = f"<= {node['maximum']}" if "maximum" in node else ""
    names = {
        "integer": "a whole number",
        "number": "a number",
        "object": "keys and values",
        "array": "a list",
        "string": "text",
    }
    names |= {"boolean": "true or false"}
    parts = [names.get(node.get("type"), "a value")]
    parts += [" and ".join(part for part in (low, high) if part)] if low or high else []
    if "pattern" in node:
        parts.append(f"that matches {node['pattern']}")
    for word, text in (("minItems", "at least"), ("maxItems", "at most"), ("maxProperties", "at most")):
        if word in node:
            parts.append(f"with {text} {node[word]} entries")
    return " ".join(parts)


def _near(word, words):
    close = difflib.get_close_matches(str(word), [str(w) for w in words], n=1, cutoff=0.6)
    return f"; did you mean {close[0]!r}?" if close else ""


def _not_finite(tree, path=()):
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    problems = []
    if len(path) > DEEPEST:
        return [f"{_key('', path[:3])} ... : accepted: at most {DEEPEST} levels, and no alias to a value that contains it"]
    for key, value in items:
        if isinstance(value, float) and not math.isfinite(value):
            problems.append(f"{_key('', [*path, key])} = {value}; accepted: a finite number")
        problems += _not_finite(value, (*path, key))
    return problems


def _fill_defaults(value, node, schema):
    """Put the defaults of the schema where `value` has nothing."""
    node = _deref(node, schema)
    for branch in node.get("allOf", ()):
        if Draft202012Validator(branch["if"]).is_valid(value):
            _fill_defaults(value, branch["then"], schema)
    for key, child in node.get("properties", {}).items():
        child = _deref(child, schema)
        if key not in value and "default" in child:
            value[key] = copy.deepcopy(child["default"])
        if isinstance(value.get(key), dict):
            _fill_defaults(value[key], child, schema)
        if isinstance(value.get(key), list) and child.get("items", {}).get("type") == "object":
            for item in value[key]:
                _fill_defaults(item, child["items"], schema)
    extra = node.get("additionalProperties")
    if isinstance(extra, dict):
        for key in set(value) - set(node.get("properties", {})):
            if isinstance(value[key], dict):
                _fill_defaults(value[key], extra, schema)


def _property(node, key, values, schema):
    node = _deref(node, schema)
    if key in node.get("properties", {}) and node["properties"][key]:
        return _deref(node["properties"][key], schema)
    for branch in node.get("allOf", ()):
        if Draft202012Validator(branch["if"]).is_valid(values):
            return _property(branch["then"], key, values, schema)
    return {}


def _deref(node, schema):
    if "$ref" in node:
        target = schema["$defs"][node["$ref"].removeprefix("#/$defs/")]
        return target | {k: v for k, v in node.items() if k != "$ref"}
    return node


def _merge(base, extra):
    for key, value in extra.items():
        if isinstance(value, dict) and isinstance(base.get(key), dict):
            _merge(base[key], value)
        else:
            base[key] = value


def _has(tree, path):
    for key in path:
        if not isinstance(tree, dict) or key not in tree:
            return False
        tree = tree[key]
    return True


def _key(where, path):
    text = where
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text or "the configuration"


def _short(value):
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _error(problems):
    count = f"{len(problems)} problem" + ("s" if len(problems) > 1 else "")
    return ConfigError("\n".join([f"The configuration has {count}:", *(f"  {line.strip()}" for line in problems)]))
