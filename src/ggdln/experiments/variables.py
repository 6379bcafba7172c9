"""What measured quantities and the axes of sweeps are called: every kind says so of its own, and this collects it."""

from functools import cache

from ggdln.core import variables
from ggdln.core.kinds import REGISTRIES
from ggdln.core.variables import PARAMETERS, Variable
from ggdln.networks.variables import RUNS
from ggdln.tasks import VARIABLES

AXES = {
    **PARAMETERS,
    "b": Variable("threshold of the gates", "b", label="gate threshold $b$"),
    "P": Variable("training samples", "P", label="training samples $P$"),
    "N0": Variable("input dimension", "N_0", label="input dimension $N_0$"),
    "theta": Variable("angle between an input and the reference input", "theta", label=r"angle $\theta$"),
    "run": RUNS["run"],
    "draw": Variable("independent draw of data and gates"),
    "point": Variable("index of the sweep point"),
}
"""Parameters that are often swept, and other dimensions of datasets."""


def describe(name):
    """The `Variable` of a quantity or an axis; one that says no more than its name for what nobody has described."""
    return _known(len(REGISTRIES["observable"].added) + len(REGISTRIES["method"].added)).get(
        name, Variable(name.replace("_", " "), name if len(name) <= 2 else "")
    )


@cache
def _known(_):
    found = {}
    for registry in REGISTRIES.values():
        for kind in registry.names():
            found |= registry.get(kind).variables | getattr(registry.get(kind), "run_variables", {})
    return found | VARIABLES | AXES


def described(dataset):
    """A copy of a dataset whose variables say of themselves what is known of them, in attributes."""
    dataset = dataset.copy()
    return variables.described(dataset, {name: describe(str(name)) for name in dataset.variables})
