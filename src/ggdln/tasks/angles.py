"""Inputs on a circle, for the shape of a kernel as a function of the angle between inputs."""

from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from ggdln.core import seeds
from ggdln.core.kinds import Variable
from ggdln.tasks import InputDimension, Sizes, Task, TaskData


class Angles(Task):
    """x(theta) = [cos theta, sin theta, eta_1, ..., eta_(N0-2)] with eta of standard deviation `noise`.

    The training set is the one input x(0); the test inputs are x(theta) for `n_angles` angles from -pi to pi. There is
    nothing to learn: all labels are 0.
    """

    labelled: ClassVar[bool] = False
    notes: ClassVar[tuple] = ("theta",)
    variables: ClassVar[dict[str, Variable]] = {
        "theta": Variable("angle between an input and the reference input", "theta", label=r"angle $\theta$"),
    }

    N0: Annotated[InputDimension, Field(ge=2)]
    n_angles: int = Field(ge=2, le=100_000, description="Number of angles from -pi to pi")
    noise: float = Field(ge=0, le=1000, description="Standard deviation sigma_0 of the inputs outside the plane of the circle")

    def sizes(self):
        return Sizes(1, self.n_angles, self.N0)

    def make(self, seed, draw):
        theta = np.linspace(-np.pi, np.pi, self.n_angles)
        rng = seeds.rng(seed, "angles", draw)

        def circle(angle):
            outside = self.noise * rng.standard_normal((len(angle), self.N0 - 2))
            return np.column_stack([np.cos(angle), np.sin(angle), outside])

        return TaskData(
            x=circle(np.zeros(1)),
            y=np.zeros(1),
            x_test=circle(theta),
            y_test=np.zeros(self.n_angles),
            notes={"theta": (("test",), theta)},
        )
