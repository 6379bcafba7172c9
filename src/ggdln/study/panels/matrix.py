"""A matrix of the first draw as a picture; dashed lines between blocks."""

import numpy as np
from pydantic import Field

from ggdln.experiments.variables import describe
from ggdln.study.panels import OneCurve, Picture, Shown, name


class Matrix(OneCurve):
    quantity: str = Field(description="Variable that is shown")
    amplitude: bool = Field(False, description="Show absolute values")
    clip: float = Field(
        0.99, gt=0, le=1, description="Share of the elements that the colours cover; larger ones have the last colour"
    )
    blocks: int = Field(1, ge=1, le=100, description="Dashed lines that cut the matrix into this many blocks a side")

    def shown(self):
        return [Shown(self.experiment, self.method, {}, self.select, (self.quantity,))]

    def heading(self):
        """A title says more than the full name of a matrix."""
        own = describe(self.quantity).label if self.title else name(self.quantity)
        return ", ".join(filter(None, (own, self.title)))

    def paint(self, canvas, data, experiments):
        every = self.dataset(data)[self.quantity].isel(draw=0)
        values = every.sel(self.select)
        # One scale for all points of the sweep, so that panels can be compared; a few large elements, such as the diagonal of
        # a kernel, would leave the rest without colour.
        limit = float(np.abs(every).quantile(self.clip, every.dims[-2:]).max())
        rows, columns = describe(self.quantity).axes or ("", "")
        # Where the name of the rows has no index, as with groups of samples, their numbers say nothing.
        counted = "$" in rows or not rows
        canvas.picture(Picture(np.abs(values) if self.amplitude else values, limit, rows, columns, self.blocks, counted))
