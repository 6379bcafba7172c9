"""One look for all figures: fonts and line widths in print, colours by name, shades, and byte-stable files."""

from dataclasses import replace

import numpy as np

from ggdln.core.kinds import REGISTRIES, Look

RC = {
    "font.family": "DejaVu Sans",
    "mathtext.fontset": "dejavusans",
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "lines.linewidth": 1.3,
    "lines.markersize": 3.5,
}

INK, BLUE, ORANGE, RED, TEAL, GREY = "#1a1a1a", "#2b6cb0", "#dd6b20", "#c53030", "#2c7a7b", "#a0aec0"
PALE = "#e2e8f0"
"""For cells without a number."""
COLOURS = {"ink": INK, "blue": BLUE, "orange": ORANGE, "red": RED, "teal": TEAL, "grey": GREY}
HUES = ("blue", "orange", "teal", "red", "ink", "grey")
"""Colours of lines that differ in the value of an axis, in this order."""


def colour(name):
    """The colour of a name; anything else is a colour already."""
    return COLOURS.get(name, name) if isinstance(name, str) else name


def look(method):
    """How lines of a method are drawn and what they are called; a red dot and its own name where the method doesn't say."""
    methods = REGISTRIES["method"]
    found = methods.get(method).look if method in methods.names() else Look("", "red", marker="o")
    return found if found.label else replace(found, label=method)


def shades(n):
    """n blues from dark to light."""
    from matplotlib import colormaps

    return [tuple(shade) for shade in colormaps["Blues_r"](np.linspace(0.05, 0.72, n))]


def save(figure, pdf, png, title="", caption="", keywords=()):
    """Write the figure as PDF and PNG, with words for their properties; the same figure gives the same bytes."""
    told = {"Title": title, "Subject": caption, "Keywords": ", ".join(keywords)}
    figure.savefig(pdf, metadata=told | {"CreationDate": None, "ModDate": None})
    figure.savefig(png, metadata={"Title": title, "Description": caption, "Software": None})
