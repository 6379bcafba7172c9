"""Panels as plotly graphs, from the same content as the pictures.

Every trace carries in `meta` the key of the legend entry that switches it. The legend belongs to a figure and is HTML, so that
it works by keyboard and leaves the graphs their room.
"""

import colorsys

import numpy as np
import plotly.graph_objects as go
from matplotlib.colors import to_hex, to_rgb

from ggdln.study.figures import content, style
from ggdln.study.report.text import formula

DASHES = {"-": "solid", "--": "dash", ":": "dot"}
SYMBOLS = {"o": "circle", "s": "square-open", ".": "circle"}
FOOT = {"yaxis": "y2", "hoverinfo": "name"}
"""For what stands at a height of the panel and not at a value: the second axis runs from 0 to 1."""


def panel_graph(panel, data, experiments):
    """The graph of a panel, None for a drawing."""
    make = KINDS.get(panel["kind"])
    if make is None:
        return None
    figure = make(panel, data, experiments)
    figure.update_layout(template=None, showlegend=False, margin={"l": 56, "r": 12, "t": 10, "b": 46}, hovermode="closest")
    return figure


def legend(graphs):
    """Entries of the legend of several graphs: key -> the looks of its traces, in the order of first appearance."""
    entries = {}
    for graph in graphs:
        for trace in graph.data:
            look = (trace.meta or {}).get("look")
            if look and look not in entries.setdefault(trace.meta["key"], []):
                entries[trace.meta["key"]].append(look)
    return entries


def for_dark(colour):
    """The colour on a dark page: black turns white, the others get lighter and keep their order."""
    hue, light, saturation = colorsys.rgb_to_hls(*to_rgb(colour))
    light = 1 - light if light < 0.2 else 0.45 + 0.5 * light
    return to_hex(colorsys.hls_to_rgb(hue, light, saturation))


def dark_colours(looks):
    """What to replace in the JSON of graphs on a dark page: colour -> its dark counterpart. Scales of matrices stay."""
    swaps = {colour: for_dark(colour) for colour in sorted({look["colour"] for look in looks})}
    return swaps | {_rgb(light): _rgb(dark) for light, dark in swaps.items()}


def _curves(panel, data, experiments):
    figure = go.Figure()
    lines = content.curves(panel, data)
    x = panel["x"]
    everywhere = np.concatenate([line.centre[x].values for line in lines if not line.is_level] or [np.array([0, 1])])
    ends = [everywhere.min(), everywhere.max()]
    for line in lines:
        _add_line(figure, panel, line, ends)
    for line in lines:
        _add_caveats(figure, line)
    if panel["capacity"]:
        for M, colour, binary in content.capacity_marks(panel, data, experiments):
            look = {"colour": to_hex(colour), "dash": "dot" if binary else "dash", "symbol": None}
            key = "capacity for 0/1 gates" if binary else "capacity"
            name = f"{key}: M = {M:.3g}"
            _add(figure, [M, M], [0, 1], key, look, name=name, line_width=1, **FOOT)
    xname, yname = content.curve_axes(panel, data)
    _axes(figure, panel, xname, yname, panel["xscale"])
    return figure


def _label(line):
    """Name of a line in the legend; the method is named even where the picture leaves it to the caption."""
    name, method = line.look["label"], style.METHODS[line.method]["label"]
    is_method = name == method or not name or "$" in name
    return str(formula(name or method)) if is_method else f"{formula(name)}, {method}"


def _add_line(figure, panel, line, ends):
    key, colour = _label(line), to_hex(line.look["color"])
    look = {"colour": colour, "dash": DASHES.get(line.look["linestyle"]), "symbol": SYMBOLS.get(line.look["marker"])}
    centre, low, high = (_values(part) for part in (line.centre, line.low, line.high))
    x = np.asarray(ends) if line.is_level else line.centre[line.x].values
    if line.is_level:
        centre, low, high = (np.repeat(part, 2) for part in (centre, low, high))
    drawn = np.isfinite(centre)
    x, centre, low, high = x[drawn], centre[drawn], low[drawn], high[drawn]
    draws = np.broadcast_to(_values(line.values.notnull().sum("draw")), drawn.shape)[drawn]
    spread = (
        [f"± {error:.2g} (mean and standard error, {n:.0f} draws)" for error, n in zip(high - centre, draws, strict=True)]
        if panel["summary"] == "mean"
        else [f"({a:.3g} to {b:.3g}: quartiles, {n:.0f} draws)" for a, b, n in zip(low, high, draws, strict=True)]
    )
    if look["dash"]:
        floor = low[low > 0].min(initial=centre.min(initial=1)) if panel["yscale"] == "log" else -np.inf
        _add_band(figure, x, np.maximum(low, floor), high, key, colour)
    bars = {} if look["dash"] else {"error_y": _bars(high - centre, centre - low)}
    axis = formula(style.SYMBOLS.get(line.x, line.x))
    hover = f"<b>%{{fullData.name}}</b><br>{axis} = %{{x:.4g}}<br>%{{y:.4g}} %{{text}}<extra></extra>"
    _add(figure, x, centre, key, look, text=spread, hovertemplate=hover, **bars)


def _add_band(figure, x, low, high, key, colour):
    figure.add_scatter(
        x=np.concatenate([x, x[::-1]]),
        y=np.concatenate([low, high[::-1]]),
        fill="toself",
        fillcolor=f"{_rgb(colour)}, 0.2)",
        line={"width": 0},
        mode="lines",
        hoverinfo="skip",
        meta={"key": key},
        name=key,
    )


def _add(figure, x, y, key, look, name=None, line_width=2, size=7, **more):
    mode = "+".join(part for part, shown in (("lines", look["dash"]), ("markers", look["symbol"])) if shown)
    figure.add_scatter(
        x=x,
        y=y,
        mode=mode,
        name=name or key,
        meta={"key": key, "look": look},
        line={"color": look["colour"], "dash": look["dash"], "width": line_width},
        marker={"color": look["colour"], "symbol": look["symbol"], "size": size if not look["dash"] else 4},
        **more,
    )


def _add_caveats(figure, line):
    for name, found in line.marks.items():
        caveat = style.CAVEATS[name]
        look = {"colour": caveat["color"], "dash": None, "symbol": "circle-open"}
        points = line.centre[found] if not line.is_level else line.centre.expand_dims({line.x: [figure.data[-1].x[-1]]})
        where = points[line.x].values
        _add(figure, where, _values(points), name, look, size=1.6 * caveat["size"], hoverinfo="skip")
    if not line.is_level and bool(line.lost.any()):
        where = line.centre[line.x].values[line.lost.values]
        look = {"colour": style.RED, "dash": None, "symbol": "x-thin-open"}
        _add(figure, where, np.zeros(len(where)), "no run usable", look, cliponaxis=False, **FOOT)


def _densities(panel, data, experiments):
    figure = go.Figure()
    for line in content.densities(panel, data):
        look = {"colour": to_hex(line.look["color"]), "dash": "solid", "symbol": None}
        y = _values(line.centre)
        # No element in a bin: a logarithmic axis has no place for it.
        y = np.where(y > 0, y, np.nan) if panel["yscale"] == "log" else y
        _add(figure, line.centre[line.x].values, y, str(formula(line.look["label"])), look, line_width=1.5)
    _axes(figure, panel, style.KERNEL_OF_PAIRS, "density")
    return figure


def _kernel_profile(panel, data, experiments):
    figure = go.Figure()
    for line in content.kernel_profiles(panel, data):
        key = str(formula(line.look["label"]))
        look = {"colour": to_hex(line.look["color"]), "dash": "solid", "symbol": None}
        theta = line.centre.theta.values
        if not panel["limit"]:
            _add_band(figure, theta, _values(line.low), _values(line.high), key, look["colour"])
        _add(figure, theta, _values(line.centre), key, look, line_width=1.5)
    limits = {"xlim": [-np.pi, np.pi], "ylim": [-1.05, 1.05], "yscale": "linear"}
    _axes(figure, panel | limits, style.LABELS["theta"], style.KERNEL_OF_ANGLE)
    figure.update_xaxes(tickvals=[-np.pi, 0, np.pi], ticktext=["−π", "0", "π"])
    return figure


def _matrix(panel, data, experiments):
    shown = content.matrix(panel, data)
    rows, columns = shown.names
    figure = go.Figure(
        go.Heatmap(
            z=_values(shown.values),
            zmin=0 if shown.positive else -shown.limit,
            zmax=shown.limit,
            colorscale="viridis" if shown.positive else "RdBu_r",
            colorbar={"thickness": 10, "outlinewidth": 0},
            hovertemplate=f"{formula(rows)} %{{y}}<br>{formula(columns)} %{{x}}<br><b>%{{z:.4g}}</b><extra></extra>",
        )
    )
    for cut in content.block_cuts(panel, len(shown.values)):
        line = {"color": "white" if shown.positive else "black", "dash": "dash", "width": 1}
        figure.add_hline(cut, line=line)
        figure.add_vline(cut, line=line)
    figure.update_xaxes(title_text=formula(columns), constrain="domain", showgrid=False)
    figure.update_yaxes(title_text=formula(rows), autorange="reversed", scaleanchor="x", constrain="domain")
    figure.update_yaxes(showgrid=False)
    if panel["quantity"] == "kernel_picture":
        figure.update_layout(xaxis_tickvals=[], yaxis_tickvals=[])
    return figure


def agreement_graph(entries):
    """Relative difference of simulations from their reference, one line a method, for one experiment and quantity."""
    figure = go.Figure()
    xs = [row["x"] for entry in entries for row in entry["rows"] if row["x"] is not None]
    for entry in entries:
        method = style.METHODS.get(entry["method"], {"label": entry["method"], "color": style.RED, "marker": "o"})
        look = {"colour": method["color"], "dash": "solid", "symbol": SYMBOLS.get(method["marker"], "circle")}
        rows = [row for row in entry["rows"] if row["x"] is not None and row["difference"] is not None]
        bars = _bars([100 * (row["error"] or 0) for row in rows])
        draws = [f"{row['draws']} draws" for row in rows]
        hover = "<b>%{fullData.name}</b><br>at %{x:.4g}: %{y:.2f} ± %{error_y.array:.2g} %, %{text}<extra></extra>"
        x, y = [row["x"] for row in rows], [100 * row["difference"] for row in rows]
        _add(figure, x, y, method["label"], look, error_y=bars, text=draws, hovertemplate=hover)
    axis = entries[0]["axis"]
    wide = xs and min(xs) > 0 and max(xs) > 20 * min(xs)
    panel = {"yscale": "linear"}
    _axes(figure, panel, style.LABELS.get(axis, axis), "difference in %", "log" if wide else "linear")
    figure.update_yaxes(zeroline=True, rangemode="tozero", selector={"overlaying": None})
    figure.update_layout(template=None, showlegend=False, margin={"l": 56, "r": 12, "t": 10, "b": 46}, hovermode="closest")
    return figure


def _axes(figure, panel, xname, yname, xscale="linear"):
    """Names, scales and limits of the axes, and the second axis from 0 to 1."""
    yscale = "log" if panel["yscale"] == "log" else "linear"
    figure.update_xaxes(title={"text": formula(xname), "standoff": 6}, type="log" if xscale == "log" else "linear")
    figure.update_layout(yaxis={"title": {"text": str(formula(yname)), "standoff": 8}, "type": yscale})
    for limits, scale, update in (("xlim", xscale, figure.update_xaxes), ("ylim", yscale, figure.update_yaxes)):
        if limits in panel:
            update(range=np.log10(panel[limits]).tolist() if scale == "log" else panel[limits])
    if xscale == "log":
        figure.update_xaxes(tickformat="~g")
    if yscale == "log":
        figure.update_layout(yaxis={"tickformat": "~g"})
    if any(trace.yaxis == "y2" for trace in figure.data):
        figure.update_layout(yaxis2={"overlaying": "y", "range": [0, 1], "visible": False, "fixedrange": True})


def _bars(above, below=None):
    bars = {"array": np.asarray(above), "thickness": 1, "width": 0}
    return bars | ({} if below is None else {"arrayminus": np.asarray(below), "symmetric": False})


def _values(array):
    """Single precision is more than a screen shows, at half the size."""
    return np.atleast_1d(np.asarray(array)).astype("float32")


def _rgb(colour):
    """The colour as the start of a CSS colour with transparency."""
    return f"rgba({', '.join(str(round(255 * part)) for part in to_rgb(colour))}"


KINDS = {"curves": _curves, "kernel_profile": _kernel_profile, "densities": _densities, "matrix": _matrix}
