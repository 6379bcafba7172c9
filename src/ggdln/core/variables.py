"""What is known of a quantity, which datasets carry with their variables: its name, units, symbol and equation."""

from dataclasses import dataclass

LABELS, SQUARES, NUMBER = "labels", "labels^2", "1"
"""Units: those of the labels, their squares, and those of a plain number."""


@dataclass(frozen=True)
class Variable:
    """What a reader must know about a measured quantity; `label` names an axis in TeX where `long_name` is too long."""

    long_name: str
    symbol: str = ""
    equation: str = ""
    label: str = ""
    axes: tuple = ()  # names of rows and columns, for a matrix
    single: bool = True  # one number at each point of a sweep
    more_is_better: bool = False  # where it says how good something is
    units: str = ""

    @property
    def attributes(self):
        """What of this a variable of a dataset says of itself."""
        texts = {"long_name": self.long_name, "units": self.units, "symbol": self.symbol, "equation": self.equation}
        return {name: text for name, text in texts.items() if text}


PARAMETERS = {
    "M": Variable("number of gates", "M", label="number of gates $M$", units=NUMBER),
    "L": Variable("depth", "L", label="depth $L$", units=NUMBER),
    "N": Variable("width of the hidden layers", "N", label="width $N$", units=NUMBER),
    "sigma": Variable(
        "standard deviation of the weight prior", "sigma", label=r"prior standard deviation $\sigma$", units=NUMBER
    ),
    "T": Variable("temperature", "T", label="temperature $T$", units=SQUARES),
}
"""Of a network."""
ARGUMENTS = {
    "width": PARAMETERS["N"],
    "sigma": PARAMETERS["sigma"],
    "temperature": PARAMETERS["T"],
    "M": PARAMETERS["M"],
}
"""The same by the names of arguments."""
LOG_EVIDENCE = Variable("log of the evidence", "log p(Y)", label=r"evidence $\log p(Y)$", more_is_better=True, units=NUMBER)


def described(dataset, variables):
    """The dataset, whose variables say of themselves what `variables` has by their names."""
    for name in dataset.variables:
        dataset[name].attrs.update(variables[name].attributes)
    return dataset
