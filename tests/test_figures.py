"""Panels and figures: what they say about runs that went wrong, and kinds of panels from a user's file."""

import subprocess
import sys

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure as Canvas
from PIL import Image

from ggdln.core.errors import InputError
from ggdln.core.kinds import REGISTRIES, add_file
from ggdln.study import style
from ggdln.study.caveats import CAVEATS
from ggdln.study.compose import Figure, compose
from ggdln.study.panels import SUMMARIES, Picture, Shown, symbol
from ggdln.study.panels._grid import edges, round_values
from ggdln.study.schematics import DRAWINGS

CURVES = {"kind": "curves", "quantity": "bias", "x": "N", "xscale": "log", "legend": True}
CURVES["series"] = [{"experiment": "e", "method": "gd"}]


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
    ax = Canvas().subplots()
    REGISTRIES["panel"].make(CURVES | changes).draw(ax, {"e/gd": data}, {})
    marks = {
        line.get_label(): list(line.get_xdata()) for line in ax.lines if line.get_marker() in ("o", "x") and line.get_label()
    }
    return [text.get_text() for text in ax.get_legend().get_texts()], marks


def at(*places):
    """A (3, 4) array that is 1 at (draw, width) in `places`."""
    array = np.zeros((3, 4), int)
    for place in places:
        array[place] = 1
    return array


def test_nothing_is_marked_where_all_went_well():
    labels, _ = drawn(dataset())
    assert labels == [style.look("gd").label]


@pytest.mark.parametrize(
    ("changes", "label"),
    [
        ({"runs_failed": at((1, 2))}, "runs failed"),
        ({"runs_at_floor": at((0, 2))}, "at training floor"),
        ({"mixed": at((2, 2)) == 0}, "not mixed"),
        ({"trusted": at((2, 2)) == 0}, "1/N correction in doubt"),
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


def test_a_theory_has_no_caveats():
    assert all(caveat.flag(dataset()[["bias"]]) is None for caveat in CAVEATS.values())


def test_the_error_bar_counts_the_draws_that_are_there():
    values = dataset().bias.where(dataset().draw < 2)
    mean, low, _ = SUMMARIES["mean"].of(values)
    expected = values.isel(draw=slice(2)).std("draw", ddof=1) / np.sqrt(2)
    np.testing.assert_allclose(mean - low, expected)


def lines_of(*series):
    """Label, colour and style of the lines of a panel with some series."""
    ax, data = Canvas().subplots(), {f"{e}/{m}": dataset() for e in ("one_side", "other") for m in ("theory", "gp")}
    data["both/theory"] = xr.concat([dataset(), dataset()], xr.Variable("L", [1, 2]))
    REGISTRIES["panel"].make(CURVES | {"series": list(series)}).draw(ax, data, {})
    return [(line.get_label(), line.get_color(), line.get_linestyle()) for line in ax.get_legend().get_lines()]


def test_lines_of_the_same_method_differ_in_colour_and_name():
    experiments = [{"experiment": e, "method": m} for e in ("one_side", "other") for m in ("theory", "gp")]
    found = lines_of(*experiments)
    assert [label for label, *_ in found] == [
        "theory, one side",
        "infinite width, one side",
        "theory, other",
        "infinite width, other",
    ]
    assert len(set(found)) == 4
    assert [colour for _, colour, _ in found] == [style.BLUE, style.BLUE, style.ORANGE, style.ORANGE]
    assert [look for *_, look in found] == ["-", "--", "-", "--"]
    held = [{"experiment": "both", "method": "theory", "select": {"L": L}} for L in (1, 2)]
    assert [label for label, *_ in lines_of(*held)] == ["theory, $L$ = 1", "theory, $L$ = 2"]
    # Nothing changes where methods differ, or where names are given.
    alone = [{"experiment": "one_side", "method": "theory"}, {"experiment": "other", "method": "gp"}]
    assert lines_of(*alone) == [("theory", style.INK, "-"), ("infinite width", style.BLUE, "--")]
    named = [{"experiment": e, "method": "theory", "name": e, "colour": "red"} for e in ("one_side", "other")]
    assert [line[:2] for line in lines_of(*named)] == [("one_side", style.RED), ("other", style.RED)]


def test_a_matrix_with_values_below_zero_has_a_scale_with_both_signs():
    values = xr.DataArray(np.array([[1.0, -2.0], [0.5, 3.0]]), dims=("row", "column"))
    assert (Picture(values, 2.5).least, Picture(values, 2.5).is_clipped) == (-2.5, True)
    assert (Picture(np.abs(values), 3.0).least, Picture(np.abs(values), 3.0).is_clipped) == (0, False)
    assert Picture(values, 2.5, blocks=2).cuts == [0.5]


def test_a_panel_says_which_curves_and_variables_it_reads():
    panel = CURVES | {"series": [{"experiment": "e", "method": "gd", "hue": "L", "select": {"M": 5}}]}
    layout = figure(a=panel, b={"kind": "drawing", "of": "architecture"})
    assert layout.shown() == [Shown("e", "gd", {"x": "N", "hue": "L"}, {"M": 5}, ("bias",), single=True)]


def test_axes_have_their_symbols():
    assert [symbol(axis) for axis in ("M", "sigma", "unheard_of")] == ["$M$", r"$\sigma$", "unheard_of"]


def test_a_method_without_a_look_of_its_own_has_its_name():
    assert style.look("unheard_of").label == "unheard_of"


def test_a_drawing_that_is_not_there_is_refused_with_those_that_are():
    with pytest.raises(InputError, match=r"panel.of = 'two_task'; accepted: architecture, .*did you mean 'two_tasks'\?"):
        REGISTRIES["panel"].make({"kind": "drawing", "of": "two_task"})


def figure(**panels):
    return Figure.make({"caption": "c", "size": [6, 2], "mosaic": ["".join(panels)], "panels": panels})


def test_a_figure_is_made_again_from_its_plain_values():
    layout = figure(a=CURVES | {"ylim": [0, 12.5]}, b=CURVES | {"label": "", "title": "two"})
    assert Figure.make(layout.spec()) == layout
    assert layout.letters() == {"a": "a", "b": "a"}


def test_letters_and_titles_stand_above_the_panels():
    layout = figure(a=CURVES, b=CURVES | {"label": "", "title": "two"}, c={"kind": "drawing", "of": "two_tasks"})
    axes = compose(layout, {"e/gd": dataset()}, {}).axes
    assert [ax.get_title(loc="left") for ax in axes] == ["a", "", "c"]
    assert [ax.get_title() for ax in axes] == ["", "two", ""]


@pytest.mark.parametrize("name", DRAWINGS)
def test_drawings_stay_within_their_frame(name):
    drawing = compose(figure(a={"kind": "drawing", "of": name}), {}, {})
    (ax,) = drawing.axes
    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    assert len(ax.lines) > 20
    for line in ax.lines:
        x, y = line.get_data()
        assert left <= min(x) <= max(x) <= right
        assert bottom <= min(y) <= max(y) <= top


HEATMAP = {
    "kind": "heatmap",
    "experiment": "e",
    "method": "gd",
    "quantity": "bias",
    "x": "N",
    "y": "sigma",
    "xscale": "log",
    "yscale": "log",
}


def plane(**changes):
    """Two draws on a plane of three widths and four priors, in no order; the least bias is at N = 20, sigma = 1."""
    width, sigma = np.array([100, 20, 5]), np.array([0.1, 1.0, 10.0, 100.0])
    bias = 0.01 + np.abs(np.log(width / 20))[:, None] + np.abs(np.log(sigma))
    values = {"bias": np.stack([0.9 * bias, 1.1 * bias]), "rank": np.broadcast_to(width[:, None] * sigma, (2, 3, 4))}
    data = xr.Dataset({name: (("draw", "N", "sigma"), value) for name, value in (values | changes).items()})
    return data.assign_coords(draw=range(2), N=width, sigma=sigma)


def heatmap(data=None, **changes):
    """The axes, the page and the table of a heatmap."""
    layout, data = figure(a=HEATMAP | changes), {"e/gd": plane() if data is None else data}
    panel = layout.panels["a"]
    return compose(layout, data, {}).axes, panel.graph(data, {}), panel.table(data, {})


def test_cells_of_a_heatmap_meet_halfway_on_their_scale():
    np.testing.assert_allclose(edges([1, 10, 100], "log"), 10 ** np.array([-0.5, 0.5, 1.5, 2.5]))
    np.testing.assert_allclose(edges([0, 1, 3], "linear"), [-0.5, 0.5, 2, 4])
    (ax, bar), _, _ = heatmap()
    cells = ax.collections[0]
    np.testing.assert_allclose(np.log10(cells.get_coordinates()[:, 0, 1]), [-1.5, -0.5, 0.5, 1.5, 2.5])
    expected = plane().bias.mean("draw").sortby("N").transpose("sigma", "N")
    np.testing.assert_allclose(cells.get_array(), expected)
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["5", "20", "100"]
    assert bar.get_ylabel() == "bias"


@pytest.mark.parametrize(("low", "high", "scale", "expected"), [
    (0.03, 0.41, "log", [0.03, 0.05, 0.1, 0.2, 0.3]),
    (0.5, 2e6, "log", [1, 10, 100, 1e3, 1e4, 1e5, 1e6]),
    (0.31, 0.38, "log", [0.31, 0.32, 0.33, 0.34, 0.35, 0.36, 0.37, 0.38]),
    (0.0, 0.41, "linear", [0, 0.1, 0.2, 0.3, 0.4]),
    (-3, 12, "linear", [0, 5, 10]),
])  # fmt: skip
def test_ticks_are_round(low, high, scale, expected):
    np.testing.assert_allclose(round_values(low, high, scale, 8 if scale == "log" else 6), expected)


def test_the_best_point_of_any_quantity_is_marked_and_told():
    (ax, _), graph, (head, *rows) = heatmap(best={"by": "bias"})
    assert [(*line.get_xdata(), *line.get_ydata()) for line in ax.lines] == [(20, 1)]
    assert "★ least bias: $N$ = 20, $\\sigma$ = 1" in ax.get_xlabel()
    assert "edge" not in ax.get_xlabel()
    assert (graph.data[-1].x[0], graph.data[-1].y[0], graph.data[-1].name) == (20, 1, "least bias: <i>N</i> = 20, σ = 1")
    told = {(row[head.index("N")], row[head.index("sigma")]) for row in rows if row[head.index("best")]}
    assert told == {("20", "1")}
    (ax, _), _, _ = heatmap(best={"by": "rank", "largest": True})
    assert (*ax.lines[0].get_xdata(), *ax.lines[0].get_ydata()) == (100, 100)
    assert "$\\sigma$ = 100, at the edge" in ax.get_xlabel()
    evidence = {"log_evidence": -plane().bias.values}
    (ax, _), _, _ = heatmap(plane(**evidence), best={"by": "log_evidence"})
    assert (*ax.lines[0].get_xdata(), *ax.lines[0].get_ydata()) == (20, 1)
    assert "★ largest evidence" in ax.get_xlabel()
    panel = REGISTRIES["panel"].make(HEATMAP | {"best": {"by": "rank", "largest": True}})
    assert panel.heading() == "bias, star: largest rank of the kernel matrix"


def test_colours_may_be_logarithmic_with_contours():
    (ax, bar), graph, _ = heatmap(scale="log", contours=4)
    cells = ax.collections[0]
    assert type(cells.norm).__name__ == "LogNorm"
    levels = list(ax.collections[1].levels)
    assert 2 <= len(levels) <= 4
    assert [trace.name for trace in graph.data[1:]] == [f"{level:g}" for level in levels]
    np.testing.assert_allclose(10 ** np.asarray(graph.data[0].z), np.asarray(cells.get_array()), rtol=1e-6)
    assert graph.data[0].colorbar.ticktext == tuple(tick.get_text() for tick in bar.get_yticklabels())


def test_the_change_along_a_third_axis_has_a_line_where_it_turns():
    first = np.array([1.0, 2.0, 3.0])[:, None] * np.ones(4)
    last = first * (1 + np.array([-0.5, 0.0, 0.2])[:, None] + np.zeros(4))
    data = xr.Dataset({"bias": (("draw", "T", "N", "sigma"), np.stack([[first, 7 * last, last]] * 2))})
    data = data.assign_coords(draw=range(2), T=[1.0, 2.0, 3.0], N=[5, 20, 100], sigma=[0.1, 1.0, 10.0, 100.0])
    (ax, bar), graph, _ = heatmap(data, change="T")
    np.testing.assert_allclose(ax.collections[0].get_array(), np.tile([-0.5, 0.0, 0.2], (4, 1)), atol=1e-12)
    assert ax.collections[0].get_clim() == (-0.5, 0.5)
    assert list(ax.collections[1].levels) == [0.0]
    assert bar.get_ylabel() == "change of bias along $T$"
    assert graph.data[0].zmin == -graph.data[0].zmax


def test_cells_that_need_a_word_have_it():
    lost = plane().bias.values.copy()
    lost[:, 2, 3] = np.nan
    failed = np.zeros((2, 3, 4), int)
    failed[1, 0, 0] = 1
    (ax, _), graph, (head, *rows) = heatmap(plane(bias=lost, runs_failed=failed))
    places = {line.get_marker(): (*line.get_xdata(), *line.get_ydata()) for line in ax.lines}
    assert places == {"o": (100, 0.1), "x": (5, 100)}
    assert {"runs failed", "no run usable"} <= {trace.name for trace in graph.data}
    assert [row[3:5] for row in rows if row[head.index("caveats")] == "runs failed"] == [["100", "0.1"]]


def test_texts_along_an_axis_are_cells_of_equal_size():
    data = plane().assign_coords(N=["wide", "middle", "narrow"])
    (ax, _), _, (head, *rows) = heatmap(data, xscale="linear")
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["wide", "middle", "narrow"]
    assert rows[0][head.index("N")] == "wide"


def test_a_curve_without_the_quantity_says_what_it_has():
    with pytest.raises(InputError, match="gd of e doesn't measure block_ratio here; accepted: bias, rank"):
        heatmap(quantity="block_ratio")


def test_the_caption_is_in_the_files_and_may_stand_under_the_figure(tmp_path):
    caption = "A caption of many words, with N_0 and (a) parentheses, that needs more than one line. " * 4
    layout = figure(a=CURVES | {"legend": False})
    plain, told = (
        compose(Figure.make(layout.spec() | {"caption": caption, "show_caption": show}), {"e/gd": dataset()}, {})
        for show in (False, True)
    )
    (text,) = told.texts
    assert " ".join(text.get_text().split()) == caption.strip()
    box = text.get_window_extent()
    assert 0 <= box.x0 < box.x1 <= told.bbox.width
    assert 0 <= box.y0 < box.y1 <= told.axes[0].get_tightbbox().y0
    assert plain.texts == []
    # The panels keep their size.
    np.testing.assert_allclose(*(one.axes[0].get_position().height * one.get_figheight() for one in (plain, told)), rtol=0.02)
    for name in ("one", "other"):
        style.save(told, tmp_path / f"{name}.pdf", tmp_path / f"{name}.png", "fig", caption, ["ggdln", "e"])
    for suffix in ("pdf", "png"):
        assert (tmp_path / f"one.{suffix}").read_bytes() == (tmp_path / f"other.{suffix}").read_bytes()
    written = (tmp_path / "one.pdf").read_bytes()
    assert b"/Subject (A caption of many words, with N_0 and \\(a\\) parentheses" in written
    assert b"/Keywords (ggdln, e)" in written
    assert Image.open(tmp_path / "one.png").text["Description"] == caption


OWN = """
from ggdln.core.kinds import Look
from ggdln.study.panels import Line, OneCurve, Panel


class Twice(OneCurve):
    factor: float = 2.0

    def paint(self, canvas, data, experiments):
        values = self.factor * self.dataset(data).bias
        canvas.axes("width", "bias, scaled")
        canvas.lines([Line(self.experiment, self.method, "N", Look("scaled", "teal", "-"), values)])


class Cross(Panel):
    def draw(self, ax, data, experiments):
        ax.plot([0, 1], [0, 1])
"""


@pytest.fixture
def own_kinds(tmp_path):
    (tmp_path / "own.py").write_text(OWN)
    yield add_file(tmp_path / "own.py")
    REGISTRIES["panel"].added.clear()


def test_a_kind_from_a_file_is_shown_in_print_on_the_page_and_as_a_table(own_kinds):
    assert own_kinds == [("panel", "twice"), ("panel", "cross")]
    layout, data = figure(a={"kind": "twice", "experiment": "e", "method": "gd"}, b={"kind": "cross"}), {"e/gd": dataset()}
    mean = 2 * dataset().bias.mean("draw")
    np.testing.assert_allclose(compose(layout, data, {}).axes[0].lines[0].get_ydata(), mean)
    panel = layout.panels["a"]
    np.testing.assert_allclose(panel.graph(data, {}).data[-1].y, mean)
    head, *rows = panel.table(data, {})
    assert [float(row[head.index("mean")]) for row in rows] == mean.values.tolist()
    assert (layout.panels["b"].graph(data, {}), layout.panels["b"].table(data, {})) == (None, None)


def test_layouts_are_read_without_the_packages_that_draw():
    program = (
        "import sys, ggdln.study.compose; from ggdln.core.kinds import REGISTRIES as r;"
        "[r['panel'].get(name) for name in r['panel'].names()];"
        "print({'matplotlib', 'plotly', 'markdown_it', 'markupsafe', 'torch'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
