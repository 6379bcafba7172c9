"""Names of what a panel shows: labels with TeX between dollar signs for print, and the same in HTML and as plain text."""

import re
from html import escape

from ggdln.experiments.variables import describe

GREEK = {"sigma": "σ", "theta": "θ", "rho": "ρ", "beta": "β", "gamma": "γ", "epsilon": "ε", "pi": "π"}
SIGNS = GREEK | {"infty": "∞", "to": "→", "leq": "≤", "geq": "≥", "times": "×"}


def name(variable):
    """What a quantity or an axis is called beside an axis, in TeX."""
    found = describe(variable)
    return found.label or found.long_name


def symbol(variable):
    """The symbol of a quantity or an axis in TeX, its own name if it has none."""
    found = describe(variable).symbol
    return "$" + re.sub(rf"\b({'|'.join(GREEK)})(?![A-Za-z])", r"\\\1", found) + "$" if found else variable


def formula(text):
    """A label with TeX in HTML that plotly understands too."""
    from markupsafe import Markup  # the library itself doesn't need it

    parts = escape(str(text), quote=False).split("$")
    return Markup("".join(_math(part) if i % 2 else part for i, part in enumerate(parts)))


def plain(text):
    """A label without any markup, for names that are read aloud."""
    return re.sub(r"<[^>]*>", "", formula(text))


def _math(text):
    text = re.sub(r"\\tilde\{(\w)\}", "\\1\u0303", text)
    text = re.sub(r"\\math\w+\{(\w)\}", r"\1", text)
    text = re.sub(r"\\([a-z]+)", lambda found: SIGNS.get(found[1], found[1]), text)
    text = re.sub(r"(?<![^\W_])[A-Za-z](?![A-Za-z])", r"<i>\g<0></i>", text)
    return re.sub(r"_(?:\{([^}]*)\}|(<i>\w</i>|\w))", lambda found: f"<sub>{found[1] or found[2]}</sub>", text)
