"""What all kinds of panels have in common."""

from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from ggdln.core.errors import InputError
from ggdln.core.kinds import Kind
from ggdln.core.problems import choices

Scale = Annotated[Literal["linear", "log", "symlog"], Field(description="Scale of the axis")]
Limits = Annotated[list[float], Field(min_length=2, max_length=2)]


@dataclass(frozen=True)
class Shown:
    """A curve that a panel shows: axes are those of the sweep that it runs along, select those that are held fixed."""

    experiment: str
    method: str
    axes: dict = field(default_factory=dict)  # role, such as x or hue -> axis
    select: dict = field(default_factory=dict)
    variables: tuple = ()  # names of the measured quantities that the panel reads
    places: dict = field(default_factory=dict)  # variable -> key that names it, if that isn't quantity
    single: bool = False  # whether these must be one number at each point of the sweep


class Panel(Kind):
    """A kind of panel; fields are its parameters.

    data maps "experiment/method" to a dataset over (draw, *axes), experiments each name to the parameters of the experiment.
    """

    sort: ClassVar[str] = "panel"

    label: str | None = Field(None, max_length=3, description="Letter of the panel; empty for none")
    title: str | None = Field(None, description="Title of the panel")

    def shown(self):
        """The curves that it shows, as a list of `Shown`."""
        return []

    def problems(self, experiments):
        """What neither bounds nor `shown` can say, as `Problem`s with keys such as "xscale"; experiments by name."""
        return ()

    def heading(self):
        """What it shows, in a few words."""
        return self.title or ""

    def paint(self, canvas, data, experiments):
        """Put it on a canvas: `ggdln.study.panels._print.Print`, or one of the others, which have the same methods.

        canvas.axes(x, y, xscale=, yscale=, xlim=, ylim=, xticks=) names the axes and comes first; canvas.lines, canvas.marks,
        canvas.picture and canvas.grid take `Line`s, `Mark`s, a `Picture` and a `Grid`; canvas.zero() and canvas.legend() are
        for print.
        """
        raise NotImplementedError

    def draw(self, ax, data, experiments):
        """Draw it with matplotlib."""
        from ggdln.study.panels._print import Print

        self.paint(Print(ax), data, experiments)

    def graph(self, data, experiments):
        """It as a plotly figure for the page; None for what has no numbers."""
        if type(self).paint is Panel.paint:
            return None
        from ggdln.study.panels._page import Page

        page = Page()
        self.paint(page, data, experiments)
        return page.figure

    def table(self, data, experiments):
        """The numbers behind it as rows, the first one the head; None if there are none."""
        if type(self).paint is Panel.paint:
            return None
        from ggdln.study.panels._table import Table

        table = Table()
        self.paint(table, data, experiments)
        return table.rows()


class OneCurve(Panel):
    """A panel that shows a single method of a single experiment."""

    experiment: str = Field(description="Experiment that is shown")
    method: str = Field(description="Method that is shown")
    select: dict[str, Any] = Field({}, description="Value of each axis of the sweep that is held fixed")

    def dataset(self, data):
        """The dataset that it shows."""
        return held(data, self.experiment, self.method, *(name for shown in self.shown() for name in shown.variables))


def held(data, experiment, method, *variables):
    """The dataset of a curve; an error names variables that it doesn't hold."""
    dataset = data[f"{experiment}/{method}"]
    missing = [variable for variable in variables if variable not in dataset]
    if missing:
        told = choices(missing[0], dataset.data_vars)
        raise InputError(f"{method} of {experiment} doesn't measure {missing[0]} here; accepted: {told}")
    return dataset
