"""A schematic drawing without numbers."""

from typing import Literal

from pydantic import Field

from ggdln.study.panels import Panel
from ggdln.study.schematics import DRAWINGS


class Drawing(Panel):
    of: Literal[tuple(DRAWINGS)] = Field(description="What is drawn")

    def draw(self, ax, data, experiments):
        DRAWINGS[self.of](ax)
