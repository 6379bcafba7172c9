"""Gated networks trained by gradient descent."""

from typing import ClassVar, Literal

from pydantic import Field

from ggdln.core.kinds import Look
from ggdln.experiments.methods._trained import Trained
from ggdln.networks.settings import Training


class Gd(Trained):
    """Networks trained by gradient descent"""

    look: ClassVar[Look] = Look("gradient descent", "orange", marker="o")

    integrator: Literal["flow", "descent"] = Field(
        "flow", description="flow: gradient flow in function space; descent: plain full-batch gradient descent"
    )
    accuracy: float = Field(0.05, gt=0, le=1, description="Local error of gradient flow, as a share of the residual")

    def train(self, point, i, network):
        from ggdln.networks.training import train_ensemble

        sample = point.sample
        return train_ensemble(
            *(sample.task.x, sample.g, sample.task.y, sample.task.x_test, sample.g_test),
            width=network["N"],
            depth=network["L"],
            sigma=network["sigma"],
            runs=len(point.runs),
            seed=point.stream("gd"),
            training=Training(self.integrator, self.tolerance, self.accuracy, first_run=point.runs.start),
            runtime=point.runtime(i, self.dtype),
        )
