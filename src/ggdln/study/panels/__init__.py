"""Panels of figures, in print and on the page. Each module without an underscore is a kind of panel, a subclass of `Panel`.

A kind that says in `paint` what it shows, in lines, marks, pictures and grids, has by that a drawing in print (`_print`), a
graph on the page (`_page`) and its numbers as a table (`_table`). A kind that can't be said so draws itself with matplotlib in
`draw`.
"""

from ggdln.study.panels._grid import Best, Grid, grid, told
from ggdln.study.panels._lines import SUMMARIES, Line, Mark, Picture, Summary, line, shaded
from ggdln.study.panels._panel import Limits, OneCurve, Panel, Scale, Shown, held
from ggdln.study.panels._text import name, symbol

__all__ = [
    "SUMMARIES",
    "Best",
    "Grid",
    "Limits",
    "Line",
    "Mark",
    "OneCurve",
    "Panel",
    "Picture",
    "Scale",
    "Shown",
    "Summary",
    "grid",
    "held",
    "line",
    "name",
    "shaded",
    "symbol",
    "told",
]
