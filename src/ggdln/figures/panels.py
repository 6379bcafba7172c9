"""Kinds of panels. Each takes the axes to draw in, the panel's settings and the figure's datasets by experiment and method."""

import numpy as np
from matplotlib.ticker import NullFormatter

from ggdln.figures import schematics, style
from ggdln.theory.capacity import capacity, gates_at_capacity


def drawing(ax, panel, data, experiments):
    getattr(schematics, panel["of"])(ax)


def curves(ax, panel, data, experiments):
    """A quantity along one axis of a sweep, for one or more experiments and methods.

    Mean over draws with its standard error or, where single draws may diverge, median and middle half of the draws.
    """
    quantity, x = panel["quantity"], panel["x"]
    ax.set(xscale=panel["xscale"], yscale=panel["yscale"])
    for series in panel["series"]:
        name, method, hue = series["experiment"], series["method"], series.get("hue")
        chosen = data[f"{name}/{method}"].sel(series["select"]).isel(draw=slice(series.get("draws")))
        values = chosen[quantity]
        look = dict(style.METHODS[method])
        look["label"] = series.get("name", look["label"])
        if "colour" in series:
            look["color"] = style.COLOURS[series["colour"]]
        if hue is None:
            _line(ax, panel, values, x, look)
            _caveats(ax, panel, chosen, values, x)
        else:
            for value, colour in zip(values[hue].values, style.HUES, strict=False):
                label = f"{style.SYMBOLS.get(hue, hue)} = {value:g}"
                look = {"linestyle": "-", "marker": ".", "color": colour, "label": label}
                _line(ax, panel, values.sel({hue: value}), x, look)
                _caveats(ax, panel, chosen.sel({hue: value}), values.sel({hue: value}), x)
    if panel["capacity"]:
        _capacity_lines(ax, experiments[name], values[hue].values if hue == "L" else None)
    if panel["xscale"] == "log":
        ax.xaxis.set_major_formatter(lambda v, _: f"{v:g}")
        ax.xaxis.set_minor_formatter(NullFormatter())
    ax.set(xlabel=style.LABELS.get(x, x), ylabel=style.QUANTITIES.get(quantity, values.attrs.get("long_name", quantity)))
    _limits(ax, panel)
    if panel["legend"]:
        ax.legend()


def _limits(ax, panel):
    if "xlim" in panel:
        ax.set_xlim(panel["xlim"])
    if "ylim" in panel:
        ax.set_ylim(panel["ylim"])


def _line(ax, panel, values, x, look):
    """A line with a band, dots with error bars, or a level where the quantity doesn't depend on x."""
    centre, low, high = SUMMARIES[panel["summary"]](values)
    if x not in centre.dims:
        ax.axhline(centre, **look)
        ax.axhspan(low, high, color=look["color"], alpha=0.12, linewidth=0)
    elif look["linestyle"]:
        ax.plot(centre[x], centre, **look)
        ax.fill_between(centre[x], low, high, color=look["color"], alpha=0.2, linewidth=0)
    else:
        ax.errorbar(centre[x], centre, yerr=(centre - low, high - centre), elinewidth=0.8, capsize=0, **look)


def _caveats(ax, panel, dataset, values, x):
    """Rings around points in which a run failed, stopped at its floor or did not mix, in any draw; named in the legend.

    Where no run of any draw could be used there is no point, and a cross stands at the foot of the panel.
    """
    centre = SUMMARIES[panel["summary"]](values)[0]
    marks = {name: flagged for name, test in style.CAVEATS.items() if (flagged := test["of"](dataset)) is not None}
    for name, flagged in marks.items():
        look = {"marker": "o", "markersize": style.CAVEATS[name]["size"], "markerfacecolor": "none", "linestyle": ""}
        look |= {"markeredgecolor": style.CAVEATS[name]["color"], "markeredgewidth": 0.8}
        found = flagged.any("draw")
        if x not in centre.dims:
            if bool(found.any()):
                ax.text(1, float(centre.max()), name, transform=ax.get_yaxis_transform(), ha="right", va="bottom", fontsize=6)
            continue
        rest = [dim for dim in found.dims if dim != x]
        found = found.any(rest)
        if bool(found.any()):
            _once(ax, name, centre[x][found], centre[found], **look)
    if x in centre.dims:
        lost = np.isnan(centre)
        if bool(lost.any()):
            foot = {"transform": ax.get_xaxis_transform(), "clip_on": False}
            _once(
                ax,
                "no run usable",
                centre[x][lost],
                np.zeros(int(lost.sum())),
                marker="x",
                color=style.RED,
                linestyle="",
                **foot,
            )


def _once(ax, label, x, y, **look):
    """Markers whose label appears in the legend only once."""
    known = label in ax.get_legend_handles_labels()[1]
    ax.plot(x, y, label="_" + label if known else label, **look)


def densities(ax, panel, data, experiments):
    """Densities of a quantity, one line for each value of an axis, lighter for larger values; mean over draws."""
    values = data[f"{panel['experiment']}/{panel['method']}"][panel["quantity"]].mean("draw")
    hue = panel["hue"]
    (along,) = (dim for dim in values.dims if dim != hue)
    points = values[hue].values
    for point, colour in zip(points, style.shades(len(points)), strict=True):
        label = f"{style.SYMBOLS[hue]} = {point:g}" if point in (points[0], points[len(points) // 2], points[-1]) else None
        ax.plot(values[along], values.sel({hue: point}), color=colour, linewidth=1, label=label)
    ax.set(xlabel=r"normalized kernel $\mathcal{K}_L(\mathbf{x}, \mathbf{y})$", ylabel="density")
    ax.set_yscale(panel["yscale"])
    _limits(ax, panel)
    if panel["legend"]:
        ax.legend()


def matrix(ax, panel, data, experiments):
    """A matrix of the first draw as a picture; dashed lines between blocks."""
    every = data[f"{panel['experiment']}/{panel['method']}"][panel["quantity"]].isel(draw=0)
    values = every.sel(panel["select"])
    shown = np.abs(values) if panel["amplitude"] else values
    # One scale for all points of the sweep, so that panels can be compared; a few large elements, such as the diagonal of a
    # kernel, would leave the rest without colour.
    limit = float(np.abs(every).quantile(panel["clip"], every.dims[-2:]).max())
    positive = panel["amplitude"] or float(shown.min()) >= 0
    picture = ax.imshow(
        shown,
        cmap="viridis" if positive else "RdBu_r",
        vmin=0 if positive else -limit,
        vmax=limit,
        interpolation="nearest",
    )
    side = len(shown)
    for i in range(1, panel["blocks"]):
        cut = i * side / panel["blocks"] - 0.5
        look = {"color": "white" if positive else style.INK, "linestyle": "--", "linewidth": 0.8}
        ax.axhline(cut, **look)
        ax.axvline(cut, **look)
    names = style.AXES_OF.get(panel["quantity"], ("", ""))
    ax.set(ylabel=names[0], xlabel=names[1])
    ax.spines[["top", "right"]].set_visible(True)
    if panel["quantity"] == "kernel_picture":
        ax.set(xticks=[], yticks=[])
    ax.figure.colorbar(picture, ax=ax, shrink=0.8, pad=0.03, extend="neither" if np.abs(shown).max() <= limit else "max")


def kernel_profile(ax, panel, data, experiments):
    """Normalized kernel against the angle between inputs, one line a depth, lighter for larger depth."""
    from ggdln.kernels import arc_cosine_limit

    values = data[f"{panel['experiment']}/{panel['method']}"].kernel_profile
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
    mean, n = values.mean("draw"), values.notnull().sum("draw")
    error = (values.std("draw", ddof=1) / np.sqrt(n)).where(n > 1, 0 * mean) if values.sizes["draw"] > 1 else 0 * mean
    return mean, mean - error, mean + error


def median_and_half(values):
    """Median over draws, first and third quartile."""
    return [values.quantile(q, "draw") for q in (0.5, 0.25, 0.75)]


SUMMARIES = {"mean": mean_and_error, "median": median_and_half}


def _capacity_lines(ax, experiment, depths):
    """Dashed where P reaches the capacity of generic gates; dotted for 0/1 gates where that is another number.

    One line for each of `depths` in the colours of the curves, or one for the depth of the experiment.
    """
    N0, P = experiment["task"]["N0"], experiment["task"]["P"]
    colours = (style.INK,) if depths is None else style.HUES
    fewer = False
    for depth, colour in zip([experiment["network"]["L"]] if depths is None else depths, colours, strict=False):
        M = gates_at_capacity(N0, P, int(depth))
        ax.axvline(M, color=colour, linestyle="--", linewidth=0.8, zorder=0)
        if not np.isclose(capacity(N0, M, int(depth), binary=True), P):
            fewer = True
            M = gates_at_capacity(N0, P, int(depth), binary=True)
            ax.axvline(M, color=colour, linestyle=":", linewidth=1.0, zorder=0)
    ax.plot([], [], color=style.INK, linestyle="--", linewidth=0.8, label="capacity")
    if fewer:
        ax.plot([], [], color=style.INK, linestyle=":", linewidth=1.0, label="for 0/1 gates")


KINDS = {
    "drawing": drawing,
    "curves": curves,
    "kernel_profile": kernel_profile,
    "densities": densities,
    "matrix": matrix,
}
