"""A quantity that falls along the sweep."""

from ggdln.study.conditions.rises import Rises


class Falls(Rises):
    sign = -1
