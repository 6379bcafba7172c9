"""Panels of figures, in print and on the page. Each module without an underscore is a kind of panel."""

from dataclasses import dataclass, field
from typing import ClassVar

from pydantic import Field

from ggdln.core.kinds import Kind


@dataclass(frozen=True)
class Shown:
    """A curve that a panel shows: axes are those of the sweep that it runs along, select those that are held fixed."""

    experiment: str
    method: str
    axes: dict = field(default_factory=dict)  # role, such as x or hue -> axis
    select: dict = field(default_factory=dict)


class Panel(Kind):
    """A kind of panel; fields are its parameters."""

    sort: ClassVar[str] = "panel"

    label: str | None = Field(None, max_length=3, description="Letter of the panel; empty for none")
    title: str | None = Field(None, description="Title of the panel")

    def shown(self):
        """The curves that it shows, as a list of `Shown`."""
        return []

    def heading(self):
        """What it shows, in a few words."""
        return self.title or ""

    def draw(self, ax, data, experiments):
        """Draw it with matplotlib. data: datasets by "experiment/method"; experiments: their parameters by name."""
        raise NotImplementedError

    def graph(self, data, experiments):
        """It as a plotly figure for the page; None for what has no numbers."""
        return None

    def table(self, data):
        """The numbers behind it as rows, the first one the head; None if there are none."""
        return None
