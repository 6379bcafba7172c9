"""What a panel shows, before it is drawn: lines summed up over draws, their caveats, matrices with their scale.

The pictures of the paper (`panels`) and the interactive page (`ggdln.study.report`) draw the same content.
"""

from dataclasses import dataclass, field

import numpy as np
import xarray as xr

from ggdln.study.figures import style
from ggdln.theory.kernels import arc_cosine_limit
from ggdln.theory.capacity import capacity, gates_at_capacity


@dataclass(frozen=True)
class Line:
    """A quantity along the axis `x`, or a level that doesn't depend on it.

    `centre` with `low` and `high` sums up the draws in `values`. `marks` says for each caveat at which points it holds in any
    draw. `named` is False for lines without a place in a printed legend.
    """

    experiment: str
    method: str
    x: str
    look: dict
    values: xr.DataArray
    centre: xr.DataArray
    low: xr.DataArray
    high: xr.DataArray
    marks: dict = field(default_factory=dict)
    named: bool = True

    @property
    def is_level(self):
        return self.x not in self.centre.dims

    @property
    def lost(self):
        """Points at which no run of any draw could be used."""
        return np.isnan(self.centre)


@dataclass(frozen=True)
class Matrix:
    """A matrix of the first draw; colours run from 0 or -limit to limit."""

    values: xr.DataArray
    limit: float
    positive: bool
    names: tuple

    @property
    def clipped(self):
        return bool(np.abs(self.values).max() > self.limit)


def curves(panel, data):
    """The lines of a panel of curves, one for each series or each value of its hue."""
    lines = []
    for series in panel["series"]:
        name, method, hue = series["experiment"], series["method"], series.get("hue")
        chosen = data[f"{name}/{method}"].sel(series["select"]).isel(draw=slice(series.get("draws")))
        look = dict(style.METHODS[method])
        look["label"] = series.get("name", look["label"])
        if "colour" in series:
            look["color"] = style.COLOURS[series["colour"]]
        if hue is None:
            lines.append(_line(panel, series, chosen, look))
            continue
        for value, colour in zip(chosen[hue].values, style.HUES, strict=False):
            label = f"{style.SYMBOLS.get(hue, hue)} = {value:g}"
            look = {"linestyle": "-", "marker": ".", "color": colour, "label": label}
            lines.append(_line(panel, series, chosen.sel({hue: value}), look))
    return lines


def curve_axes(panel, data):
    """Names of the axes of a panel of curves."""
    quantity, x, last = panel["quantity"], panel["x"], panel["series"][-1]
    values = data[f"{last['experiment']}/{last['method']}"][quantity]
    return style.LABELS.get(x, x), style.QUANTITIES.get(quantity, values.attrs.get("long_name", quantity))


def _line(panel, series, dataset, look):
    x, values = panel["x"], dataset[panel["quantity"]]
    centre, low, high = SUMMARIES[panel["summary"]](values)
    marks = {}
    for name, caveat in style.CAVEATS.items():
        flagged = caveat["of"](dataset)
        if flagged is not None:
            found = flagged.any("draw")
            found = found.any([dim for dim in found.dims if dim != x or x not in centre.dims])
            if bool(found.any()):
                marks[name] = found
    return Line(series["experiment"], series["method"], x, look, values, centre, low, high, marks)


def capacity_marks(panel, data, experiments):
    """(M, colour, 0/1 gates) where P reaches the capacity of generic gates, and that of 0/1 gates where it is another number.

    One for each depth in the colours of the curves, or for the depth of the experiment.
    """
    series = panel["series"][-1]
    experiment = experiments[series["experiment"]]
    N0, P = experiment["task"]["N0"], experiment["task"]["P"]
    if series.get("hue") == "L":
        depths, colours = data[f"{series['experiment']}/{series['method']}"].L.values, style.HUES
    else:
        depths, colours = [experiment["network"]["L"]], (style.INK,)
    marks = []
    for depth, colour in zip(depths, colours, strict=False):
        M = gates_at_capacity(N0, P, int(depth))
        marks.append((M, colour, False))
        if not np.isclose(capacity(N0, M, int(depth), binary=True), P):
            marks.append((gates_at_capacity(N0, P, int(depth), binary=True), colour, True))
    return marks


def densities(panel, data):
    """Densities of a quantity, one line for each value of an axis, lighter for larger values; mean over draws."""
    source, hue = (panel["experiment"], panel["method"]), panel["hue"]
    every = data["/".join(source)][panel["quantity"]]
    points, lines = every[hue].values, []
    (along,) = (dim for dim in every.dims if dim not in ("draw", hue))
    for point, colour in zip(points, style.shades(len(points)), strict=True):
        values = every.sel({hue: point})
        mean = values.mean("draw")
        look = {"color": colour, "label": f"{style.SYMBOLS[hue]} = {point:g}"}
        lines.append(Line(*source, along, look, values, mean, mean, mean, named=_is_named(point, points)))
    return lines


def kernel_profiles(panel, data):
    """Normalized kernel against the angle between inputs, one line a depth, lighter for larger depth; mean and spread."""
    source = panel["experiment"], panel["method"]
    every = data["/".join(source)].kernel_profile
    depths, lines = every.L.values, []
    for depth, colour in zip(depths, style.shades(len(depths)), strict=True):
        look = {"color": colour, "label": f"$L = {depth}$"}
        if panel["limit"]:
            theta = np.linspace(-np.pi, np.pi, 401)
            mean = xr.DataArray(arc_cosine_limit(theta, depth), {"theta": theta}, "theta")
            values, spread = mean.expand_dims("draw"), 0 * mean
        else:
            values = every.sel(panel["select"] | {"L": depth})
            mean, spread = values.mean("draw"), values.std("draw")
        named = _is_named(depth, depths)
        lines.append(Line(*source, "theta", look, values, mean, mean - spread, mean + spread, named=named))
    return lines


def _is_named(point, points):
    """Of many shades the first, the middle and the last are named."""
    return point in (points[0], points[len(points) // 2], points[-1])


def matrix(panel, data):
    """A matrix of the first draw."""
    every = data[f"{panel['experiment']}/{panel['method']}"][panel["quantity"]].isel(draw=0)
    values = every.sel(panel["select"])
    shown = np.abs(values) if panel["amplitude"] else values
    # One scale for all points of the sweep, so that panels can be compared; a few large elements, such as the diagonal of a
    # kernel, would leave the rest without colour.
    limit = float(np.abs(every).quantile(panel["clip"], every.dims[-2:]).max())
    positive = panel["amplitude"] or float(shown.min()) >= 0
    return Matrix(shown, limit, positive, style.AXES_OF.get(panel["quantity"], ("", "")))


def block_cuts(panel, side):
    """Where the lines between the blocks of a matrix run."""
    return [i * side / panel["blocks"] - 0.5 for i in range(1, panel["blocks"])]


def mean_and_error(values):
    """Mean over draws, and one standard error below and above it (none for a single draw)."""
    mean, n = values.mean("draw"), values.notnull().sum("draw")
    error = (values.std("draw", ddof=1) / np.sqrt(n)).where(n > 1, 0 * mean) if values.sizes["draw"] > 1 else 0 * mean
    return mean, mean - error, mean + error


def median_and_half(values):
    """Median over draws, first and third quartile."""
    return [values.quantile(q, "draw") for q in (0.5, 0.25, 0.75)]


SUMMARIES = {"mean": mean_and_error, "median": median_and_half}
