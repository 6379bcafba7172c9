"""What a figure says about runs that went wrong."""

import numpy as np
import pytest
import xarray as xr

from ggdln.study.figures import content, panels, style
from ggdln.study.figures.style import plt

PANEL = {
    "quantity": "bias",
    "x": "N",
    "xscale": "log",
    "yscale": "linear",
    "summary": "mean",
    "capacity": False,
    "legend": True,
    "series": [{"experiment": "e", "method": "gd", "select": {}}],
}


def dataset(**changes):
    """Three draws at four widths, all runs fine but for `changes`."""
    shape = ("draw", "N"), (3, 4)
    values = {
        "bias": np.arange(12.0).reshape(3, 4),
        "runs_failed": np.zeros((3, 4), int),
        "runs_at_floor": np.zeros((3, 4), int),
        "mixed": np.ones((3, 4), bool),
    }
    data = xr.Dataset({name: (shape[0], value) for name, value in (values | changes).items()})
    return data.assign_coords(draw=range(3), N=[10, 20, 50, 100])


def drawn(data, **changes):
    """The legend's entries and the marked positions of the panel."""
    _, ax = plt.subplots()
    panels.curves(ax, PANEL | changes, {"e/gd": data}, {})
    marks = {
        line.get_label(): list(line.get_xdata()) for line in ax.lines if line.get_marker() in ("o", "x") and line.get_label()
    }
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    plt.close(ax.figure)
    return labels, marks


def at(*places):
    """A (3, 4) array that is 1 at (draw, width) in `places`."""
    array = np.zeros((3, 4), int)
    for place in places:
        array[place] = 1
    return array


def test_nothing_is_marked_where_all_went_well():
    labels, _ = drawn(dataset())
    assert labels == [style.METHODS["gd"]["label"]]


@pytest.mark.parametrize(
    ("changes", "label"),
    [
        ({"runs_failed": at((1, 2))}, "runs failed"),
        ({"runs_at_floor": at((0, 2))}, "at training floor"),
        ({"mixed": at((2, 2)) == 0}, "not mixed"),
    ],
)
def test_one_bad_draw_marks_its_point_and_the_legend_says_why(changes, label):
    labels, marks = drawn(dataset(**changes))
    assert label in labels
    assert marks[label] == [50]


def test_a_point_without_any_usable_run_is_shown_as_missing():
    bias = np.arange(12.0).reshape(3, 4)
    bias[:, 0] = np.nan
    labels, marks = drawn(dataset(bias=bias, runs_failed=4 * at((0, 0), (1, 0), (2, 0))))
    assert "no run usable" in labels
    assert marks["no run usable"] == [10]


def test_the_error_bar_counts_the_draws_that_are_there():
    values = dataset().bias.where(dataset().draw < 2)
    mean, low, _ = content.mean_and_error(values)
    expected = values.isel(draw=slice(2)).std("draw", ddof=1) / np.sqrt(2)
    np.testing.assert_allclose(mean - low, expected)
