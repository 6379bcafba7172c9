"""The evidence log p(y) of a model: how probable it made the labels before it saw them.

For the theory log p(y) = -H - P/2 log 2 pi, with H measured from the prior. A dead training input, whose output is 0 for all
weights, is not in H; its labels are noise of variance T and count as such.
"""

import math


def dead_log_density(training, temperature):
    """log of the density of the labels of dead training inputs."""
    count = training.dead * training.sides
    if not count:
        return 0.0
    if not temperature > 0:
        return -math.inf if training.dead_square > 0 else 0.0
    return -training.dead_square / (2 * temperature) - count / 2 * math.log(2 * math.pi * temperature)


def log_evidence(training, temperature, energy):
    """log p(y) from the energy, minus the log of the integral over the order parameters relative to the prior."""
    return -energy - training.count / 2 * math.log(2 * math.pi) + dead_log_density(training, temperature)
