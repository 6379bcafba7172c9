"""Graphs of the page that belong to no panel, and what all graphs share: their legend and their colours on a dark page."""

import colorsys
from dataclasses import replace

from matplotlib.colors import to_hex, to_rgb

from ggdln.study import style
from ggdln.study.panels import name
from ggdln.study.panels._page import Page, bars, rgb_swaps, trace_look


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
    return swaps | rgb_swaps(swaps)


def agreement_graph(entries):
    """Relative difference of simulations from their reference, one line a method, for one experiment and quantity."""
    page = Page()
    xs = [row["x"] for entry in entries for row in entry["rows"] if row["x"] is not None]
    wide = xs and min(xs) > 0 and max(xs) > 20 * min(xs)
    page.axes(name(entries[0]["axis"]), "difference in %", xscale="log" if wide else "linear")
    page.figure.update_yaxes(zeroline=True, rangemode="tozero")
    for entry in entries:
        method = style.look(entry["method"])
        look = trace_look(replace(method, linestyle="-", marker=method.marker or "o"))
        rows = [row for row in entry["rows"] if row["x"] is not None and row["difference"] is not None]
        errors = bars([100 * (row["error"] or 0) for row in rows])
        draws = [f"{row['draws']} draws" for row in rows]
        hover = "<b>%{fullData.name}</b><br>at %{x:.4g}: %{y:.2f} ± %{error_y.array:.2g} %, %{text}<extra></extra>"
        x, y = [row["x"] for row in rows], [100 * row["difference"] for row in rows]
        page.add(x, y, method.label, look, error_y=errors, text=draws, hovertemplate=hover)
    return page.figure
