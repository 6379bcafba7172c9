"""Inputs on a circle, for the shape of a kernel as a function of the angle between inputs."""

import numpy as np

from ggdln.core import seeds
from ggdln.tasks import Task


def angles(*, N0, n_angles, noise, seed, draw):
    """x(theta) = [cos theta, sin theta, eta_1, ..., eta_(N0-2)] with eta of standard deviation `noise`.

    The training set is the one input x(0); the test inputs are x(theta) for `n_angles` angles from -pi to pi. There is
    nothing to learn: all labels are 0.
    """
    theta = np.linspace(-np.pi, np.pi, n_angles)
    rng = seeds.rng(seed, "angles", draw)

    def circle(angle):
        return np.column_stack([np.cos(angle), np.sin(angle), noise * rng.standard_normal((len(angle), N0 - 2))])

    return Task(
        x=circle(np.zeros(1)),
        y=np.zeros(1),
        x_test=circle(theta),
        y_test=np.zeros(n_angles),
        notes={"theta": (("test",), theta)},
    )
