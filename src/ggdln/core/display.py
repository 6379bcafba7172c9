"""How objects show themselves: in a line, and as a small table in a notebook."""

from html import escape
from typing import Any


def text(value: Any) -> str:
    """A number in a few digits."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def line(name: str, found: dict[str, Any]) -> str:
    """An object in a line."""
    return f"{name}({', '.join(f'{key}={text(value)}' for key, value in found.items())})"


def table(name: str, found: dict[str, Any]) -> str:
    """The same as HTML."""
    cells = "".join(f"<tr><th>{escape(key)}</th><td>{escape(text(value))}</td></tr>" for key, value in found.items())
    return f"<table><caption>{escape(name)}</caption>{cells}</table>"


class Shown:
    """What shows its `facts`, by name, in a line and as a table."""

    def facts(self) -> dict[str, Any]:
        raise NotImplementedError

    def __repr__(self) -> str:
        return line(type(self).__name__, self.facts())

    def _repr_html_(self) -> str:
        return table(type(self).__name__, self.facts())
