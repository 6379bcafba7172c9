"""The numbers behind a panel as CSV: what is drawn, and every draw beside it."""

import csv
import io
from urllib.parse import quote

import numpy as np

from ggdln.study.figures import content
from ggdln.study.report.text import plain

LINES = {
    "curves": content.curves,
    "densities": content.densities,
    "kernel_profile": content.kernel_profiles,
}


def panel_table(panel, data):
    """Rows of the table of a panel, the first one its head; None for a drawing."""
    if panel["kind"] == "matrix":
        shown = content.matrix(panel, data).values
        rows, columns = shown.dims
        head = [f"{rows} / {columns}", *range(shown.sizes[columns])]
        return [head, *([i, *(_short(value, 4) for value in row)] for i, row in enumerate(shown.values))]
    if panel["kind"] not in LINES:
        return None
    lines = LINES[panel["kind"]](panel, data)
    names = ("median", "first quartile", "third quartile") if panel.get("summary") == "median" else ("mean", "low", "high")
    # All draws of the curves; of whole profiles and densities the summary has to do.
    digits = 5 if panel["kind"] == "curves" else 4
    most = max(line.values.sizes["draw"] for line in lines) if panel["kind"] == "curves" else 0
    table = [["experiment", "method", "series", lines[0].x, *names, "caveats", *(f"draw {i}" for i in range(most))]]
    for line in lines:
        source = [line.experiment, line.method, plain(line.look["label"])]
        xs = ["any"] if line.is_level else [_short(x) for x in line.centre[line.x].values]
        summary = np.stack([np.atleast_1d(part) for part in (line.centre, line.low, line.high)], axis=1)
        marks = {name: np.atleast_1d(found) for name, found in line.marks.items()}
        draws = line.values.transpose(..., "draw").values.reshape(len(xs), -1) if most else np.empty((len(xs), 0))
        for i, x in enumerate(xs):
            caveats = "; ".join(name for name, found in marks.items() if found[i])
            table.append([*source, x, *(_short(value, digits) for value in summary[i]), caveats, *map(_short, draws[i])])
    return table


def csv_uri(table):
    """A table as a link that holds its own content."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(table)
    return "data:text/csv;charset=utf-8," + quote(text.getvalue(), safe=", /:;()=-+.")


def _short(value, digits=5):
    return "" if np.isnan(value) else f"{float(value):.{digits}g}"
