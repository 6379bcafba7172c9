"""A quantity over two axes of a sweep, before it is drawn: cells, their edges and ticks, levels of contours, the best point."""

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import xarray as xr

from ggdln.study.panels._lines import SUMMARIES, Summary, caveats
from ggdln.study.panels._text import name, symbol

MOST_TICKS = 7
"""Most ticks of an axis or of a bar of colours."""


@dataclass(frozen=True)
class Best:
    """The point of a grid that is best by some quantity: its positions along x and y, and a sentence on it."""

    x: float
    y: float
    words: str


@dataclass(frozen=True)
class Grid:
    """A quantity along two axes of a sweep, both in the order of their values.

    values: over draw, y and x; xscale, yscale, scale: "linear" or "log", the last that of the colours; contours: how many lines
    of equal value there are at most; marks: for each caveat the cells, over y and x, in which it holds in any draw; change: the
    axis along which the relative change of the quantity is shown in its place, with a line where it turns its sign.
    """

    experiment: str
    method: str
    quantity: str
    x: str
    y: str
    values: xr.DataArray
    xscale: str = "linear"
    yscale: str = "linear"
    scale: str = "linear"
    contours: int = 0
    summary: Summary = SUMMARIES["mean"]
    marks: dict = field(default_factory=dict)
    best: Best | None = None
    change: str = ""

    @property
    def label(self):
        """What the colours show, in words."""
        return f"change of {name(self.quantity)} along {symbol(self.change)}" if self.change else name(self.quantity)

    @property
    def colours(self):
        """The name of the colour map, which has a middle where signs matter."""
        return "RdBu_r" if self.change else "viridis"

    def ink(self, share):
        """Whether a line is to be light or dark at a share of the way between the ends of the colours."""
        return "dark" if self.change or share >= 0.6 else "light"

    @cached_property
    def summed(self):
        """Centre, low and high over draws, each over (y, x)."""
        return [np.asarray(part.transpose(self.y, self.x)) for part in self.summary.of(self.values)]

    @property
    def cells(self):
        """What the colours show, over (y, x): NaN where nothing could be measured, or where a logarithm has no place."""
        centre = self.summed[0]
        return np.where(centre > 0, centre, np.nan) if self.scale == "log" else centre

    @property
    def ends(self):
        """Least and largest value that the colours show; never the same."""
        low, high = np.nanmin(self.cells, initial=np.inf), np.nanmax(self.cells, initial=-np.inf)
        if self.change and low <= high:
            low, high = -max(-low, high), max(-low, high)
        if not low <= high:
            return (0.1, 1.0) if self.scale == "log" else (0.0, 1.0)
        if low == high:
            return (low / 1.1, high * 1.1) if self.scale == "log" else (low - 0.5, high + 0.5)
        return float(low), float(high)

    def places(self, axis):
        """Where the cells of an axis are: its values, or numbers of their own for values that are texts."""
        values = self.values[axis].values
        return values.astype(float) if values.dtype.kind in "biuf" else np.arange(len(values), dtype=float)

    def edges(self, axis):
        """Ends of the cells of an axis: halfway to the neighbours, on the scale of the axis."""
        return edges(self.places(axis), self._scale(axis))

    def ticks(self, axis):
        """Place -> label for cells of an axis, all of them or, where there are many, some at equal distances."""
        places, values = self.places(axis), self.values[axis].values
        step = -(-len(places) // MOST_TICKS)
        return dict(zip(places[::step].tolist(), map(told, values[::step]), strict=True))

    def levels(self):
        """Round values between the ends, at most as many as there shall be contours; of a change its zero."""
        if self.change:
            return [0.0] if np.nanmin(self.cells) < 0 < np.nanmax(self.cells) else []
        return round_values(*self.ends, self.scale, self.contours)

    def colour_ticks(self):
        return round_values(*self.ends, self.scale, MOST_TICKS)

    def _scale(self, axis):
        return self.xscale if axis == self.x else self.yscale


def grid(dataset, quantity, x, y, source, *, summary="mean", best=None, change="", **scales):
    """The grid of a quantity of a dataset over draw, x and y, with its caveats; source: (experiment, method).

    best: None, or (quantity, whether its largest value is the best). change: an axis, from the first to the last point of which
    the relative change of the quantity is shown.
    """
    if change:
        first, last = (dataset[quantity].isel({change: i}) for i in (0, -1))
        dataset = dataset.assign({quantity: last.drop_vars(change) / first.drop_vars(change) - 1})
    dataset = dataset.sortby([axis for axis in (x, y) if dataset[axis].dtype.kind in "biuf"])
    marks = {name: found.transpose(y, x) for name, found in caveats(dataset, (x, y)).items()}
    found = Grid(*source, quantity, x, y, dataset[quantity], summary=SUMMARIES[summary], marks=marks, change=change, **scales)
    if best is None:
        return found
    judged = Grid(*source, best[0], x, y, dataset[best[0]], summary=SUMMARIES[summary]).summed[0]
    if np.isnan(judged).all():
        return found
    row, column = np.unravel_index(np.nanargmax(judged if best[1] else -judged), judged.shape)
    where = [f"{symbol(axis)} = {told(dataset[axis].values[i])}" for axis, i in ((x, column), (y, row))]
    words = f"{'largest' if best[1] else 'least'} {name(best[0])}: {', '.join(where)}"
    if row in (0, judged.shape[0] - 1) or column in (0, judged.shape[1] - 1):
        words += ", at the edge"  # what lies beyond may be better
    return replace(found, best=Best(found.places(x)[column], found.places(y)[row], words))


def told(value):
    """A value of an axis in words."""
    return f"{value:g}" if np.asarray(value).dtype.kind in "biuf" else str(value)


def edges(places, scale):
    """Ends of cells around places in rising order: halfway between neighbours, and as far beyond the first and the last."""
    at = np.log(places) if scale == "log" else np.asarray(places, dtype=float)
    middle = (at[1:] + at[:-1]) / 2
    first, last = (middle[0] - at[0], at[-1] - middle[-1]) if len(at) > 1 else (0.5, 0.5)
    found = np.concatenate([[at[0] - first], middle, [at[-1] + last]])
    return np.exp(found) if scale == "log" else found


def round_values(low, high, scale, most):
    """Round values from low to high, at most so many: steps of 1, 2 or 5; for a logarithm 1, 2, 3 and 5 or powers of ten."""
    if most < 1:
        return []
    if scale == "log":
        powers = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
        for digits in ((1, 2, 3, 5), (1, 2, 5), (1, 3), (1,)):
            found = [digit * 10.0**power for power in powers for digit in digits]
            found = [value for value in found if low <= value <= high]
            if 2 <= len(found) <= most:
                return found
        found = found[:: -(-len(found) // most)] if found else found
        return found if len(found) > 1 else round_values(low, high, "linear", most)
    size = 10.0 ** np.floor(np.log10((high - low) / most))
    for step in (size, 2 * size, 5 * size, 10 * size):
        found = step * np.arange(np.ceil(low / step), np.floor(high / step) + 1)
        if len(found) <= most:
            return found.tolist()
    return []
