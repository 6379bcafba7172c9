"""Verdicts: does what the paper says of a figure hold in the numbers behind it?

A claim has a measured quantity, along an axis of a sweep, and a condition, both written down in the configuration. The
condition is put to each independent draw of data and gates. A claim holds if nearly all draws meet it, fails if nearly none
does, and otherwise holds in part of them. The same condition is put to a control, in which it must fail, and to variants of
the experiment. Verdicts are data; `ggdln.study.words` puts them into words.
"""

import re
from typing import Annotated, Literal

import numpy as np
import xarray as xr
from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema, model_validator

from ggdln.core.expand import PLACEHOLDER, expand
from ggdln.core.kinds import REGISTRIES
from ggdln.core.problems import Problem, near, violations
from ggdln.core.trees import merge, without_none
from ggdln.study._reductions import REDUCTIONS
from ggdln.study.caveats import CAVEATS
from ggdln.study.conditions import Comparison

LEAST_SHARE_THAT_HOLDS, LARGEST_SHARE_THAT_FAILS = 0.9, 0.1
"""Shares of the draws that meet the condition: a claim holds from the first on, and doesn't up to the second."""

NAME = r"[a-zA-Z][a-zA-Z0-9_]*"
Axis = Annotated[str, Field(pattern=r"^[A-Za-z0-9_]+$", description="Axis of the sweep, by the last part of its name")]
Bound = Annotated[float, Field(ge=-1e9)]
REPLACED_WHOLE = {"condition": "kind", "control": "what"}
"""Parts of a claim that a statement takes from the defaults unless both have this key, with different values."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class Measured(_Part):
    """Quantity that is measured along an axis of a sweep."""

    experiment: str = Field(description="Experiment that is shown")
    method: str = Field(description="Method that is shown")
    variable: str | None = Field(None, description="Variable that is measured")
    reduce: Literal[tuple(REDUCTIONS)] | None = Field(
        None, description="Number that is computed from a variable with further dimensions"
    )
    along: Axis
    select: dict | None = Field(None, description="Value of each axis of the sweep that is held fixed")
    least: Bound | None = Field(None, description="First point of the axis that counts")
    most: Bound | None = Field(None, description="Last point of the axis that counts")

    @model_validator(mode="after")
    def _one_number(self):
        if (self.variable is None) == (self.reduce is None):
            raise ValueError("one of variable and reduce")
        return self


class ControlCondition(_Part):
    """What differs in the condition that is put to a control."""

    other: Comparison = Field(description="What the control is compared with")


class Control(_Part):
    """What the condition is put to instead, and must fail; keys that are given replace those of `measured`."""

    what: str = Field(description="The control in words")
    experiment: str | None = Field(None, description="Experiment that is shown")
    method: str | None = Field(None, description="Method that is shown")
    variable: str | None = Field(None, description="Variable that is measured")
    select: dict | None = Field(None, description="Value of each axis of the sweep that is held fixed")
    least: Bound | None = Field(None, description="First point of the axis that counts")
    most: Bound | None = Field(None, description="Last point of the axis that counts")
    condition: ControlCondition | None = None


class Claim(_Part):
    """A statement about a figure, with the condition under which it holds."""

    figure: str = Field(description="Figure that the claim is about")
    panel: str = Field(max_length=1, description="Panel that it is about; by default the letter in a name such as fig2b_bias")
    source: Literal["caption", "text", "appendix", "ours"] = Field(description="Where the paper says so; ours: it doesn't")
    statement: str = Field(min_length=10, description="The claim in our words")
    measured: Measured = Field(description="Quantity that is measured along an axis of a sweep")
    condition: str | dict = Field(description="Condition that a draw has to meet: its kind, or a mapping with its parameters")
    control: Control | None = Field(None, description="What the condition is put to instead, and must fail")
    finding: str | None = Field(
        None, pattern=r"^[a-z0-9_]+$", description="What was found out about the claim; a file workflow/report/findings/NAME.md"
    )
    sensitivity: list[str] = Field([], description="Variants of the experiment that the condition is put to as well")


class Agreement(_Part):
    """A simulation whose distance from the theory is listed."""

    figure: str = Field(description="Figure whose numbers are compared")
    experiment: str = Field(description="Experiment that is shown")
    method: str = Field(description="Method that is shown")
    variable: str = Field(description="Variable that is measured")
    along: Axis
    reference: Comparison = Field(description="What the simulation is compared with")


def _entry(model):
    """The type of a mapping that may leave out keys of a model, and that has {name} for values that `for` gives."""
    schema = model.model_json_schema()
    node = _loose(schema, schema.get("$defs", {}))
    told = "Values for names in braces: lists that are read side by side, or several mappings of such lists"
    node["properties"]["for"] = {"description": told, "type": ["object", "array"]}
    return Annotated[dict, WithJsonSchema(node)]


def _loose(node, definitions):
    """A JSON schema in which no key is required and each value may be nothing or a placeholder."""
    node = definitions[node["$ref"].removeprefix("#/$defs/")] if "$ref" in node else node
    node = {name: part for name, part in node.items() if name not in ("required", "$defs")}
    others = [{"type": "null"}, {"type": "string", "pattern": f"^{PLACEHOLDER.pattern}$"}]
    if "anyOf" in node:
        node["anyOf"] = [_loose(part, definitions) for part in node["anyOf"]]
    if "properties" in node:
        loose = {name: _loose(part, definitions) for name, part in node["properties"].items()}
        node["properties"] = {name: {"anyOf": [part, *others]} for name, part in loose.items()}
    return node


class Sheet(_Part):
    """The claims about one figure. Statements and comparisons are checked once they are filled in, by `expand_sheets`."""

    defaults: _entry(Claim) = Field(
        {}, description="Values that statements have unless they give their own; nothing takes a value away"
    )
    statements: dict[str, _entry(Claim)] = Field({}, description="Claims by name")
    agreement: list[_entry(Agreement)] = Field([], description="Simulations whose distance from the theory is listed")


def expand_sheets(sheets):
    """Claims by name and the list of comparisons from what fits `Sheet` for each figure, with a `Problem` for each mistake.

    Claims and comparisons are mappings that fit `Claim` and `Agreement`, without keys that have no value, and with the
    defaults of the condition filled in.
    """
    claims, agreement, problems = {}, [], []
    for figure, sheet in sheets.items():
        where, defaults = f"claims.{figure}", dict(_normal(sheet.get("defaults", {})))
        found = _default_problems(defaults, f"{where}.defaults")
        if found:
            problems += found
            continue
        # The panel is named by a statement, else by the name that it expands to, else by the defaults.
        shared = {"figure": figure, "panel by default": defaults.pop("panel", None)} | defaults
        filled = {name: _filled(shared, _normal(statement)) for name, statement in sheet.get("statements", {}).items()}
        statements, found = expand(filled, f"{where}.statements")
        for name, statement in statements.items():
            place = f"{where}.statements.{name}"
            letter = re.match(rf"{re.escape(figure)}([a-z])(?![a-z])", name)
            default = statement.pop("panel by default", None)
            claim = without_none({"panel": letter[1] if letter else default} | _normal(statement))
            wrong = violations(Claim, claim, place) or _condition_problems(claim, place)
            if not re.fullmatch(NAME, name):
                wrong = [Problem(place, name, f"a name that matches {NAME}")]
            if name in claims:
                wrong = [Problem(place, name, f"a name that figure {claims[name]['figure']} doesn't have")]
            found += wrong
            if not wrong:
                spec = REGISTRIES["condition"].make(claim["condition"]).spec()
                claims[name] = {"sensitivity": []} | claim | {"condition": spec}
        entries, unread = expand(sheet.get("agreement", []), f"{where}.agreement")
        entries = [{"figure": figure} | entry for entry in entries]
        for i, entry in enumerate(entries):
            unread += violations(Agreement, entry, f"{where}.agreement[{i}]")
        agreement += entries
        problems += found + unread
    return claims, agreement, problems


def claim_problems(claims, agreement, figures, experiments):
    """A `Problem` for each mention of a figure, panel, experiment, method or variant that isn't there.

    figures and experiments: by name, with `panels` and `methods` that have names.
    """
    problems = []
    for name, claim in claims.items():
        figure = claim["figure"]
        where = f"claims.{figure}.statements.{name}"
        if figure not in figures:
            problems.append(_unknown(f"claims.{figure}", figure, figures))
        elif claim["panel"] not in figures[figure].panels:
            problems.append(_unknown(f"{where}.panel", claim["panel"], figures[figure].panels))
        unknown = [variant for variant in claim["sensitivity"] if variant not in experiments]
        problems += [_unknown(f"{where}.sensitivity", variant, experiments) for variant in unknown]
        for reference in [] if unknown else references(claim):
            problems += _reference_problems(where, *reference, experiments)
    for entry in agreement:
        where = f"claims.{entry['figure']}.agreement"
        for part in (entry, entry | entry["reference"]):
            problems += _reference_problems(where, part["experiment"], part["method"], experiments)
        if entry["figure"] not in figures:
            problems.append(_unknown(f"claims.{entry['figure']}", entry["figure"], figures))
    return list(dict.fromkeys(problems))


def references(claim):
    """(experiment, method) of everything that a claim looks at: what is measured first, then the control and the variants."""
    looks = [(claim["condition"], claim["measured"])]
    looks += [_changed(claim, claim["control"])] if "control" in claim else []
    looks += [_changed(claim, {"experiment": name}) for name in claim["sensitivity"]]
    found = [ref for condition, measured in looks for ref in compared(condition, measured).values()]
    return list(dict.fromkeys((ref["experiment"], ref["method"]) for ref in found))


def judge(claim, data, experiments):
    """Verdict on a claim, with its control and its variants, as a mapping that can be written as JSON.

    data maps "experiment/method" to a dataset over (draw, *axes), experiments each name to the parameters of the experiment.
    outcome: "holds", "partly", "fails" or "untestable"; holds, draws: draws that meet the condition, of how many; effect: its
    mean over draws with the standard error; caveats: what must be known of simulated points.
    """
    result = {name: claim[name] for name in ("figure", "panel", "statement", "source", "measured", "condition")}
    result |= put_to_draws(claim["condition"], claim["measured"], data, experiments)
    result |= {"control": None, "empty": False, "sensitivity": []}
    if "control" in claim:
        control = put_to_draws(*_changed(claim, claim["control"]), data, experiments)
        passes = control["outcome"] == "holds"
        result["control"] = {"what": claim["control"]["what"], "passes": passes} | control
        result["empty"] = passes and result["outcome"] == "holds"
    for name in claim["sensitivity"]:
        varied = put_to_draws(*_changed(claim, {"experiment": name}), data, experiments)
        result["sensitivity"].append({"experiment": name, "varied": experiments[name]["varied"]} | varied)
    return result


def put_to_draws(condition, measured, data, experiments):
    """Put a condition to each draw of what is measured."""
    test = REGISTRIES["condition"].make(condition)
    refs = compared(condition, measured) | {name: measured | {"variable": name} for name in test.also}
    series = {role: _selected(ref, data) for role, ref in refs.items()}
    error = series["values"][1]
    draws = series["values"][0].draw.values
    for values, _ in series.values():
        draws = np.intersect1d(draws, values.draw.values)
    passes, effects = [], []
    for draw in draws:
        one = {role: values.sel(draw=draw) for role, (values, _) in series.items()}
        # Two chains or runs may give a value without an error.
        one["error"] = xr.zeros_like(one["values"]) if error is None else error.sel(draw=draw).fillna(0.0)
        x, arrays = _aligned(one, measured, test.points)
        if len(x) < test.points:
            continue
        passed, effect = test.test(x, experiment=experiments[measured["experiment"]], **arrays)
        passes.append(bool(passed))
        effects.append(float(effect))
    caveats = _caveats(data[f"{measured['experiment']}/{measured['method']}"].sel(draw=draws))
    effect = _mean(effects) | {"meaning": test.meaning} if effects else None
    if not passes:
        caveats = [{"caveat": "too few points", "needed": test.points}, *caveats]
    counted = {"outcome": outcome(sum(passes), len(passes)), "holds": sum(passes), "draws": len(passes)}
    return counted | {"effect": effect, "caveats": caveats}


def outcome(holds, draws):
    """What becomes of a claim whose condition so many of the draws meet."""
    if not draws:
        return "untestable"
    if holds / draws >= LEAST_SHARE_THAT_HOLDS:
        return "holds"
    return "fails" if holds / draws <= LARGEST_SHARE_THAT_FAILS else "partly"


def agreement(entry, data):
    """How far a simulation is from its reference, point by point, and how that falls with the width.

    Differences are relative and taken within each draw; errors are standard errors over draws, or over runs for one draw.
    Means of both are over the same draws. runs: the most runs or chains of a point; largest_rhat and least_ess of sampling.
    """
    along = entry["along"]
    values, errors = _selected(entry, data)
    reference, _ = _selected(entry | entry["reference"], data)
    errors = xr.zeros_like(values) if errors is None else errors
    aligned = xr.broadcast(*xr.align(values, errors, reference, join="inner"))
    values, errors, reference = (array.transpose("draw", along) for array in aligned)
    difference, error_of = values / reference - 1, (errors / reference).values
    rows = []
    for i, x in enumerate(difference[along].values):
        found = difference.values[:, i]
        used = np.isfinite(found)
        if not used.any():
            continue
        n = int(used.sum())
        within = np.sqrt(np.mean(error_of[used, i] ** 2) / n)
        between = np.std(found[used], ddof=1) / np.sqrt(n) if n > 1 else np.nan
        error = float(np.nanmax([within, between])) if n > 1 or np.isfinite(within) else None
        means = {"simulation": _mean(values.values[used, i]), "reference": _mean(reference.values[used, i])}
        rows.append({"x": float(x), "difference": float(found[used].mean()), "error": error, "draws": n} | means)
    kept = {name: entry[name] for name in ("figure", "experiment", "method")}
    names = {"quantity": entry["variable"], "axis": along, "reference": " ".join(entry["reference"].values())}
    dataset = data[f"{entry['experiment']}/{entry['method']}"]
    told = {"runs": ("runs_used", "max", int), "failed": ("runs_failed", "sum", int)}
    told |= {"largest_rhat": ("largest_rhat", "max", float), "least_ess": ("least_ess", "min", float)}
    for name, (variable, reduced, kind) in told.items():
        told[name] = kind(getattr(dataset[variable], reduced)()) if variable in dataset else None
    return kept | names | {"rows": rows, "exponent": exponent(rows) if along == "N" else None} | told


def exponent(rows):
    """Power of x with which differences fall, by weighted least squares of logarithms; None if they are too small to say."""
    rows = [row for row in rows if row["error"]]
    x, d, e = (np.array([row[key] for row in rows]) for key in ("x", "difference", "error"))
    seen = np.abs(d) > 2 * e
    if seen.sum() < 3 or len(set(np.sign(d[seen]))) > 1:
        return None
    weight = np.abs(d[seen]) / e[seen]
    A = np.stack([np.log(x[seen]), np.ones(seen.sum())], axis=1) * weight[:, None]
    slope, *_ = np.linalg.lstsq(A, np.log(np.abs(d[seen])) * weight, rcond=None)[0]
    return {"value": float(slope), "error": float(np.sqrt(np.linalg.inv(A.T @ A)[0, 0]))}


def _mean(values):
    """Mean with its standard error."""
    error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else None
    return {"value": float(np.mean(values)), "error": None if error is None else float(error)}


def _changed(claim, changes):
    """Condition and measured quantity of a claim, looking at something else."""
    condition = claim["condition"] | changes.get("condition", {})
    return condition, claim["measured"] | {name: value for name, value in changes.items() if name not in ("condition", "what")}


def compared(condition, measured):
    """What is measured, and what it is compared with."""
    return {"values": measured} | {role: measured | condition[role] for role in ("other", "reference") if role in condition}


def _selected(ref, data):
    """Values over (draw, axis) and their errors, or None, of a reference."""
    dataset = data[f"{ref['experiment']}/{ref['method']}"]
    dataset = dataset.sel({axis: value for axis, value in ref.get("select", {}).items() if axis in dataset.dims})
    values = REDUCTIONS[ref["reduce"]](dataset) if "reduce" in ref else dataset[ref["variable"]]
    return values, dataset.get(f"{ref.get('variable')}_error")


def _aligned(arrays, measured, points):
    """The points of the axis that count and at which all arrays have a value, and each array there.

    An array that doesn't depend on the axis is the same at all of its points; if none does, it is at so many `points`.
    """
    axis = measured["along"]
    arrays = {role: array.drop_vars([name for name in array.coords if name != axis]) for role, array in arrays.items()}
    aligned = xr.align(*arrays.values(), join="inner")
    swept = [array[axis].values for array in aligned if axis in array.dims]
    x = (swept[0] if swept else np.arange(points)).astype(float)
    found = {role: np.broadcast_to(a.values, x.shape).astype(float) for role, a in zip(arrays, aligned, strict=True)}
    counts = np.all([np.isfinite(values) for values in found.values()], axis=0)
    if swept:
        counts &= (x >= measured.get("least", -np.inf)) & (x <= measured.get("most", np.inf))
    return x[counts], {role: values[counts] for role, values in found.items()}


def _caveats(dataset):
    """What has to be known of the simulation that was measured: points with a caveat, of how many, and the size of it."""
    found = []
    for name, caveat in CAVEATS.items():
        flag = caveat.flag(dataset)
        if flag is None or not bool(flag.any()):
            continue
        told = {"caveat": name, "points": int(flag.sum()), "of": int(flag.size)}
        if caveat.variable == "mixed":
            told["largest_rhat"] = float(dataset.largest_rhat.max())
        if caveat.variable.startswith("runs_"):
            told["runs"] = int(dataset[caveat.variable].sum())
        found.append(told)
    return found


def _normal(statement):
    """A statement whose condition is a mapping, unless its values are still to be filled in."""
    condition = statement.get("condition")
    named = isinstance(condition, str) and not PLACEHOLDER.search(condition)
    return statement | {"condition": {"kind": condition}} if named else statement


def _filled(defaults, statement):
    """A statement with the defaults under it, without keys that have no value."""
    kept = dict(defaults)
    for part, named in REPLACED_WHOLE.items():
        own, given = (found.get(part) for found in (statement, defaults))
        both = isinstance(own, dict) and isinstance(given, dict) and named in own and named in given
        if both and own[named] != given[named]:
            del kept[part]
    return without_none(merge(merge({}, kept), statement))


def _default_problems(defaults, where):
    """What is wrong with defaults whatever a statement adds to them or fills in."""
    found = [problem for problem in violations(Claim, defaults, where) if problem.fault != "missing"]
    open_ended = [p for p in found if isinstance(p.value, dict) or PLACEHOLDER.search(str(p.value))]
    return [problem for problem in found if problem.fault == "unknown" or problem not in open_ended]


def _condition_problems(claim, where):
    """What is wrong with the condition of a claim, or with that of its control."""
    registry, condition = REGISTRIES["condition"], claim["condition"]
    kind = condition.get("kind")
    if kind not in registry.names():
        return [_unknown(f"{where}.condition.kind", kind, registry.names())]
    changes = claim.get("control", {}).get("condition", {})
    for spec, place in ((condition, f"{where}.condition"), (condition | changes, f"{where}.control.condition")):
        found = violations(registry.get(kind), {name: value for name, value in spec.items() if name != "kind"}, place)
        if found:
            return found
    return []


def _reference_problems(where, experiment, method, experiments):
    if experiment not in experiments:
        return [_unknown(f"{where}: experiment", experiment, experiments)]
    methods = experiments[experiment].methods
    return [] if method in methods else [_unknown(f"{where}: method of {experiment}", method, methods)]


def _unknown(place, name, names):
    return Problem(place, name, f"{', '.join(names)}{near(name, names)}")
