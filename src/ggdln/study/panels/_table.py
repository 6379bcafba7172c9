"""The numbers of a panel as a table: what is drawn, and every draw beside it."""

import numpy as np

from ggdln.study.panels._grid import told
from ggdln.study.panels._text import plain


class Table:
    """Rows of numbers as a canvas."""

    def __init__(self):
        self._lines, self._picture, self._grid = [], None, None

    def axes(self, x, y, **more):
        """A table has columns instead."""

    def lines(self, lines):
        self._lines += lines

    def marks(self, marks):
        """Marks are no numbers of an experiment."""

    def picture(self, picture):
        self._picture = picture.values

    def grid(self, grid):
        self._grid = grid

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
        if self._grid is not None:
            return list(_cells(self._grid))
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


def _cells(grid):
    """A row for each cell of a grid, with a sentence at the best one."""
    draws = grid.values.transpose(grid.y, grid.x, "draw").values
    counted = [f"draw {i}" for i in range(draws.shape[-1])]
    best = [plain(f"best: {grid.best.words}")] if grid.best else []
    yield [
        "experiment",
        "method",
        "quantity",
        grid.x,
        grid.y,
        *grid.summary.names,
        "caveats",
        *(["best"] if best else []),
        *counted,
    ]
    xs, ys = grid.values[grid.x].values, grid.values[grid.y].values
    for j, i in np.ndindex(len(ys), len(xs)):
        here = bool(best) and (grid.places(grid.x)[i], grid.places(grid.y)[j]) == (grid.best.x, grid.best.y)
        caveats = "; ".join(kind for kind, found in grid.marks.items() if found.values[j, i])
        row = [
            grid.experiment,
            grid.method,
            grid.quantity,
            told(xs[i]),
            told(ys[j]),
            *(_short(part[j, i]) for part in grid.summed),
        ]
        yield [*row, caveats, *(best if here else [""] if best else []), *map(_short, draws[j, i])]


def _short(value, digits=5):
    return "" if np.isnan(value) else f"{float(value):.{digits}g}"
