"""A figure before it is drawn: rows of panel letters, and the panels."""

from dataclasses import dataclass

from ggdln.core.kinds import REGISTRIES


@dataclass(frozen=True)
class Figure:
    """A layout. size: width and height in inches; mosaic: rows of letters; panels: letter -> `Panel`."""

    name: str
    caption: str
    size: list
    mosaic: list
    panels: dict

    @classmethod
    def of(cls, spec):
        """The figure that `spec` describes in plain values."""
        panels = {letter: REGISTRIES["panel"].make(panel) for letter, panel in spec["panels"].items()}
        return cls(**spec | {"panels": panels})

    def spec(self):
        """It in plain values."""
        return vars(self) | {"panels": {letter: panel.spec() for letter, panel in self.panels.items()}}

    def shown(self):
        """The curves that it shows, as (experiment, method), in the order of its panels."""
        return list(dict.fromkeys((s.experiment, s.method) for panel in self.panels.values() for s in panel.shown()))
