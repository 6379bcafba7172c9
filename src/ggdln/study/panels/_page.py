"""A panel on the page, as a plotly graph.

Every trace carries in `meta` the key of the legend entry that switches it. The legend belongs to a figure and is HTML, so that
it works by keyboard and leaves the graphs their room.
"""

import numpy as np
import plotly.graph_objects as go
from matplotlib.colors import to_hex, to_rgb

from ggdln.study import style
from ggdln.study.caveats import CAVEATS
from ggdln.study.panels._grid import told
from ggdln.study.panels._text import formula, symbol

DASHES = {"-": "solid", "--": "dash", ":": "dot", "-.": "dashdot"}
SYMBOLS = {"o": "circle", "s": "square-open", ".": "circle"}
LAYOUT = {"template": None, "showlegend": False, "margin": {"l": 56, "r": 12, "t": 10, "b": 46}, "hovermode": "closest"}
AT_A_HEIGHT = {"yaxis": "y2", "hoverinfo": "name"}
"""For what stands at a height of the panel and not at a value: the second axis runs from 0 to 1."""


class Page:
    """A plotly figure as a canvas; `figure` is there for what the methods don't offer."""

    def __init__(self):
        self.figure = go.Figure().update_layout(LAYOUT)
        self.log = False

    def axes(self, x, y, *, xscale="linear", yscale="linear", xlim=None, ylim=None, xticks=None):
        """Names, scales and ends of the axes; xticks: TeX by value. The page has no symmetric logarithm."""
        self.log = yscale == "log"
        for axis, title, standoff, scale, limits in (("x", x, 6, xscale, xlim), ("y", y, 8, yscale, ylim)):
            found = {"title": {"text": str(formula(title)), "standoff": standoff}, "type": "linear"}
            if scale == "log":
                found |= {"type": "log", "tickformat": "~g"}
            if limits is not None:
                found["range"] = np.log10(limits).tolist() if scale == "log" else limits
            self.figure.update_layout({f"{axis}axis": found})
        if xticks:
            signs = [str(formula(tex)).replace("-", "−") for tex in xticks.values()]
            self.figure.update_xaxes(tickvals=list(xticks), ticktext=signs)

    def lines(self, lines):
        """`Line`s, and above all of them rings around points that need a word."""
        points = [line.centre[line.x].values for line in lines if not line.is_level]
        everywhere = np.concatenate(points or [np.array([0, 1])])
        ends = np.array([everywhere.min(), everywhere.max()])
        for line in lines:
            self._line(line, ends)
        for line in lines:
            self._caveats(line, ends)

    def _line(self, line, ends):
        key, look = _label(line), trace_look(line.look)
        draws = line.values.notnull().sum("draw")
        centre, low, high, draws = (_values(part) for part in (line.centre, line.low, line.high, draws))
        x = ends if line.is_level else line.centre[line.x].values
        centre, low, high, draws = (np.broadcast_to(part, len(x)) for part in (centre, low, high, draws))
        drawn = np.isfinite(centre)
        x, centre, low, high, draws = (part[drawn] for part in (x, centre, low, high, draws))
        more = {}
        if look["dash"] and line.has_spread:
            floor = low[low > 0].min(initial=centre.min(initial=1)) if self.log else -np.inf
            self._band(x, np.maximum(low, floor), high, key, look["colour"])
        elif line.has_spread:
            more["error_y"] = bars(high - centre, centre - low)
        if line.is_profile:
            more["line_width"] = 1.5
        else:
            more["text"] = [line.summary.words(*point) for point in zip(centre, low, high, draws, strict=True)]
            axis = formula(symbol(line.x))
            more["hovertemplate"] = f"<b>%{{fullData.name}}</b><br>{axis} = %{{x:.4g}}<br>%{{y:.4g}} %{{text}}<extra></extra>"
        # A logarithmic axis has no place for zero.
        self.add(x, np.where(centre > 0, centre, np.nan) if self.log else centre, key, look, **more)

    def _band(self, x, low, high, key, colour):
        self.figure.add_scatter(
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

    def _caveats(self, line, ends):
        for kind, found in line.marks.items():
            caveat = CAVEATS[kind]
            look = {"colour": style.colour(caveat.color), "dash": None, "symbol": "circle-open"}
            points = line.centre.expand_dims({line.x: ends[1:]}) if line.is_level else line.centre[found]
            self.add(points[line.x].values, _values(points), kind, look, size=1.6 * caveat.size, hoverinfo="skip")
        if not line.is_level and bool(line.lost.any()):
            where = line.centre[line.x].values[line.lost.values]
            look = {"colour": style.RED, "dash": None, "symbol": "x-thin-open"}
            self.add(where, np.zeros(len(where)), "no run usable", look, cliponaxis=False, **AT_A_HEIGHT)

    def add(self, x, y, key, look, name=None, line_width=2, size=7, **more):
        """A trace that the legend entry `key` switches; look: colour, dash and symbol, None for no line or no markers."""
        mode = "+".join(part for part, shown in (("lines", look["dash"]), ("markers", look["symbol"])) if shown)
        self.figure.add_scatter(
            x=x,
            y=y,
            mode=mode,
            name=name or key,
            meta={"key": key, "look": look},
            line={"color": look["colour"], "dash": look["dash"], "width": line_width},
            marker={"color": look["colour"], "symbol": look["symbol"], "size": size if not look["dash"] else 4},
            **more,
        )
        if more.get("yaxis") == "y2":
            self.figure.update_layout(yaxis2={"overlaying": "y", "range": [0, 1], "visible": False, "fixedrange": True})

    def marks(self, marks):
        """Vertical lines, `Mark`s."""
        for mark in marks:
            look = {"colour": to_hex(style.colour(mark.color)), "dash": DASHES[mark.linestyle], "symbol": None}
            text = f"{mark.key}: {mark.x} = {mark.at:.3g}"
            self.add([mark.at, mark.at], [0, 1], mark.key, look, name=text, line_width=1, **AT_A_HEIGHT)

    def picture(self, picture):
        """A `Picture`, with a bar of colours."""
        rows, columns = formula(picture.rows), formula(picture.columns)
        self.figure.add_heatmap(
            z=_values(picture.values),
            zmin=picture.least,
            zmax=picture.limit,
            colorscale="viridis" if picture.is_positive else "RdBu_r",
            colorbar={"thickness": 10, "outlinewidth": 0},
            hovertemplate=f"{rows} %{{y}}<br>{columns} %{{x}}<br><b>%{{z:.4g}}</b><extra></extra>",
        )
        for cut in picture.cuts:
            line = {"color": "white" if picture.is_positive else "black", "dash": "dash", "width": 1}
            self.figure.add_hline(cut, line=line)
            self.figure.add_vline(cut, line=line)
        self.figure.update_xaxes(title_text=columns, constrain="domain", showgrid=False)
        self.figure.update_yaxes(title_text=rows, autorange="reversed", scaleanchor="x", constrain="domain", showgrid=False)
        if not picture.counted:
            self.figure.update_layout(xaxis_tickvals=[], yaxis_tickvals=[])

    def grid(self, grid):
        """A `Grid`; colours of a logarithmic scale are those of the logarithm, with the numbers beside the bar."""
        centre, low, high = grid.summed
        shown = np.log10(grid.cells) if grid.scale == "log" else grid.cells
        ends, ticks = grid.ends, grid.colour_ticks()
        on_scale = np.log10 if grid.scale == "log" else np.asarray
        words = [[str(grid.summary.words(*cell)) for cell in row] for row in _cells(centre, low, high, grid)]
        axes = formula(symbol(grid.x)), formula(symbol(grid.y))
        self.figure.add_heatmap(
            x=grid.edges(grid.x),
            y=grid.edges(grid.y),
            z=_values(shown),
            zmin=float(on_scale(ends[0])),
            zmax=float(on_scale(ends[1])),
            colorscale=grid.colours,
            colorbar={
                "thickness": 10,
                "outlinewidth": 0,
                "tickvals": on_scale(ticks).tolist(),
                "ticktext": [f"{tick:g}".replace("-", "−") for tick in ticks],
                "title": {"text": str(formula(grid.label)), "side": "right"},
            },
            customdata=_hover(grid, words),
            hovertemplate=f"{axes[0]} = %{{customdata[0]}}<br>{axes[1]} = %{{customdata[1]}}<br>"
            "<b>%{customdata[2]}</b> %{customdata[3]}<extra></extra>",
        )
        for level in grid.levels() if min(shown.shape) > 1 else ():
            self._contour(grid, shown, level, float(on_scale(level)), on_scale(ends))
        self._grid_marks(grid)
        for axis, of in (("xaxis", grid.x), ("yaxis", grid.y)):
            ticks = grid.ticks(of)
            self.figure.update_layout({axis: {"tickvals": list(ticks), "ticktext": list(ticks.values()), "showgrid": False}})

    def _contour(self, grid, shown, level, at, ends):
        """A line where the quantity has the value `level`, which is at a place between the ends of the colours."""
        share = (at - ends[0]) / (ends[1] - ends[0])
        self.figure.add_contour(
            x=grid.places(grid.x),
            y=grid.places(grid.y),
            z=_values(shown),
            contours={"start": at, "end": at, "size": 1, "coloring": "none"},
            line={"color": {"light": "white", "dark": "black"}[grid.ink(share)], "width": 1, "smoothing": 0},
            showscale=False,
            hoverinfo="skip",
            name=f"{level:g}",
            meta={"key": "contours", "look": {"colour": style.INK, "dash": "solid", "symbol": None}},
        )

    def _grid_marks(self, grid):
        x, y = np.meshgrid(grid.places(grid.x), grid.places(grid.y))
        for kind, found in grid.marks.items():
            look = {"colour": style.colour(CAVEATS[kind].color), "dash": None, "symbol": "circle-open"}
            self.add(x[found.values], y[found.values], kind, look, size=1.6 * CAVEATS[kind].size, hoverinfo="skip")
        lost = np.isnan(grid.summed[0])
        if lost.any():
            look = {"colour": style.RED, "dash": None, "symbol": "x-thin-open"}
            self.add(x[lost], y[lost], "no run usable", look, hoverinfo="skip")
        if grid.best is not None:
            look = {"colour": style.INK, "dash": None, "symbol": "star"}
            self.add([grid.best.x], [grid.best.y], str(formula(grid.best.words)), look, size=13, hoverinfo="name")
            self.figure.data[-1].marker.update(color="white", line={"color": "black", "width": 1})

    def zero(self):
        """Plotly has a line at zero of its own."""

    def legend(self, **where):
        """The legend is that of the figure."""


def trace_look(look):
    """A `Look` in the words of plotly."""
    colour = to_hex(style.colour(look.color))
    # Styles that only matplotlib has still give a line or a marker.
    dash = DASHES.get(look.linestyle, "solid") if look.linestyle else None
    marker = SYMBOLS.get(look.marker, "circle") if look.marker else None
    return {"colour": colour, "dash": dash, "symbol": marker}


def bars(above, below=None):
    """Error bars, the same above and below if only one is given."""
    found = {"array": np.asarray(above), "thickness": 1, "width": 0}
    return found | ({} if below is None else {"arrayminus": np.asarray(below), "symmetric": False})


def rgb_swaps(swaps):
    """The same replacements of colours for those that have a transparency."""
    return {_rgb(old): _rgb(new) for old, new in swaps.items()}


def _label(line):
    """Name of a line in the legend; the method is named even where the picture leaves it to the caption."""
    own, method = line.look.label, style.look(line.method).label
    is_method = own == method or not own or "$" in own
    return str(formula(own or method)) if is_method else f"{formula(own)}, {method}"


def _cells(centre, low, high, grid):
    """Rows of (centre, low, high, number of draws) of each cell."""
    draws = np.asarray(grid.values.notnull().sum("draw").transpose(grid.y, grid.x))
    return np.stack([centre, low, high, draws], axis=-1)


def _hover(grid, words):
    """For each cell its place, its value and how sure that is, as text."""
    xs, ys = ([told(value) for value in grid.values[axis].values] for axis in (grid.x, grid.y))
    return [[[x, y, f"{grid.summed[0][j, i]:.4g}", words[j][i]] for i, x in enumerate(xs)] for j, y in enumerate(ys)]


def _values(array):
    """Single precision is more than a screen shows, at half the size."""
    return np.atleast_1d(np.asarray(array)).astype("float32")


def _rgb(colour):
    """The colour as the start of a CSS colour with transparency."""
    return f"rgba({', '.join(str(round(255 * part)) for part in to_rgb(colour))}"
