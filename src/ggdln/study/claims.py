"""Verdicts: does what the paper says of a figure hold in the numbers behind it?

A claim has a measured quantity, along an axis of a sweep, and a condition, both written down in the configuration. The
condition is put to each independent draw of data and gates. A claim holds if nearly all draws meet it, fails if nearly none
does, and otherwise holds in k of n. The same condition is put to a control, in which it must fail, and to variants of the
experiment.
"""

from dataclasses import asdict, dataclass

import numpy as np
import xarray as xr

from ggdln.theory.kernels import arc_cosine_limit
from ggdln.theory.capacity import capacity, gates_at_capacity

HOLDS, FAILS = 0.9, 0.1
"""A claim holds if at least the first share of the draws meet its condition, and doesn't if at most the second does."""
AWAY = 0.5
"""Angle in radians from which inputs count as different."""


@dataclass(frozen=True)
class Outcome:
    """In how many of the draws a condition is met; effect: mean over draws with its standard error."""

    holds: int
    draws: int
    effect: dict | None
    caveat: str = ""

    @property
    def share(self):
        return self.holds / self.draws if self.draws else 0.0

    @property
    def verdict(self):
        if not self.draws:
            return "not testable here"
        if self.share >= HOLDS:
            return "holds"
        return "doesn't hold" if self.share <= FAILS else f"holds in {self.holds} of {self.draws}"


def judge(claim, data, experiments):
    """Verdict on a claim, with its control and its variants, as a mapping that can be written as JSON.

    data maps "experiment/method" to a dataset over (draw, *axes), experiments each name to the parameters of the experiment.
    """
    found = put(claim["condition"], claim["measured"], data, experiments)
    result = {key: claim[key] for key in ("figure", "panel", "statement", "source", "measured", "condition")}
    result |= {"quantity": quantity_text(claim["measured"]), "condition_text": condition_text(claim["condition"])}
    result |= _summary(found) | {"control": None, "empty": False, "sensitivity": []}
    if "control" in claim:
        control = put(*_changed(claim, claim["control"]), data, experiments)
        passes = control.verdict == "holds"
        result["control"] = {"what": claim["control"]["what"], "passes": passes} | _summary(control)
        result["empty"] = passes and found.verdict == "holds"
    for name in claim["sensitivity"]:
        varied = put(*_changed(claim, {"experiment": name}), data, experiments)
        result["sensitivity"].append({"experiment": name, "varied": experiments[name]["varied"]} | _summary(varied))
    return result


def references(claim):
    """(experiment, method) of everything that a claim looks at: what is measured first, then the control and the variants."""
    both = [(claim["condition"], claim["measured"])]
    if "control" in claim:
        both.append(_changed(claim, claim["control"]))
    both += [_changed(claim, {"experiment": name}) for name in claim["sensitivity"]]
    found = []
    for condition, measured in both:
        found += [(ref["experiment"], ref["method"]) for ref in _refs(condition, measured)]
    return list(dict.fromkeys(found))


def put(condition, measured, data, experiments):
    """Put a condition to each draw of what is measured."""
    test = CONDITIONS[condition["kind"]]
    series = {"values": _select(measured, data)}
    for role in ("other", "reference"):
        if role in condition:
            series[role] = _select(_refs(condition, measured)[1 if role == "other" else 2], data)
    if condition["kind"] == "counts":
        series["dead"] = _select(measured | {"variable": "dead"}, data)
    along = measured["along"]
    draws = series["values"][0].draw.values
    for values, _ in series.values():
        draws = np.intersect1d(draws, values.draw.values)
    limits = _limits(condition, experiments[measured["experiment"]])
    passes, effects = [], []
    for draw in draws:
        one = {role: values.sel(draw=draw) for role, (values, _) in series.items()}
        error = series["values"][1]
        # Two chains or runs may give a value without an error.
        one["error"] = xr.zeros_like(one["values"]) if error is None else error.sel(draw=draw).fillna(0.0)
        grid, arrays = _aligned(one, along, test.points)
        inside = np.ones(len(grid), dtype=bool)
        if any(along in array.dims for array in one.values()):
            inside = (grid >= measured.get("least", -np.inf)) & (grid <= measured.get("most", np.inf))
        inside &= np.all([np.isfinite(y) for y in arrays.values()], axis=0)
        arrays = {role: y[inside] for role, y in arrays.items()}
        if len(arrays["values"]) < test.points:
            continue
        passed, effect = test.of(grid[inside], condition=condition, **limits, **arrays)
        passes.append(bool(passed))
        effects.append(float(effect))
    caveat = _caveat(measured, data, draws)
    if not passes:
        reason = f"no draw has {test.points} usable points"
        return Outcome(0, 0, None, f"{reason}; {caveat}" if caveat else reason)
    error = np.std(effects, ddof=1) / np.sqrt(len(effects)) if len(effects) > 1 else None
    effect = {"value": float(np.mean(effects)), "error": None if error is None else float(error), "meaning": test.meaning}
    return Outcome(sum(passes), len(passes), effect, caveat)


def _summary(outcome):
    return asdict(outcome) | {"verdict": outcome.verdict}


def _changed(claim, changes):
    """Condition and measured quantity of a claim, looking at something else."""
    condition, measured = dict(claim["condition"]), dict(claim["measured"])
    condition |= changes.get("condition", {})
    measured |= {key: value for key, value in changes.items() if key not in ("condition", "what")}
    return condition, measured


def _refs(condition, measured):
    """What is measured, and what it is compared with."""
    refs = [measured]
    for role in ("other", "reference"):
        refs.append(measured | condition[role] if role in condition else measured)
    return refs


def _select(ref, data):
    """Values over (draw, axis) and their errors, or None, of a reference."""
    dataset = data[f"{ref['experiment']}/{ref['method']}"]
    present = {axis: value for axis, value in ref.get("select", {}).items() if axis in dataset.dims}
    dataset = dataset.sel(present)
    values = REDUCED[ref["reduce"]](dataset) if "reduce" in ref else dataset[ref["variable"]]
    return values, dataset.get(f"{ref.get('variable')}_error")


def _aligned(arrays, axis, points):
    """The points of an axis that all have, and each array there.

    An array that doesn't depend on the axis is the same at all of its points; if none does, it is at so many `points`.
    """
    arrays = {role: array.drop_vars([name for name in array.coords if name != axis]) for role, array in arrays.items()}
    aligned = xr.align(*arrays.values(), join="inner")
    grid = next((array[axis].values for array in aligned if axis in array.dims), np.arange(points)).astype(float)
    return grid, {
        role: np.broadcast_to(array.values, grid.shape).astype(float) for role, array in zip(arrays, aligned, strict=True)
    }


def _limits(condition, experiment):
    """The number of gates at capacity, and the capacity itself, for conditions that refer to them."""
    if condition["kind"] not in ("onset", "peak", "counts"):
        return {}
    N0, P = experiment["task"]["N0"], experiment["task"]["P"]
    binary, depth = condition["formula"] == "binary", condition["depth"]
    if condition["kind"] == "counts":
        return {"capacities": lambda M: np.array([round(capacity(N0, m, depth, binary=binary)) for m in M]), "P": P}
    return {"critical": gates_at_capacity(N0, P, depth, binary=binary)}


def _caveat(measured, data, draws):
    """What has to be said of the simulation that was measured."""
    dataset = data[f"{measured['experiment']}/{measured['method']}"].sel(draw=draws)
    said = []
    if "mixed" in dataset:
        unmixed = int((dataset.mixed == 0).sum())
        if unmixed:
            worst = f"R-hat up to {float(dataset.largest_rhat.max()):.2f}"
            said.append(f"chains have not mixed at {unmixed} of {dataset.mixed.size} points ({worst})")
    for name, text in (("runs_failed", "runs failed"), ("runs_at_floor", "runs ended at their least training error")):
        if name in dataset and int(dataset[name].sum()):
            said.append(f"{int(dataset[name].sum())} {text}")
    return "; ".join(said)


@dataclass(frozen=True)
class Condition:
    """A test of one draw: of(x, values, error, ...) -> (met or not, effect); least number of points; what the effect is."""

    of: callable
    points: int
    meaning: str


def rank_correlation(x, values):
    """Kendall's tau."""
    from scipy.stats import kendalltau  # a slow import, which every call of Snakemake would wait for

    return kendalltau(x, values).statistic


def trend(x, values, *, condition, **_):
    """Rank correlation with x beyond the threshold, in the right direction."""
    third = max(1, len(x) // 3)
    change = (values[-third:].mean() - values[:third].mean()) / np.abs(values).mean()
    if np.ptp(values) <= 1e-9 * np.abs(values).max():
        return False, change
    sign = {"rises": 1, "falls": -1}[condition["direction"]]
    return sign * rank_correlation(x, values) >= condition["strength"], change


def valley(x, values, *, condition, **_):
    """Falls to a minimum inside the sweep, and rises from there."""
    low = int(np.argmin(values))
    depth = min(values[0], values[-1]) / values[low] - 1
    if low in (0, len(x) - 1) or depth < condition["margin"]:
        return False, depth
    if "at" in condition and x[low] != condition["at"]:
        return False, depth
    before, after = rank_correlation(x[: low + 1], values[: low + 1]), rank_correlation(x[low:], values[low:])
    return -before >= condition["strength"] and after >= condition["strength"], depth


def order(x, values, other, *, condition, **_):
    """Below or above another quantity at nearly every point."""
    difference = (values - other) / np.abs(other)
    sign = {"below": -1, "above": 1}[condition["side"]]
    return np.mean(sign * difference > 0) >= condition["share"], difference.mean()


def agrees(x, values, other, error, *, condition, **_):
    """The other quantity, up to a tolerance and two standard errors, at nearly every point."""
    difference = values - other
    allowed = condition.get("absolute", 0.0) + condition.get("relative", 0.0) * np.abs(other) + 2 * error
    return np.mean(np.abs(difference) <= allowed) >= condition["share"], (difference / np.abs(other)).mean()


def closer(x, values, other, reference, **_):
    """Nearer to the reference than the other quantity is, on average over the points."""
    mine, theirs = (np.abs(y / reference - 1).mean() for y in (values, other))
    return mine < theirs, mine - theirs


def exceeds(x, values, *, condition, **_):
    """Above a bound at every point."""
    return values.min() > condition["bound"], values.mean() - condition["bound"]


def constant(x, values, *, condition, **_):
    """The same at every point, up to a relative tolerance."""
    spread = np.ptp(values) / np.abs(values).mean()
    return spread <= condition["relative"], spread


def onset(x, values, critical, *, condition, **_):
    """Zero on one side of capacity, and not on the other; a point within half a gate of capacity may be either."""
    zero = values <= condition["relative"] * values.max()
    expected = x > critical if condition["zero"] == "after" else x < critical
    judged = np.abs(x - critical) > 0.5 if np.isclose(critical, round(critical)) else np.ones(len(x), dtype=bool)
    changes = x[~zero].max(initial=-np.inf) if condition["zero"] == "after" else x[~zero].min(initial=np.inf)
    beyond = x[x > critical - 1e-9].min()
    start = x[x > changes].min(initial=np.inf) if condition["zero"] == "after" else changes
    return np.array_equal(zero[judged], expected[judged]), np.clip(start - beyond, x.min() - x.max(), x.max() - x.min())


def peak(x, values, critical, *, condition, **_):
    """At capacity, or one point of the sweep beside it, much larger than the least value on either side."""
    nearest = int(np.searchsorted(x, critical - 1e-9))
    first, last = max(nearest - 1, 0), min(nearest + 1, len(x) - 1)
    if first == 0 or last == len(x) - 1:
        return False, 0.0
    height = values[first : last + 1].max() / max(values[:first].min(), values[last + 1 :].min())
    return height >= condition["factor"], np.log10(height)


def counts(x, values, dead, capacities, P, *, condition, **_):
    """Equal to the capacity, or to the number of examples that open a gate where that is smaller."""
    expected = np.minimum(capacities(x), P - dead)
    difference = np.abs(values - expected) / expected
    return difference.max() <= condition["relative"], difference.max()


CONDITIONS = {
    "trend": Condition(trend, 3, "relative change from the first to the last third of the sweep"),
    "valley": Condition(valley, 3, "depth of the minimum below the lower end, relative to the minimum"),
    "order": Condition(order, 1, "relative difference, mean over the points"),
    "agrees": Condition(agrees, 1, "relative difference, mean over the points"),
    "closer": Condition(closer, 1, "mean relative distance from the reference, minus that of the other"),
    "exceeds": Condition(exceeds, 1, "mean above the bound"),
    "constant": Condition(constant, 2, "relative spread along the sweep"),
    "onset": Condition(onset, 3, "gates from capacity to the change"),
    "peak": Condition(peak, 3, "decimal logarithm of the height over the higher foot of the peak"),
    "counts": Condition(counts, 1, "largest relative difference"),
}


def _away(dataset):
    """Mean size of the kernel between different inputs."""
    profile = dataset.kernel_profile
    return np.abs(profile).where(np.abs(profile.theta) >= AWAY).mean("theta")


def _distance(dataset):
    """Root mean square distance of the kernel from its limit of many gates, over angles and depths."""
    profile = dataset.kernel_profile
    limit = np.stack([arc_cosine_limit(profile.theta.values, int(depth)) for depth in profile.L.values])
    return np.sqrt(((profile.transpose(..., "L", "theta") - limit) ** 2).mean(("L", "theta")))


REDUCED = {"size_between_inputs": _away, "distance_from_limit": _distance}


def quantity_text(measured):
    """What is measured, in words."""
    name = measured.get("variable") or measured["reduce"]
    where = "".join(f", {axis} = {value}" for axis, value in measured.get("select", {}).items())
    least, most = measured.get("least"), measured.get("most")
    if least is not None and least == most:
        span = f"at {measured['along']} = {least:g}"
    else:
        span = f"against {measured['along']}"
        span += f" from {least:g}" if least is not None else ""
        span += f" up to {most:g}" if most is not None else ""
    return f"{name.replace('_', ' ')} of {measured['experiment']}, {measured['method']}{where}, {span}"


def condition_text(condition):
    """The condition that a draw has to meet, in words."""
    c = condition
    against = " ".join(str(value) for value in c.get("other", {}).values())
    at_least = f"{100 * c.get('share', 1):g} %"
    capacity_of = f"capacity for {c.get('formula')} gates at depth {c.get('depth')}"
    match c["kind"]:
        case "trend":
            words = f"{c['direction']}: Kendall's tau {'>=' if c['direction'] == 'rises' else '<= -'} {c['strength']:g}"
            return words.replace("- ", "-")
        case "valley":
            at = f" at {c['at']:g}" if "at" in c else ""
            sides = f"Kendall's tau beyond {c['strength']:g} on both sides"
            return f"minimum inside the sweep{at}, at least {100 * c['margin']:g} % below both ends; {sides}"
        case "order":
            return f"{c['side']} {against} at {at_least} of the points or more"
        case "agrees":
            terms = [f"{100 * c['relative']:g} %"] if "relative" in c else []
            terms += [f"{c['absolute']:g}", "two standard errors"] if "absolute" in c else ["two standard errors"]
            return f"within {' and '.join(terms)} of {against} at {at_least} of the points or more"
        case "closer":
            return f"closer to {' '.join(map(str, c['reference'].values()))} than {against}"
        case "exceeds":
            return f"above {c['bound']:g}"
        case "constant":
            return f"constant up to {c['relative']:g} of its value"
        case "onset":
            side = "from capacity on and not before" if c["zero"] == "after" else "up to capacity and not beyond"
            return f"zero (up to {c['relative']:g} of its largest value) {side}; {capacity_of}"
        case "peak":
            return f"within one point of capacity at least {c['factor']:g} times the least value on either side; {capacity_of}"
        case "counts":
            return f"equal to the {capacity_of}, or to the number of examples that open a gate, up to {100 * c['relative']:g} %"


def agreement(entry, data):
    """How far a simulation is from its reference, point by point, and how that falls with the width.

    Differences are relative and taken within each draw; errors are standard errors over draws, or over runs for one draw.
    """
    values, errors = _select(entry, data)
    reference, _ = _select(entry | entry["reference"], data)
    errors = xr.zeros_like(values) if errors is None else errors
    values, errors, reference = xr.align(values, errors, reference, join="inner")
    difference = (values / reference - 1).transpose("draw", entry["along"])
    error_of = (errors / reference).transpose("draw", entry["along"]).values
    rows = []
    for i, x in enumerate(difference[entry["along"]].values):
        found = difference.values[:, i]
        used = np.isfinite(found)
        if not used.any():
            continue
        n = int(used.sum())
        within = np.sqrt(np.mean(error_of[used, i] ** 2) / n)
        between = np.std(found[used], ddof=1) / np.sqrt(n) if n > 1 else np.nan
        error = float(np.nanmax([within, between])) if n > 1 or np.isfinite(within) else None
        rows.append({"x": float(x), "difference": float(found[used].mean()), "error": error, "draws": n})
    kept = {key: entry[key] for key in ("figure", "experiment", "method")}
    names = {"quantity": entry["variable"], "axis": entry["along"], "reference": " ".join(entry["reference"].values())}
    return kept | names | {"rows": rows, "exponent": exponent(rows) if entry["along"] == "N" else None}


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
