"""A quantity below another."""

from typing import ClassVar

from ggdln.study.conditions._side import Side


class Below(Side):
    """Below the other quantity at nearly every point."""

    sign: ClassVar[int] = -1
