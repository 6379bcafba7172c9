"""What a panel shows, before it is drawn: lines summed up over draws with their caveats, marks, and pictures of matrices."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import xarray as xr

from ggdln.core.kinds import Look
from ggdln.study import style
from ggdln.study.caveats import CAVEATS


@dataclass(frozen=True)
class Summary:
    """A way to sum up draws. of(values) -> centre, low, high; words(centre, low, high, draws): the same for one point."""

    names: tuple
    of: Callable
    words: Callable


def mean_and_error(values):
    """Mean over draws, and one standard error below and above it (none for a single draw)."""
    mean, n = values.mean("draw"), values.notnull().sum("draw")
    error = (values.std("draw", ddof=1) / np.sqrt(n)).where(n > 1, 0 * mean) if values.sizes["draw"] > 1 else 0 * mean
    return mean, mean - error, mean + error


def mean_and_spread(values):
    """Mean over draws, and one standard deviation below and above it."""
    mean, spread = values.mean("draw"), values.std("draw")
    return mean, mean - spread, mean + spread


def mean_alone(values):
    mean = values.mean("draw")
    return mean, mean, mean


def median_and_half(values):
    """Median over draws, first and third quartile."""
    return [values.quantile(q, "draw") for q in (0.5, 0.25, 0.75)]


def _mean_words(centre, low, high, draws):
    return f"± {high - centre:.2g} (mean and standard error, {draws:.0f} draws)"


def _median_words(centre, low, high, draws):
    return f"({low:.3g} to {high:.3g}: quartiles, {draws:.0f} draws)"


MEAN, MEDIAN = ("mean", "low", "high"), ("median", "first quartile", "third quartile")
SUMMARIES = {
    "mean": Summary(MEAN, mean_and_error, _mean_words),
    "median": Summary(MEDIAN, median_and_half, _median_words),
    "spread": Summary(MEAN, mean_and_spread, None),
    "only mean": Summary(MEAN, mean_alone, None),
}
"""The last two are for whole profiles, of which a reader wants to see the form more than single points."""


@dataclass(frozen=True)
class Line:
    """A quantity along the axis `x`, or a level that doesn't depend on it.

    values: over draw and x; summary: how the draws are summed up; marks: for each caveat the points at which it holds in any
    draw; named: False for lines without a place in a printed legend.
    """

    experiment: str
    method: str
    x: str
    look: Look
    values: xr.DataArray
    summary: Summary = SUMMARIES["mean"]
    marks: dict = field(default_factory=dict)
    named: bool = True

    @cached_property
    def _summed(self):
        return self.summary.of(self.values)

    @property
    def centre(self):
        return self._summed[0]

    @property
    def low(self):
        return self._summed[1]

    @property
    def high(self):
        return self._summed[2]

    @property
    def has_spread(self):
        return self.low is not self.centre

    @property
    def is_profile(self):
        """One of many thin lines, of which single points are not told."""
        return self.summary.words is None

    @property
    def is_level(self):
        return self.x not in self.centre.dims

    @property
    def lost(self):
        """Points at which no run of any draw could be used. A theory that says nothing there leaves a gap, and no mark."""
        return np.isnan(self.centre) & bool(self.look.marker)


def line(dataset, quantity, x, source, look, summary="mean"):
    """The line of a quantity of a dataset, over draw and x, with its caveats; source: (experiment, method)."""
    found = Line(*source, x, look, dataset[quantity], SUMMARIES[summary])
    return replace(found, marks=caveats(dataset, () if found.is_level else (x,)))


def caveats(dataset, axes):
    """For each caveat that a dataset has in any draw, the points of the axes at which it has it."""
    found = {}
    for name, caveat in CAVEATS.items():
        flagged = caveat.flag(dataset)
        if flagged is not None:
            flagged = flagged.any([dim for dim in flagged.dims if dim not in axes])
            if bool(flagged.any()):
                found[name] = flagged
    return found


def shaded(points, label):
    """(point, look, named) of many lines, lighter for later points; the first, the middle and the last are named.

    label: a function that gives the name of a point.
    """
    named = points[0], points[len(points) // 2], points[-1]
    for point, shade in zip(points, style.shades(len(points)), strict=True):
        yield point, Look(label(point), shade, "-"), point in named


@dataclass(frozen=True)
class Mark:
    """A vertical line at `at`. name: in the printed legend; key: on the page, where there is more room."""

    at: float
    x: str
    color: str
    linestyle: str
    name: str
    key: str


@dataclass(frozen=True)
class Picture:
    """A matrix as a picture; colours run from 0, or from -limit where there are values below, to limit.

    rows, columns: names of its axes; blocks: dashed lines cut it into so many blocks a side; counted: rows have numbers.
    """

    values: xr.DataArray
    limit: float
    rows: str = ""
    columns: str = ""
    blocks: int = 1
    counted: bool = True

    @property
    def is_positive(self):
        return float(self.values.min()) >= 0

    @property
    def least(self):
        return 0 if self.is_positive else -self.limit

    @property
    def is_clipped(self):
        return bool(np.abs(self.values).max() > self.limit)

    @property
    def cuts(self):
        """Where the lines between the blocks run."""
        return [i * len(self.values) / self.blocks - 0.5 for i in range(1, self.blocks)]
