"""A figure from its layout and its numbers."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, SerializeAsAny

from ggdln.core.kinds import REGISTRIES
from ggdln.study.panels import Panel
from ggdln.study.style import RC

CAPTION_POINTS, CAPTION_LINE, CAPTION_MARGIN = 7, 1.35, 0.08
"""Size of a printed caption, distance of its lines in units of that, and room around it in inches."""

Inches = Annotated[float, Field(gt=0, le=30)]


class Figure(BaseModel):
    """The layout of a figure: a mosaic of panels."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    caption: str = Field(description="What the figure shows; on the page, and in the PDF and the PNG as their subject")
    show_caption: bool = Field(False, description="Print the caption under the figure, which gets higher by that")
    size: list[Inches] = Field(min_length=2, max_length=2, description="Width and height in inches, without the caption")
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
        if figure.show_caption:
            _put_below(drawn, figure.caption)
        axes = drawn.subplot_mosaic([list(row) for row in figure.mosaic])
        for letter, ax in axes.items():
            panel = figure.panels[letter]
            panel.draw(ax, data, experiments)
            # Beside the title, not in the axes: it never covers data.
            ax.set_title(letter if panel.label is None else panel.label, loc="left", fontweight="bold", fontsize=10)
            if panel.title is not None:
                ax.set_title(panel.title)
        drawn.draw_without_rendering()
        # All is in its place, the same for PDF and PNG.
        drawn.set_layout_engine("none")
        return drawn


def _put_below(drawn, caption):
    """Make room under a figure and print a text there, in lines as long as the figure is wide."""
    width, height = drawn.get_size_inches()
    words = drawn.text(0, 0, "", fontsize=CAPTION_POINTS, linespacing=CAPTION_LINE, va="bottom", parse_math=False)
    lines = []
    for word in caption.split():
        longer = f"{lines[-1]} {word}" if lines else word
        words.set_text(longer)
        fits = words.get_window_extent().width <= (width - 2 * CAPTION_MARGIN) * drawn.dpi
        lines[-1:] = [longer] if fits or not lines else [*lines[-1:], word]
    words.set_text("\n".join(lines))
    room = words.get_window_extent().height / drawn.dpi + 2 * CAPTION_MARGIN
    drawn.set_size_inches(width, height + room)
    words.set_position((CAPTION_MARGIN / width, CAPTION_MARGIN / (height + room)))
    drawn.get_layout_engine().set(rect=(0, room / (height + room), 1, height / (height + room)))
