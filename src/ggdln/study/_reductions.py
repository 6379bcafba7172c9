"""Numbers that are computed from the kernel as a function of the angle between inputs, for claims about its shape."""

import numpy as np

from ggdln.theory.kernels import arc_cosine_limit

DIFFERENT_INPUTS = 0.5
"""Angle in radians from which two inputs count as different."""


def size_between_inputs(dataset):
    """Mean size of the kernel between different inputs."""
    profile = dataset.kernel_profile
    return np.abs(profile).where(np.abs(profile.theta) >= DIFFERENT_INPUTS).mean("theta")


def distance_from_limit(dataset):
    """Root mean square distance of the kernel from its limit of many gates, over angles and depths."""
    profile = dataset.kernel_profile
    limit = np.stack([arc_cosine_limit(profile.theta.values, int(depth)) for depth in profile.L.values])
    return np.sqrt(((profile.transpose(..., "L", "theta") - limit) ** 2).mean(("L", "theta")))


REDUCTIONS = {reduction.__name__: reduction for reduction in (size_between_inputs, distance_from_limit)}
