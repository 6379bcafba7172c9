"""A quantity along one axis of a sweep, for one or more experiments and methods.

Mean over draws with its standard error or, where single draws may diverge, median and middle half of the draws.
"""

from dataclasses import replace
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from ggdln.core.kinds import REGISTRIES, Look
from ggdln.study import style
from ggdln.study.panels import Limits, Mark, Panel, Scale, Shown, held, line, name, symbol, told
from ggdln.theory.capacity import capacity, gates_at_capacity

BESIDE = {"loc": "upper left", "bbox_to_anchor": (1.02, 1.0), "borderaxespad": 0.0}


class Series(BaseModel):
    """One experiment and method: a line, or several of different hue."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    experiment: str = Field(description="Experiment that is shown")
    method: str = Field(description="Method that is shown")
    name: str | None = Field(
        None, description="Name in the legend; by default that of the method, and what tells it from others"
    )
    colour: Literal[tuple(style.COLOURS)] | None = Field(
        None,
        description="Colour of the line; by default that of the method, or of the experiment",
    )
    hue: str | None = Field(None, description="Axis of the sweep with one line a value")
    select: dict[str, Any] = Field({}, description="Value of each axis of the sweep that is held fixed")
    draws: int | None = Field(None, ge=1, description="Show this many draws only, those on which a simulation was run")


class Curves(Panel):
    series: list[Series] = Field(min_length=1, description="Experiments and methods that are shown")
    quantity: str = Field(description="Variable that is shown")
    x: str = Field(description="Axis of the sweep that runs along the panel")
    xscale: Scale = "linear"
    yscale: Scale = "linear"
    xlim: Limits | None = Field(None, description="Ends of the axis")
    ylim: Limits | None = Field(None, description="Ends of the axis")
    summary: Literal["mean", "median"] = Field(
        "mean",
        description="How draws are summed up; mean with standard error, or median with quartiles where draws may diverge",
    )
    capacity: bool = Field(
        False, description="Vertical lines where P examples reach capacity, for generic gates and for 0/1 gates"
    )
    legend: bool | Literal["beside"] = Field(False, description="Show the legend in this panel, or to the right of it")

    def shown(self):
        found = []
        for series in self.series:
            axes = {"x": self.x} | ({"hue": series.hue} if series.hue else {})
            found.append(Shown(series.experiment, series.method, axes, series.select, (self.quantity,), single=True))
        return found

    def heading(self):
        return ", ".join(filter(None, (name(self.quantity), self.title)))

    def paint(self, canvas, data, experiments):
        scales = {"xscale": self.xscale, "yscale": self.yscale}
        canvas.axes(name(self.x), name(self.quantity), xlim=self.xlim, ylim=self.ylim, **scales)
        looks = _looks(self.series)
        canvas.lines([drawn for pair in zip(self.series, looks, strict=True) for drawn in self._lines(*pair, data)])
        if self.capacity:
            canvas.marks(_capacity_marks(self.series[-1], data, experiments))
        if self.legend:
            canvas.legend(**BESIDE if self.legend == "beside" else {})

    def _lines(self, series, look, data):
        """One line, or one for each value of the hue."""
        source = series.experiment, series.method
        chosen = held(data, *source, self.quantity).sel(series.select).isel(draw=slice(series.draws))
        for part, own in _parts(series, look, chosen):
            yield line(part, self.quantity, self.x, source, own, self.summary)


def _looks(several):
    """The look of each series: that of its method, with colours and names of their own where a method is shown twice."""
    unnamed = [series for series in several if series.name is None and series.hue is None]
    methods = [series.method for series in unnamed]
    sources = [(series.experiment, tuple(series.select.items())) for series in unnamed]
    distinct = list(dict.fromkeys(sources)) if len(set(methods)) < len(methods) else []
    found = []
    for series in several:
        look = style.look(series.method)
        source = series.experiment, tuple(series.select.items())
        if series in unnamed and len(distinct) > 1:
            label = ", ".join([look.label, *_apart(source, distinct)])
            look = replace(look, label=label, color=style.HUES[distinct.index(source) % len(style.HUES)])
        label = look.label if series.name is None else series.name
        found.append(replace(look, label=label, color=series.colour or look.color))
    return found


def _apart(source, sources):
    """What tells a source, (experiment, values that are held), from others, in words."""
    experiment, select = source
    words = [experiment.replace("_", " ")] if len({other for other, _ in sources}) > 1 else []
    if len({held for _, held in sources}) > 1:
        words += [f"{symbol(axis)} = {told(value)}" for axis, value in select]
    return words


def _parts(series, look, dataset):
    """(dataset, look) of each line of a series."""
    if series.hue is None:
        return [(dataset, look)]
    found = []
    for value, colour in zip(dataset[series.hue].values, style.HUES, strict=False):
        look = Look(f"{symbol(series.hue)} = {value:g}", colour, "-", ".")
        found.append((dataset.sel({series.hue: value}), look))
    return found


def _capacity_marks(series, data, experiments):
    """Marks where P reaches the capacity of generic gates, and that of 0/1 gates where it is another number.

    One for each depth in the colours of the curves, or for the depth of the experiment.
    """
    experiment = experiments[series.experiment]
    if series.hue == "L":
        depths, colours = data[f"{series.experiment}/{series.method}"].L.values, style.HUES
    else:
        depths, colours = [experiment["network"]["L"]], ("ink",)
    sizes, marks = REGISTRIES["task"].make(experiment["task"]).sizes(), []
    for depth, colour in zip(depths, colours, strict=False):
        M = gates_at_capacity(sizes.N0, sizes.P, int(depth))
        marks.append(Mark(M, "M", colour, "--", "capacity", "capacity"))
        if not np.isclose(capacity(sizes.N0, M, int(depth), binary=True), sizes.P):
            M = gates_at_capacity(sizes.N0, sizes.P, int(depth), binary=True)
            marks.append(Mark(M, "M", colour, ":", "for 0/1 gates", "capacity for 0/1 gates"))
    return marks
