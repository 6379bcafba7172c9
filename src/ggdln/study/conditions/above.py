"""A quantity above another."""

from typing import ClassVar

from ggdln.study.conditions._side import Side


class Above(Side):
    """Above the other quantity at nearly every point."""

    sign: ClassVar[int] = 1
