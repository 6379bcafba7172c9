"""Normalized kernel against the angle between inputs, one line a depth, lighter for larger depth; mean and spread of draws."""

import numpy as np
import xarray as xr
from pydantic import Field

from ggdln.experiments.variables import describe
from ggdln.study.panels import SUMMARIES, Line, OneCurve, Shown, name, shaded
from ggdln.theory.kernels import arc_cosine_limit

ANGLES = {-np.pi: r"$-\pi$", 0: "0", np.pi: r"$\pi$"}


class KernelProfile(OneCurve):
    limit: bool = Field(False, description="Show the analytic limit of many gates instead of the measured kernel")
    legend: bool = Field(False, description="Show the legend in this panel")

    def shown(self):
        return [Shown(self.experiment, self.method, {"hue": "L"}, self.select, ("kernel_profile",))]

    def heading(self):
        return ", ".join(filter(None, (describe("kernel_profile").long_name, self.title)))

    def paint(self, canvas, data, experiments):
        ends = {"xlim": [-np.pi, np.pi], "ylim": [-1.05, 1.05]}
        canvas.axes(name("theta"), name("kernel_profile"), xticks=ANGLES, **ends)
        every, lines = self.dataset(data).kernel_profile, []
        for depth, look, named in shaded(every.L.values, lambda depth: f"$L = {depth}$"):
            values = _limit(depth) if self.limit else every.sel(self.select | {"L": depth})
            summary = SUMMARIES["only mean" if self.limit else "spread"]
            lines.append(Line(self.experiment, self.method, "theta", look, values, summary, named=named))
        canvas.lines(lines)
        canvas.zero()
        if self.legend:
            canvas.legend(loc="upper right", handlelength=1.2)


def _limit(depth):
    """The kernel of infinitely many gates, as a single draw."""
    theta = np.linspace(-np.pi, np.pi, 401)
    return xr.DataArray(arc_cosine_limit(theta, depth), {"theta": theta}, "theta").expand_dims("draw")
