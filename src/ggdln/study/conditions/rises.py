"""A quantity that rises along the sweep."""

from typing import ClassVar

from ggdln.study.conditions._trend import Trend


class Rises(Trend):
    """Rank correlation with x at least `strength`."""

    sign: ClassVar[int] = 1
