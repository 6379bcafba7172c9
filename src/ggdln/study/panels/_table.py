"""The numbers of a panel as a table: what is drawn, and every draw beside it."""

import numpy as np

from ggdln.study.panels._text import plain


class Table:
    """Rows of numbers as a canvas."""

    def __init__(self):
        self._lines, self._picture = [], None

    def axes(self, x, y, **more):
        """A table has columns instead."""

    def lines(self, lines):
        self._lines += lines

    def marks(self, marks):
        """Marks are no numbers of an experiment."""

    def picture(self, picture):
        self._picture = picture.values

    def zero(self):
        pass

    def legend(self, **where):
        pass

    def rows(self):
        """The rows of the table, the first one its head; None if there are no numbers."""
        if self._picture is not None:
            rows, columns = self._picture.dims
            head = [f"{rows} / {columns}", *range(self._picture.sizes[columns])]
            return [head, *([i, *(_short(value, 4) for value in row)] for i, row in enumerate(self._picture.values))]
        if not self._lines:
            return None
        # All draws of curves; of whole profiles the summary has to do.
        most = max(0 if line.is_profile else line.values.sizes["draw"] for line in self._lines)
        first = self._lines[0]
        head = ["experiment", "method", "series", first.x, *first.summary.names, "caveats", *(f"draw {i}" for i in range(most))]
        return [head, *(row for line in self._lines for row in _rows(line))]


def _rows(line):
    digits = 4 if line.is_profile else 5
    source = [line.experiment, line.method, plain(line.look.label)]
    xs = ["any"] if line.is_level else [_short(x) for x in line.centre[line.x].values]
    summary = np.stack([np.atleast_1d(part) for part in (line.centre, line.low, line.high)], axis=1)
    marks = {name: np.atleast_1d(found) for name, found in line.marks.items()}
    draws = line.values.transpose(..., "draw").values.reshape(len(xs), -1)[:, : 0 if line.is_profile else None]
    for i, x in enumerate(xs):
        caveats = "; ".join(name for name, found in marks.items() if found[i])
        yield [*source, x, *(_short(value, digits) for value in summary[i]), caveats, *map(_short, draws[i])]


def _short(value, digits=5):
    return "" if np.isnan(value) else f"{float(value):.{digits}g}"
