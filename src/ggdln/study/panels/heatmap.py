"""A quantity over two axes of a sweep as coloured cells; mean or median over draws."""

from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, field_validator

from ggdln.core.problems import Problem
from ggdln.experiments.variables import describe
from ggdln.study.panels import OneCurve, Shown, grid, name

LINEAR_OR_LOG = Literal["linear", "log"]


class Marked(BaseModel):
    """The point that is best by a measured quantity"""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    by: str = Field(description="Variable whose best value, over draws, marks the point")
    largest: bool | None = Field(
        None,
        description="Whether the largest value is the best; by default so for the evidence, and the least for all else",
    )

    def upward(self):
        """Whether the largest value is the best."""
        return describe(self.by).more_is_better if self.largest is None else self.largest

    def words(self):
        return f"{'largest' if self.upward() else 'least'} {name(self.by)}"


class Heatmap(OneCurve):
    quantity: str = Field(description="Variable that is shown; any that is one number at each point")
    x: str = Field(description="Axis of the sweep that runs along the panel")
    y: str = Field(description="Axis of the sweep that runs up the panel")
    xscale: LINEAR_OR_LOG = Field("linear", description="Scale of the horizontal axis")
    yscale: LINEAR_OR_LOG = Field("linear", description="Scale of the vertical axis")
    scale: LINEAR_OR_LOG = Field("linear", description="Scale of the colours")
    contours: int = Field(0, ge=0, le=20, description="Most lines of equal value; none by default")
    summary: Literal["mean", "median"] = Field("mean", description="How draws are summed up")
    change: str | None = Field(
        None, description="Axis along which the relative change of the quantity, from its first to its last point, is shown"
    )
    best: Marked | None = Field(None, description="Mark the best point by a measured quantity, and say where it is")

    @field_validator("y")
    @classmethod
    def _differs(cls, y, info):
        if y == info.data.get("x"):
            raise ValueError(f"an axis other than {y}, which is that of x")
        return y

    def shown(self):
        variables = (self.quantity, *([self.best.by] if self.best else []))
        places = {self.best.by: "best.by"} if self.best and self.best.by != self.quantity else {}
        return [Shown(self.experiment, self.method, self._axes(), self.select, variables, places, single=True)]

    def _axes(self):
        return {"x": self.x, "y": self.y} | ({"change": self.change} if self.change else {})

    def problems(self, experiments):
        axes = experiments[self.experiment].curve(self.method).axes
        found = []
        for role, axis in self._axes().items():
            if axis not in axes:
                told = f"an axis on which {self.method} depends: {', '.join(axes) or 'none'}"
                found.append(Problem(role, axis, told))
            elif getattr(self, f"{role}scale", "") == "log" and not _positive(axes[axis]):
                found.append(Problem(f"{role}scale", "log", f"linear, since {axis} has values that are not above 0"))
        return found

    def heading(self):
        best = f"star: {self.best.words()}" if self.best else None
        what = f"change of {name(self.quantity)} along {name(self.change)}" if self.change else name(self.quantity)
        return ", ".join(filter(None, (what, self.title, best)))

    def paint(self, canvas, data, experiments):
        canvas.axes(name(self.x), name(self.y), xscale=self.xscale, yscale=self.yscale)
        canvas.grid(
            grid(
                self.dataset(data).sel(self.select),
                self.quantity,
                self.x,
                self.y,
                (self.experiment, self.method),
                summary=self.summary,
                change=self.change or "",
                best=(self.best.by, self.best.upward()) if self.best else None,
                **{"xscale": self.xscale, "yscale": self.yscale, "scale": self.scale, "contours": self.contours},
            )
        )


def _positive(values):
    values = np.asarray(values)
    return values.dtype.kind in "biuf" and bool((values > 0).all())
