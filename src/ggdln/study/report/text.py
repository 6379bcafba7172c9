"""Text of the page: formulas as HTML, numbers with their errors, findings in Markdown."""

import math
import re
from html import escape

from markdown_it import MarkdownIt
from markupsafe import Markup

SIGNS = {
    "infty": "∞",
    "to": "→",
    "leq": "≤",
    "geq": "≥",
    "times": "×",
    "sigma": "σ",
    "theta": "θ",
    "rho": "ρ",
    "beta": "β",
    "gamma": "γ",
    "epsilon": "ε",
    "pi": "π",
}


def formula(text):
    """A label with TeX between dollar signs, as the pictures have it, in HTML that plotly understands too."""
    parts = escape(str(text), quote=False).split("$")
    return Markup("".join(_math(part) if i % 2 else part for i, part in enumerate(parts)))


def _math(text):
    text = re.sub(r"\\tilde\{(\w)\}", "\\1\u0303", text)
    text = re.sub(r"\\math\w+\{(\w)\}", r"\1", text)
    text = re.sub(r"\\([a-z]+)", lambda found: SIGNS.get(found[1], found[1]), text)
    text = re.sub(r"(?<![^\W_])[A-Za-z](?![A-Za-z])", r"<i>\g<0></i>", text)
    return re.sub(r"_(?:\{([^}]*)\}|(<i>\w</i>|\w))", lambda found: f"<sub>{found[1] or found[2]}</sub>", text)


def prose(text):
    """Plain text in which symbols such as N_0 have their index."""
    return Markup(re.sub(r"\b([A-Z])_([0-9a-zA-Z])\b", r"\1<sub>\2</sub>", escape(str(text), quote=False)))


def plain(text):
    """The same without markup, for names that are read aloud."""
    return re.sub(r"<[^>]*>", "", formula(text))


def number(value):
    """Three digits, with a minus sign."""
    return f"{value:.3g}".replace("-", "−") if value is not None and math.isfinite(value) else "–"


def with_error(value, error=None, percent=False):
    """A value with its error, to two digits of the error."""
    if value is None or not math.isfinite(value):
        return "–"
    scale, unit = (100, " %") if percent else (1, "")
    value, error = scale * value, None if error is None else scale * error
    if not error or not math.isfinite(error):
        return number(value) + unit
    decimals = 1 - math.floor(math.log10(abs(error)))
    if decimals > 5 or abs(value) >= 1e6:
        return f"{number(value)} ± {error:.2g}{unit}"
    decimals = max(decimals, 0)
    text = f"{value:.{decimals}f} ± {error:.{decimals}f}"
    return (f"({text}){unit}" if unit else text).replace("-", "−")


def markdown(text):
    """Markdown as HTML, without raw HTML. Only links within the page stay links: the page must stand alone."""
    tokens = _MARKDOWN.parse(text or "")
    for token in tokens:
        if token.children:
            token.children = _own_links(token.children)
        # The page has its own order of headings.
        if token.type in ("heading_open", "heading_close"):
            token.tag = "p"
            token.attrs["class"] = "heading"
    return Markup(_MARKDOWN.renderer.render(tokens, _MARKDOWN.options, {}))


_MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")


def _own_links(tokens):
    kept, keep = [], True
    for token in tokens:
        if token.type == "link_open":
            keep = token.attrs["href"].startswith("#")
        if not token.type.startswith("link_") or keep:
            kept.append(token)
    return kept
