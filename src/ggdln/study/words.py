"""Verdicts in words: the one place that knows how outcomes, effects, caveats and conditions are written."""

import math
import re

from ggdln.core.kinds import REGISTRIES

OUTCOMES = {
    # outcome: (sign, name)
    "holds": ("✓", "holds"),
    "partly": ("◐", "holds in part of the draws"),
    "fails": ("✗", "doesn’t hold"),
    "untestable": ("–", "not testable here"),
}
SOURCES = {
    "caption": "the caption of the figure",
    "text": "the text of the paper",
    "appendix": "the appendix of the paper",
    "ours": "not in the paper in these words",
}


def verdict(result):
    """The verdict on a claim, its control or a variant."""
    if result["outcome"] == "partly":
        return f"holds in {result['holds']} of {result['draws']}"
    return {"holds": "holds", "fails": "doesn't hold", "untestable": "not testable here"}[result["outcome"]]


def draws(result):
    """In how many of the draws the condition is met."""
    return f"{result['holds']} of {result['draws']}"


def effect(found):
    """An effect, or an exponent, with its error."""
    return with_error(found["value"], found["error"]) if found else "–"


def control(result):
    """What became of the control of a claim; nothing if it has none."""
    told = result["control"]
    return f"{told['what']}: {draws(told)}{' (empty)' if result['empty'] else ''}" if told else ""


def options(choice):
    """A row for each option of a choice: name, values, claims that hold, score, claims won and lost beside the chosen one."""
    kept = next(option["claims"] for option in choice["options"] if option["name"] == choice["chosen"])
    rows = []
    for option in choice["options"]:
        here = {name for name, result in option["claims"].items() if result["outcome"] == "holds"}
        there = {name for name, result in kept.items() if result["outcome"] == "holds"}
        count, score = f"{option['held']} of {len(option['claims'])}", f"{option['score']:.1f}"
        name = f"{option['name']} (chosen)" if option["name"] == choice["chosen"] else option["name"]
        rows.append([name, option["values"], count, score, ", ".join(sorted(here - there)), ", ".join(sorted(there - here))])
    return rows


def caveats(found):
    """What must be known of the points that were judged; nothing if there is nothing."""
    return "; ".join(_caveat(told) for told in found)


def _caveat(told):
    match told["caveat"]:
        case "too few points":
            return f"no draw has {told['needed']} usable points"
        case "not mixed":
            worst = f"R-hat up to {told['largest_rhat']:.2f}"
            return f"chains have not mixed at {told['points']} of {told['of']} points ({worst})"
        case "runs failed":
            return f"{told['runs']} runs failed"
        case "at training floor":
            return f"{told['runs']} runs ended at their least training error"
    return f"{told['caveat']} at {told['points']} of {told['of']} points"


def quantity(measured):
    """What is measured."""
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


def condition(spec):
    """The condition that a draw has to meet."""
    return REGISTRIES["condition"].make(spec).words()


def method(name):
    """How a method is called, by the legend of its curves; references may have the experiment before it."""
    *experiment, kind = name.split(" ")
    known = REGISTRIES["method"]
    return " ".join([*experiment, known.get(kind).look.label if kind in known.names() else kind])


def figure(name):
    """How a figure is called: fig2 -> Fig. 2."""
    return re.sub(r"^fig(?=S?\d)", "Fig. ", name)


def place(claim):
    """Figure and panel that a claim is about: 2b."""
    return f"{claim['figure'].removeprefix('fig')}{claim['panel']}"


def number(value):
    """Three digits, with a minus sign."""
    return f"{value:.3g}".replace("-", "−") if value is not None and math.isfinite(value) else "–"


def with_error(value, error=None, percent=False):
    """A value with its error, to two digits of the error."""
    if value is None or not math.isfinite(value):
        return "–"
    scale, unit = (100, " %") if percent else (1, "")
    value, error = scale * value, None if error is None else scale * error
    if not error or not math.isfinite(error):
        return number(value) + unit
    decimals = 1 - math.floor(math.log10(abs(error)))
    if decimals > 5 or abs(value) >= 1e6:
        return f"{number(value)} ± {error:.2g}{unit}".replace("-", "−")
    decimals = max(decimals, 0)
    text = f"{value:.{decimals}f} ± {error:.{decimals}f}"
    return (f"({text}){unit}" if unit else text).replace("-", "−")
