"""A figure from its layout and its numbers."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, SerializeAsAny

from ggdln.core.kinds import REGISTRIES
from ggdln.study.panels import Panel
from ggdln.study.style import RC

Inches = Annotated[float, Field(gt=0, le=30)]


class Figure(BaseModel):
    """The layout of a figure: a mosaic of panels."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    caption: str = Field(description="What the figure shows")
    size: list[Inches] = Field(min_length=2, max_length=2, description="Width and height in inches")
    mosaic: list[Annotated[str, Field(min_length=1)]] = Field(
        min_length=1, description="Arrangement of the panels, one string of panel letters a row"
    )
    panels: dict[Annotated[str, Field(pattern="^[a-zA-Z]$")], SerializeAsAny[Panel]] = Field(
        min_length=1, description="Panels by letter"
    )

    @classmethod
    def make(cls, spec):
        """The figure that plain values stand for, with a mapping of "kind" and parameters for each panel."""
        return cls(**spec | {"panels": {letter: REGISTRIES["panel"].make(panel) for letter, panel in spec["panels"].items()}})

    def spec(self):
        """The plain values from which `make` makes it again."""
        return self.model_dump(exclude={"panels"}) | {"panels": {letter: panel.spec() for letter, panel in self.panels.items()}}

    def shown(self):
        """The curves that its panels show, as a list of `Shown`."""
        return [shown for panel in self.panels.values() for shown in panel.shown()]

    def letters(self):
        """The letter under which each panel is known: panels without one of their own belong to the one before."""
        found, last = {}, ""
        for letter, panel in self.panels.items():
            last = found[letter] = (letter if panel.label is None else panel.label) or last
        return found


def compose(figure, data, experiments):
    """Draw a `Figure` with matplotlib: data by "experiment/method", experiments by name."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure as Canvas

    with rc_context(RC):
        drawn = Canvas(figsize=figure.size, layout="constrained")
        axes = drawn.subplot_mosaic([list(row) for row in figure.mosaic])
        for letter, ax in axes.items():
            panel = figure.panels[letter]
            panel.draw(ax, data, experiments)
            # Beside the title, not in the axes: it never covers data.
            ax.set_title(letter if panel.label is None else panel.label, loc="left", fontweight="bold", fontsize=10)
            if panel.title is not None:
                ax.set_title(panel.title)
        drawn.draw_without_rendering()
        return drawn
