"""Kinds of panels. Each takes the axes to draw in, the panel's settings and the figure's datasets by experiment and method."""

import numpy as np
from matplotlib.ticker import NullFormatter

from ggdln.study.figures import content, schematics, style


def drawing(ax, panel, data, experiments):
    getattr(schematics, panel["of"])(ax)


def curves(ax, panel, data, experiments):
    """A quantity along one axis of a sweep, for one or more experiments and methods.

    Mean over draws with its standard error or, where single draws may diverge, median and middle half of the draws.
    """
    ax.set(xscale=panel["xscale"], yscale=panel["yscale"])
    for line in content.curves(panel, data):
        _line(ax, line)
        _caveats(ax, line)
    if panel["capacity"]:
        _capacity_lines(ax, content.capacity_marks(panel, data, experiments))
    if panel["xscale"] == "log":
        ax.xaxis.set_major_formatter(lambda v, _: f"{v:g}")
        ax.xaxis.set_minor_formatter(NullFormatter())
    xlabel, ylabel = content.curve_axes(panel, data)
    ax.set(xlabel=xlabel, ylabel=ylabel)
    _limits(ax, panel)
    if panel["legend"]:
        ax.legend()


def _limits(ax, panel):
    if "xlim" in panel:
        ax.set_xlim(panel["xlim"])
    if "ylim" in panel:
        ax.set_ylim(panel["ylim"])


def _line(ax, line):
    """A line with a band, dots with error bars, or a level where the quantity doesn't depend on x."""
    centre, low, high, look = line.centre, line.low, line.high, line.look
    if line.is_level:
        ax.axhline(centre, **look)
        ax.axhspan(low, high, color=look["color"], alpha=0.12, linewidth=0)
    elif look["linestyle"]:
        ax.plot(centre[line.x], centre, **look)
        ax.fill_between(centre[line.x], low, high, color=look["color"], alpha=0.2, linewidth=0)
    else:
        ax.errorbar(centre[line.x], centre, yerr=(centre - low, high - centre), elinewidth=0.8, capsize=0, **look)


def _caveats(ax, line):
    """Rings around points in which a run failed, stopped at its floor or did not mix, in any draw; named in the legend.

    Where no run of any draw could be used there is no point, and a cross stands at the foot of the panel.
    """
    centre, x = line.centre, line.x
    for name, found in line.marks.items():
        if line.is_level:
            ax.text(1, float(centre), name, transform=ax.get_yaxis_transform(), ha="right", va="bottom", fontsize=6)
            continue
        look = {"marker": "o", "markersize": style.CAVEATS[name]["size"], "markerfacecolor": "none", "linestyle": ""}
        look |= {"markeredgecolor": style.CAVEATS[name]["color"], "markeredgewidth": 0.8}
        _once(ax, name, centre[x][found], centre[found], **look)
    lost = line.lost
    if not line.is_level and bool(lost.any()):
        look = {"marker": "x", "color": style.RED, "linestyle": ""}
        foot = {"transform": ax.get_xaxis_transform(), "clip_on": False}
        _once(ax, "no run usable", centre[x][lost], np.zeros(int(lost.sum())), **look, **foot)


def _once(ax, label, x, y, **look):
    """Markers whose label appears in the legend only once."""
    known = label in ax.get_legend_handles_labels()[1]
    ax.plot(x, y, label="_" + label if known else label, **look)


def _capacity_lines(ax, marks):
    """Dashed where P reaches the capacity of generic gates; dotted for 0/1 gates where that is another number."""
    looks = {False: {"linestyle": "--", "linewidth": 0.8}, True: {"linestyle": ":", "linewidth": 1.0}}
    for M, colour, binary in marks:
        ax.axvline(M, color=colour, zorder=0, **looks[binary])
    ax.plot([], [], color=style.INK, label="capacity", **looks[False])
    if any(binary for _, _, binary in marks):
        ax.plot([], [], color=style.INK, label="for 0/1 gates", **looks[True])


def densities(ax, panel, data, experiments):
    """Densities of a quantity, one line for each value of an axis, lighter for larger values; mean over draws."""
    for line in content.densities(panel, data):
        label = line.look["label"] if line.named else None
        ax.plot(line.centre[line.x], line.centre, color=line.look["color"], linewidth=1, label=label)
    ax.set(xlabel=style.KERNEL_OF_PAIRS, ylabel="density")
    ax.set_yscale(panel["yscale"])
    _limits(ax, panel)
    if panel["legend"]:
        ax.legend()


def matrix(ax, panel, data, experiments):
    """A matrix of the first draw as a picture; dashed lines between blocks."""
    shown = content.matrix(panel, data)
    picture = ax.imshow(
        shown.values,
        cmap="viridis" if shown.positive else "RdBu_r",
        vmin=0 if shown.positive else -shown.limit,
        vmax=shown.limit,
        interpolation="nearest",
    )
    for cut in content.block_cuts(panel, len(shown.values)):
        look = {"color": "white" if shown.positive else style.INK, "linestyle": "--", "linewidth": 0.8}
        ax.axhline(cut, **look)
        ax.axvline(cut, **look)
    ax.set(ylabel=shown.names[0], xlabel=shown.names[1])
    ax.spines[["top", "right"]].set_visible(True)
    if panel["quantity"] == "kernel_picture":
        ax.set(xticks=[], yticks=[])
    ax.figure.colorbar(picture, ax=ax, shrink=0.8, pad=0.03, extend="max" if shown.clipped else "neither")


def kernel_profile(ax, panel, data, experiments):
    """Normalized kernel against the angle between inputs, one line a depth, lighter for larger depth."""
    for line in content.kernel_profiles(panel, data):
        colour, theta = line.look["color"], line.centre.theta
        if not panel["limit"]:
            ax.fill_between(theta, line.low, line.high, color=colour, alpha=0.2, linewidth=0)
        ax.plot(theta, line.centre, color=colour, linewidth=1, label=line.look["label"] if line.named else None)
    ax.axhline(0, color=style.GREY, linewidth=0.6, zorder=0)
    ax.set(xlim=(-np.pi, np.pi), ylim=(-1.05, 1.05), xlabel=style.LABELS["theta"], ylabel=style.KERNEL_OF_ANGLE)
    ax.set_xticks([-np.pi, 0, np.pi], [r"$-\pi$", "0", r"$\pi$"])
    if panel["legend"]:
        ax.legend(loc="upper right", handlelength=1.2)


KINDS = {
    "drawing": drawing,
    "curves": curves,
    "kernel_profile": kernel_profile,
    "densities": densities,
    "matrix": matrix,
}
