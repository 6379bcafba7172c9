"""What measured quantities and the axes of sweeps are called: every kind says so of its own, and this collects it."""

from functools import cache

from ggdln.core.kinds import REGISTRIES, Variable
from ggdln.tasks import VARIABLES

AXES = {
    "M": Variable("number of gates", "M", label="number of gates $M$"),
    "L": Variable("depth", "L", label="depth $L$"),
    "N": Variable("width of the hidden layers", "N", label="width $N$"),
    "sigma": Variable("standard deviation of the weight prior", "sigma", label=r"prior standard deviation $\sigma$"),
    "T": Variable("temperature", "T", label="temperature $T$"),
    "b": Variable("threshold of the gates", "b", label="gate threshold $b$"),
    "P": Variable("training samples", "P", label="training samples $P$"),
    "N0": Variable("input dimension", "N_0", label="input dimension $N_0$"),
    "theta": Variable("angle between an input and the reference input", "theta", label=r"angle $\theta$"),
    "run": Variable("number of the run"),
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
    """A copy of a dataset whose variables carry long_name, symbol and equation as attributes."""
    dataset = dataset.copy()
    for name in dataset.variables:
        found = describe(str(name))
        texts = {"long_name": found.long_name, "symbol": found.symbol, "equation": found.equation}
        dataset[name].attrs.update({key: text for key, text in texts.items() if text})
    return dataset
