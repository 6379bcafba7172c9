"""A quantity that falls along the sweep."""

from typing import ClassVar

from ggdln.study.conditions._trend import Trend


class Falls(Trend):
    """Rank correlation with x at most -`strength`."""

    sign: ClassVar[int] = -1
