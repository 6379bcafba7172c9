"""Kinds of panels. Each takes the axes to draw in, the panel's settings and the figure's datasets by experiment and method."""

import numpy as np

from ggdln.figures import schematics, style
from ggdln.theory.capacity import capacity, gates_at_capacity


def architecture(ax, panel, data, experiments):
    schematics.architecture(ax)


def curves(ax, panel, data, experiments):
    """A quantity along one axis of a sweep, one line for each value of another.

    Mean over draws with its standard error or, where single draws may diverge, median and middle half of the draws.
    """
    name, quantity, x = panel["experiment"], panel["quantity"], panel["x"]
    for method in experiments[name]["methods"]:
        values = data[f"{name}/{method}"][quantity]
        hue = panel.get("hue")
        lines = [(None, values)] if hue is None else [(v, values.sel({hue: v})) for v in values[hue].values]
        for (value, line), colour in zip(lines, style.HUES, strict=False):
            centre, low, high = SUMMARIES[panel["summary"]](line)
            label = None if hue is None else f"{style.SYMBOLS.get(hue, hue)} = {value:g}"
            ax.plot(centre[x], centre, color=colour, label=label, marker=".", markersize=3)
            ax.fill_between(centre[x], low, high, color=colour, alpha=0.25, linewidth=0)
    if panel["capacity"]:
        _capacity_lines(ax, experiments[name]["task"], values[hue].values if hue == "L" else [1])
    ax.set_xscale(panel["xscale"])
    ax.set_yscale(panel["yscale"])
    if panel["xscale"] == "log":
        ax.xaxis.set_major_formatter(lambda v, _: f"{v:g}")
    ax.set(xlabel=style.LABELS.get(x, x), ylabel=values.attrs.get("long_name", quantity))
    if "xlim" in panel:
        ax.set_xlim(panel["xlim"])
    if "ylim" in panel:
        ax.set_ylim(panel["ylim"])
    if panel["legend"]:
        ax.legend()


def kernel_profile(ax, panel, data, experiments):
    """Normalized kernel against the angle between inputs, one line a depth, lighter for larger depth."""
    from ggdln.kernels import arc_cosine_limit

    values = data[f"{panel['experiment']}/gp"].kernel_profile
    depths = values.L.values
    for depth, colour in zip(depths, style.shades(len(depths)), strict=True):
        label = f"$L = {depth}$" if depth in (depths[0], depths[len(depths) // 2], depths[-1]) else None
        if panel["limit"]:
            theta = np.linspace(-np.pi, np.pi, 401)
            ax.plot(theta, arc_cosine_limit(theta, depth), color=colour, linewidth=1, label=label)
            continue
        line = values.sel(panel["select"] | {"L": depth})
        mean, spread = line.mean("draw"), line.std("draw")
        ax.fill_between(mean.theta, mean - spread, mean + spread, color=colour, alpha=0.2, linewidth=0)
        ax.plot(mean.theta, mean, color=colour, linewidth=1, label=label)
    ax.axhline(0, color=style.GREY, linewidth=0.6, zorder=0)
    ax.set(
        xlim=(-np.pi, np.pi),
        ylim=(-1.05, 1.05),
        xlabel=style.LABELS["theta"],
        ylabel=r"normalized kernel $\mathcal{K}_L(\theta)$",
    )
    ax.set_xticks([-np.pi, 0, np.pi], [r"$-\pi$", "0", r"$\pi$"])
    if panel["legend"]:
        ax.legend(loc="upper right", handlelength=1.2)


def mean_and_error(values):
    """Mean over draws, and one standard error below and above it (none for a single draw)."""
    mean, n = values.mean("draw"), values.sizes["draw"]
    error = values.std("draw", ddof=1) / np.sqrt(n) if n > 1 else 0 * mean
    return mean, mean - error, mean + error


def median_and_half(values):
    """Median over draws, first and third quartile."""
    return [values.quantile(q, "draw") for q in (0.5, 0.25, 0.75)]


SUMMARIES = {"mean": mean_and_error, "median": median_and_half}


def _capacity_lines(ax, task, depths):
    """Dashed where P reaches the capacity of generic gates; dotted for 0/1 gates where that is another number."""
    ax.plot([], [], color=style.INK, linestyle="--", linewidth=0.8, label="capacity")
    ax.plot([], [], color=style.INK, linestyle=":", linewidth=1.0, label="for 0/1 gates")
    for depth, colour in zip(depths, style.HUES, strict=False):
        depth = int(depth)
        M = gates_at_capacity(task["N0"], task["P"], depth)
        ax.axvline(M, color=colour, linestyle="--", linewidth=0.8, zorder=0)
        if not np.isclose(capacity(task["N0"], M, depth, binary=True), task["P"]):
            M = gates_at_capacity(task["N0"], task["P"], depth, binary=True)
            ax.axvline(M, color=colour, linestyle=":", linewidth=1.0, zorder=0)


KINDS = {"architecture": architecture, "curves": curves, "kernel_profile": kernel_profile}
