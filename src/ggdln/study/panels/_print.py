"""A panel in print, drawn with matplotlib."""

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import LogNorm, Normalize
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

from ggdln.study import style
from ggdln.study.caveats import CAVEATS

WIDTHS = {"--": 0.8, ":": 1.0}


class Print:
    """Axes of a matplotlib figure as a canvas; `ax` is there for what the methods don't offer."""

    def __init__(self, ax):
        self.ax = ax

    def axes(self, x, y, *, xscale="linear", yscale="linear", xlim=None, ylim=None, xticks=None):
        """Names, scales and ends of the axes; xticks: TeX by value."""
        ax = self.ax
        ax.set(xscale=xscale, yscale=yscale, xlabel=x, ylabel=y)
        if xscale == "log":
            ax.xaxis.set_major_formatter(lambda v, _: f"{v:g}")
            ax.xaxis.set_minor_formatter(NullFormatter())
        if xlim is not None:
            ax.set_xlim(xlim)
        if ylim is not None:
            ax.set_ylim(ylim)
        if xticks:
            ax.set_xticks(list(xticks), xticks.values())

    def lines(self, lines):
        """`Line`s, with rings around points that need a word, named in the legend."""
        for line in lines:
            self._line(line)
            self._caveats(line)
        points = [line.centre[line.x].values for line in lines if not line.is_level]
        if points:
            self._ticks(np.concatenate(points))

    def _ticks(self, x):
        """More than one number along a short logarithmic axis, and none between counts of layers, gates or units."""
        axis = self.ax.xaxis
        if isinstance(axis.get_major_locator(), LogLocator) and x.max() < 30 * x.min():
            axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        elif isinstance(axis.get_major_locator(), MaxNLocator):
            axis.get_major_locator().set_params(integer=bool((x == np.round(x)).all()))

    def _line(self, line):
        """A line with a band, dots with error bars, or a level where the quantity doesn't depend on x."""
        ax, look = self.ax, _properties(line)
        centre, low, high = line.centre, line.low, line.high
        band = {"color": look["color"], "linewidth": 0}
        if line.is_level:
            ax.axhline(centre, **look)
            if line.has_spread:
                ax.axhspan(low, high, alpha=0.12, **band)
        elif look["linestyle"]:
            ax.plot(centre[line.x], centre, **look)
            if line.has_spread:
                ax.fill_between(centre[line.x], low, high, alpha=0.2, **band)
        else:
            bars = (centre - low, high - centre) if line.has_spread else None
            ax.errorbar(centre[line.x], centre, yerr=bars, elinewidth=0.8, capsize=0, **look)

    def _caveats(self, line):
        """Rings around points that have a caveat in any draw.

        Where no run of any draw could be used there is no point, and a cross stands at the foot of the panel.
        """
        ax, centre, x = self.ax, line.centre, line.x
        for kind, found in line.marks.items():
            if line.is_level:
                ax.text(1, float(centre), kind, transform=ax.get_yaxis_transform(), ha="right", va="bottom", fontsize=6)
                continue
            ring = {"marker": "o", "markersize": CAVEATS[kind].size, "markerfacecolor": "none", "linestyle": ""}
            ring |= {"markeredgecolor": style.colour(CAVEATS[kind].color), "markeredgewidth": 0.8}
            self._once(kind, centre[x][found], centre[found], **ring)
        if not line.is_level and bool(line.lost.any()):
            cross = {"marker": "x", "color": style.RED, "linestyle": ""}
            foot = {"transform": ax.get_xaxis_transform(), "clip_on": False}
            self._once("no run usable", centre[x][line.lost], np.zeros(int(line.lost.sum())), **cross, **foot)

    def _once(self, label, x, y, **look):
        """Markers whose label appears in the legend only once."""
        known = label in self.ax.get_legend_handles_labels()[1]
        self.ax.plot(x, y, label="_" + label if known else label, **look)

    def marks(self, marks):
        """Vertical lines, `Mark`s; the legend has each name once."""
        named = {}
        for mark in marks:
            look = {"linestyle": mark.linestyle, "linewidth": WIDTHS[mark.linestyle]}
            self.ax.axvline(mark.at, color=style.colour(mark.color), zorder=0, **look)
            named.setdefault(mark.name, look)
        for label, look in named.items():
            self.ax.plot([], [], color=style.INK, label=label, **look)

    def picture(self, picture):
        """A `Picture`, with a bar of colours."""
        ax = self.ax
        cmap = "viridis" if picture.is_positive else "RdBu_r"
        drawn = ax.imshow(picture.values, cmap=cmap, vmin=picture.least, vmax=picture.limit, interpolation="nearest")
        for cut in picture.cuts:
            look = {"color": "white" if picture.is_positive else style.INK, "linestyle": "--", "linewidth": 0.8}
            ax.axhline(cut, **look)
            ax.axvline(cut, **look)
        ax.set(ylabel=picture.rows, xlabel=picture.columns)
        ax.spines[["top", "right"]].set_visible(True)
        if not picture.counted:
            ax.set(xticks=[], yticks=[])
        ax.figure.colorbar(drawn, ax=ax, shrink=0.8, pad=0.03, extend="max" if picture.is_clipped else "neither")

    def grid(self, grid):
        """A `Grid`, with contours, rings and crosses for caveats, a star for the best point, and a bar of colours."""
        ax, (low, high) = self.ax, grid.ends
        norm = LogNorm(low, high) if grid.scale == "log" else Normalize(low, high)
        cells = np.ma.masked_invalid(grid.cells)
        cmap = colormaps[grid.colours].with_extremes(bad=style.PALE)
        # Edges in the colour of the cells: viewers show hairlines between cells without.
        drawn = ax.pcolormesh(
            grid.edges(grid.x), grid.edges(grid.y), cells, cmap=cmap, norm=norm, edgecolor="face", linewidth=0.1
        )
        if grid.levels() and min(cells.shape) > 1:
            ink = [{"light": "white", "dark": style.INK}[grid.ink(norm(level))] for level in grid.levels()]
            where = grid.places(grid.x), grid.places(grid.y)
            lines = ax.contour(*where, cells, levels=grid.levels(), colors=ink, linewidths=0.7)
            ax.clabel(lines, fmt=lambda level: f"{level:g}", fontsize=6)
        for axis, of in ((ax.xaxis, grid.x), (ax.yaxis, grid.y)):
            ticks = grid.ticks(of)
            axis.set_ticks(list(ticks), ticks.values())
            axis.set_ticks([], minor=True)
        ax.spines[["top", "right"]].set_visible(True)
        told = self._grid_marks(grid)
        if told:
            # Below the axis, where it covers no cell.
            ax.set_xlabel("\n".join([ax.get_xlabel(), *told]))
        bar = ax.figure.colorbar(drawn, ax=ax, pad=0.03, label=grid.label)
        bar.set_ticks(grid.colour_ticks(), labels=[f"{tick:g}" for tick in grid.colour_ticks()])
        bar.ax.minorticks_off()

    def _grid_marks(self, grid):
        """Marks on cells; what each of them says."""
        x, y = np.meshgrid(grid.places(grid.x), grid.places(grid.y))
        told, look = [], {"linestyle": "", "markerfacecolor": "none"}
        for kind, found in grid.marks.items():
            caveat = CAVEATS[kind]
            ring = {"marker": "o", "markersize": caveat.size, "markeredgecolor": style.colour(caveat.color)}
            self.ax.plot(x[found.values], y[found.values], **look, **ring)
            told.append(f"○ {kind}")
        lost = np.isnan(grid.summed[0])
        if lost.any():
            self.ax.plot(x[lost], y[lost], marker="x", color=style.RED, **look)
            told.append("× no run usable")
        if grid.best is not None:
            star = {"marker": "*", "markersize": 11, "markerfacecolor": "white", "markeredgecolor": style.INK}
            self.ax.plot(grid.best.x, grid.best.y, linestyle="", markeredgewidth=0.8, **star)
            told.append(f"★ {grid.best.words}")
        return told

    def zero(self):
        """A thin line at zero."""
        self.ax.axhline(0, color=style.GREY, linewidth=0.6, zorder=0)

    def legend(self, **where):
        self.ax.legend(**where)


def _properties(line):
    """The look of a line in the words of matplotlib."""
    look = line.look
    found = {"color": style.colour(look.color), "linestyle": look.linestyle, "marker": look.marker}
    found["label"] = look.label if line.named else None
    if look.markerfacecolor:
        found["markerfacecolor"] = look.markerfacecolor
    if line.is_profile:
        found["linewidth"] = 1
    return found
