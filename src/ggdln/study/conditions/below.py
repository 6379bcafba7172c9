"""A quantity below another."""

from ggdln.study.conditions.above import Above


class Below(Above):
    sign = -1
