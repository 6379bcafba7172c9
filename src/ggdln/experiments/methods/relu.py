"""Fully trained ReLU networks, a baseline without gates."""

from typing import ClassVar

from pydantic import Field

from ggdln.core.kinds import Look
from ggdln.experiments.methods._trained import Trained
from ggdln.networks.settings import Training


class Relu(Trained):
    """Fully trained ReLU networks of the same width"""

    look: ClassVar[Look] = Look("ReLU network", "ink", linestyle="--")
    ignores: ClassVar[tuple] = ("L", "T")
    needs: ClassVar[dict] = {"N": "a width"}
    gated: ClassVar[bool] = False
    offers: ClassVar[tuple] = ()

    accuracy: float = Field(0.03, gt=0, le=1, description="Local error of gradient flow, as a share of the residual")

    def train(self, point, i, network):
        from ggdln.networks.training import train_relu

        task = point.sample.task
        return train_relu(
            *(task.x, task.y, task.x_test),
            width=network["N"],
            sigma=network["sigma"],
            runs=len(point.runs),
            seed=point.stream("relu"),
            training=Training("flow", self.tolerance, self.accuracy, first_run=point.runs.start),
            runtime=point.runtime(i, self.dtype),
        )
