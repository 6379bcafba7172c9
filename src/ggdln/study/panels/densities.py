"""Densities of a quantity, one line for each value of an axis, lighter for larger values; mean over draws."""

from pydantic import Field

from ggdln.study.panels import SUMMARIES, Limits, Line, OneCurve, Scale, Shown, name, shaded, symbol


class Densities(OneCurve):
    quantity: str = Field(description="Variable that is shown")
    hue: str = Field(description="Axis of the sweep with one line a value")
    yscale: Scale = "linear"
    xlim: Limits | None = Field(None, description="Ends of the axis")
    ylim: Limits | None = Field(None, description="Ends of the axis")
    legend: bool = Field(False, description="Show the legend in this panel")

    def shown(self):
        return [Shown(self.experiment, self.method, {"hue": self.hue}, self.select, (self.quantity,))]

    def heading(self):
        return ", ".join(filter(None, (name(self.quantity), self.title)))

    def paint(self, canvas, data, experiments):
        every = self.dataset(data)[self.quantity].sel(self.select)
        (along,) = (dim for dim in every.dims if dim not in ("draw", self.hue))
        canvas.axes(name(along), "density", yscale=self.yscale, xlim=self.xlim, ylim=self.ylim)
        lines = []
        for point, look, named in shaded(every[self.hue].values, lambda point: f"{symbol(self.hue)} = {point:g}"):
            values = every.sel({self.hue: point})
            summary = SUMMARIES["only mean"]
            lines.append(Line(self.experiment, self.method, along, look, values, summary, named=named))
        canvas.lines(lines)
        if self.legend:
            canvas.legend()
