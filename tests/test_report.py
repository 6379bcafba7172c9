"""The report: what it says, and how it behaves in a real browser.

The page is made from invented numbers for a figure of each kind and from invented verdicts (tests/data/claims.json). With
REPORT_PAGE=figures/report.html the tests in the browser look at a finished page instead.
"""

import csv
import io
import json
import os
import re
import time
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure as Canvas

from ggdln.experiments import store
from ggdln.study import words
from ggdln.study.compose import Figure
from ggdln.study.panels._text import formula
from ggdln.study.report import page, text

pytestmark = pytest.mark.xdist_group("report")

CLAIMS = json.loads((Path(__file__).parent / "data/claims.json").read_text())
PATIENCE = 120
"""Seconds that a busy machine may need for one step."""


def curves(experiment, methods, quantity, x, **more):
    series = [{"experiment": experiment, "method": method} for method in methods]
    return {"kind": "curves", "series": series, "quantity": quantity, "x": x} | more


ALL = ("theory", "gp", "gd")
WIDTH = {"xscale": "log", "title": "no preference"}
U1 = {"kind": "matrix", "experiment": "teacher_preferred", "method": "theory", "quantity": "order_parameter", "amplitude": True}
PROFILE = {"kind": "kernel_profile", "experiment": "kernel_angle", "method": "gp"}
PANELS = {
    "fig1": {
        "a": {"kind": "drawing", "of": "architecture"},
        "b": curves("capacity", (), "training_error", "M", xscale="log", capacity=True)
        | {"series": [{"experiment": "capacity", "method": "gp", "hue": "L"}]},
    },
    "fig2": {
        "a": {"kind": "drawing", "of": "teachers_and_student"},
        "b": curves("teacher_regular", ALL, "bias", "N", **WIDTH),
        "B": curves("teacher_regular", ALL, "variance", "N", label="", **WIDTH),
        "d": U1 | {"select": {"N": 25}, "blocks": 2, "title": "$|U_1|$, $N = 25$"},
        "D": U1 | {"select": {"N": 100}, "label": ""},
        "e": curves("teacher_preferred", ["theory"], "block_ratio", "N"),
    },
    "fig5": {
        "a": {"kind": "densities", "experiment": "depth", "method": "theory", "quantity": "kernel_histogram", "hue": "L"}
        | {"yscale": "log", "xlim": [-0.4, 1.0], "ylim": [0.01, 100]},
        "d": curves("depth", ["theory"], "bias", "L"),
    },
    "fig7": {
        "b": {"kind": "matrix", "experiment": "conflicting", "method": "gd", "quantity": "kernel_picture", "select": {"N": 25}}
    },
    "figS1": {"a": curves("double_descent", ["gd"], "bias", "M", yscale="log", summary="median", capacity=True)},
    "figS5": {"a": PROFILE | {"select": {"M": 5}, "title": "$M = 5$"}, "d": PROFILE | {"limit": True}},
}
AXES = {
    "capacity": {"M": [2, 5, 10], "L": [1, 2, 3]},
    "teacher_regular": {"N": [25, 50, 100]},
    "teacher_preferred": {"N": [25, 50, 100]},
    "depth": {"L": [1, 2, 3]},
    "conflicting": {"N": [25, 100]},
    "double_descent": {"M": [2, 5, 10]},
    "kernel_angle": {"M": [5, 50], "L": [0, 1, 2]},
}
FURTHER = {
    "order_parameter": {"gate": range(6), "gate2": range(6)},
    "kernel_picture": {"row": range(6), "column": range(6)},
    "kernel_histogram": {"kernel_element": np.linspace(-0.4, 1, 9)},
    "kernel_profile": {"theta": np.linspace(-np.pi, np.pi, 9)},
}
TEACHER = {"kind": "noisy_teacher", "N0": 10, "P": 60, "P_t": 20, "N_T": 5, "gamma": 0.1, "epsilon": 0.1}
EXPERIMENT = {"task": TEACHER, "network": {"L": 1}}
PARAMETERS = {
    "paper": [{"key": "network.N", "value": 200, "meaning": "Width N of the hidden layers"}],
    "assumed": [
        {"key": "task.normalization", "value": "pixel", "meaning": "How pixels are centred and scaled"},
        {"key": "methods.gp", "value": {}, "meaning": "Infinite-width limit"},
    ],
    "reduced": [{"key": "N (swept)", "value": [25, 50, 100], "meaning": "Width N of the hidden layers"}],
}
COST = {"jobs": 7, "measured": 2, "wall": 180.0, "cpu": 120.0, "memory": 200.0, "predicted": 90.0, "predicted_all": 4321.0}


def invented(layout, rng):
    """Numbers for all that a figure shows, three draws of each; the first point of a simulation failed once."""
    data = {}
    for shown in layout.shown():
        axes = {axis: v for axis, v in AXES[shown.experiment].items() if (shown.method, axis) != ("gp", "N")}
        dims, shape = ("draw", *axes), (3, *map(len, axes.values()))
        found = data.setdefault(f"{shown.experiment}/{shown.method}", xr.Dataset(coords={"draw": range(3)} | axes))
        for name in shown.variables:
            more = FURTHER.get(name, {})
            values = (
                0.1 + rng.random((*shape, *map(len, more.values())))
                if name != "kernel_picture"
                else rng.normal(size=(*shape, 6, 6))
            )
            found[name] = xr.DataArray(values, dims=(*dims, *more), coords={k: v for k, v in more.items() if len(more) == 1})
        if shown.method == "gd":
            failed = np.zeros(shape, int)
            failed.reshape(3, -1)[1, 0] = 1
            found["runs_failed"] = dims, failed
    return data


@pytest.fixture(scope="module")
def entries(tmp_path_factory):
    """What a page is made from, for each figure."""
    folder, rng, made = tmp_path_factory.mktemp("report"), np.random.default_rng(1), []
    for name, panels in PANELS.items():
        layout = Figure.make({"caption": f"What {name} shows.", "size": [6, 3], "mosaic": ["".join(panels)], "panels": panels})
        numbers, picture = folder / f"{name}.nc", folder / f"{name}.png"
        store.write(invented(layout, rng), numbers, provenance={"seed": [2022], "data_source": "invented"})
        Canvas(figsize=layout.size).savefig(picture, dpi=20)
        experiments = {shown.experiment: EXPERIMENT for shown in layout.shown()}
        made.append(page.Entry(name, layout, numbers, picture, experiments, {"teacher": PARAMETERS}, COST))
    return {entry.name: entry for entry in made}


@pytest.fixture(scope="module")
def html(entries):
    return page.render(entries.values(), CLAIMS)


def shown_in(entries, figure, letter):
    """A panel of a figure and its numbers."""
    return entries[figure].layout.panels[letter], store.groups(entries[figure].numbers)


# What the page says


def test_the_same_parts_give_the_same_page(entries, html):
    assert page.render(list(entries.values()), CLAIMS) == html


def test_every_verdict_is_counted_once(html):
    found = [claim["outcome"] for claim in CLAIMS["claims"]]
    assert set(found) == set(words.OUTCOMES)
    for outcome in words.OUTCOMES:
        assert re.search(rf'value="{outcome}" checked>.*\({found.count(outcome)}\)', html)


def test_every_source_is_told_in_words(html):
    for source in {claim["source"] for claim in CLAIMS["claims"]}:
        assert f"<dd>{words.SOURCES[source]}</dd>" in html


def test_a_graph_has_the_summary_and_the_rings_of_the_picture(entries):
    panel, data = shown_in(entries, "fig2", "b")
    traces = {trace.name: trace for trace in panel.graph(data, {}).data if (trace.meta or {}).get("look")}
    simulated = data["teacher_regular/gd"].bias
    np.testing.assert_allclose(traces["gradient descent"].y, simulated.mean("draw"), rtol=1e-6)
    np.testing.assert_allclose(traces["gradient descent"].error_y.array, simulated.std("draw", ddof=1) / np.sqrt(3), rtol=1e-5)
    np.testing.assert_allclose(traces["theory"].y, data["teacher_regular/theory"].bias.mean("draw"), rtol=1e-6)
    assert list(traces["runs failed"].x) == [simulated.N.values[0]]


def test_a_median_is_shown_with_its_quartiles(entries):
    panel, data = shown_in(entries, "figS1", "a")
    values = data["double_descent/gd"].bias
    (trace,) = (t for t in panel.graph(data, entries["figS1"].experiments).data if t.name == "gradient descent")
    np.testing.assert_allclose(trace.y, values.median("draw"), rtol=1e-6)
    np.testing.assert_allclose(trace.y + trace.error_y.array, values.quantile(0.75, "draw"), rtol=1e-5)
    np.testing.assert_allclose(trace.y - trace.error_y.arrayminus, values.quantile(0.25, "draw"), rtol=1e-5)


def test_capacity_is_marked_for_each_depth(entries):
    panel, data = shown_in(entries, "fig1", "b")
    marks = [t for t in panel.graph(data, entries["fig1"].experiments).data if t.name.startswith("capacity: ")]
    assert [mark.name for mark in marks][:1] == ["capacity: M = 6"]  # P / N_0
    assert len(marks) == 3


def test_the_numbers_of_a_panel_are_those_of_its_lines(entries):
    panel, data = shown_in(entries, "fig2", "b")
    uri = page.csv_uri(panel.table(data, {}))
    rows = list(csv.DictReader(io.StringIO(unquote(uri.partition(",")[2]))))
    for method in ALL:
        own, values = [row for row in rows if row["method"] == method], data[f"teacher_regular/{method}"].bias
        np.testing.assert_allclose([float(row["mean"]) for row in own], np.atleast_1d(values.mean("draw")), rtol=1e-4)
        np.testing.assert_allclose([float(row["draw 1"]) for row in own], np.atleast_1d(values[1]), rtol=1e-4)
    assert [row["caveats"] for row in rows if row["method"] == "gd"][:2] == ["runs failed", ""]
    assert [row["N"] for row in rows if row["method"] == "gp"] == ["any"]


def test_the_numbers_of_a_matrix_are_its_rows(entries):
    panel, data = shown_in(entries, "fig2", "d")
    head, *rows = panel.table(data, {})
    assert head == ["gate / gate2", *range(6)]
    expected = data["teacher_preferred/theory"].order_parameter.isel(draw=0).sel(N=25)
    np.testing.assert_allclose([[float(value) for value in row[1:]] for row in rows], np.abs(expected), rtol=1e-3)


def test_parameters_of_the_paper_and_assumed_ones_stand_apart(html):
    section = re.search(r'<section id="fig2".*?</section>', html, re.S).group()
    tables = dict(re.findall(r'<table class="parameters (\w+)">(.*?)</table>', section, re.S))
    assert list(tables) == ["paper", "assumed", "reduced"]
    assert "network.N" in tables["paper"]
    assert "task.normalization" in tables["assumed"]
    assert "How pixels are centred and scaled" in tables["assumed"]
    assert "<td>on</td>" in tables["assumed"]
    assert "<td>25, 50, 100</td>" in tables["reduced"]


def test_the_page_tells_what_the_jobs_of_a_figure_took(html):
    told = " ".join(re.search(r'<tr><th scope="row">runtime</th><td>(.*?)</td>', html, re.S)[1].split())
    assert "3 min of wall time, 2 min of CPU time, summed over the 2 of 7 jobs" in told
    assert "predicted for these: 1.5 min" in told
    assert "largest job 200 MB" in told


@pytest.mark.parametrize(
    ("value", "error", "shown"),
    [(-0.3123, 0.0217, "−0.312 ± 0.022"), (41.23, 6.3, "41.2 ± 6.3"), (1200.0, 150.0, "1200 ± 150"), (2.0, None, "2"),
     (3e-7, 2e-8, "3e−07 ± 2e−08"), (None, None, "–"), (0.5, 0.0, "0.5")],
)  # fmt: skip
def test_errors_have_two_digits(value, error, shown):
    assert words.with_error(value, error) == shown


@pytest.mark.parametrize(
    ("tex", "shown"),
    [
        ("number of gates $M$", "number of gates <i>M</i>"),
        (r"prior standard deviation $\sigma$", "prior standard deviation σ"),
        ("$|U_1|$, $N = 25$", "|<i>U</i><sub>1</sub>|, <i>N</i> = 25"),
        (r"$M \to \infty$", "<i>M</i> → ∞"),
        ("a < b", "a &lt; b"),
    ],
)
def test_formulas_become_html(tex, shown):
    assert formula(tex) == shown


def test_symbols_have_their_index_in_prose():
    assert text.prose("N_0 < U_1, teacher_regular") == "N<sub>0</sub> &lt; U<sub>1</sub>, teacher_regular"


def test_findings_may_link_within_the_page_only_and_hold_no_html():
    shown = text.markdown("A **b** [here](#fig2), [there](docs/x.md) <script>alert(1)</script>")
    assert '<a href="#fig2">here</a>, there' in shown
    assert "<b" not in shown.replace("<b>", "")
    assert "<script" not in shown


# In the browser


@pytest.fixture(scope="module")
def address(request, tmp_path_factory):
    finished = os.environ.get("REPORT_PAGE")
    if finished:
        return Path(finished).resolve().as_uri()
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(request.getfixturevalue("html"))
    return path.as_uri()


@pytest.fixture(scope="module")
def open_page(browser, address):
    """A function that opens the page in a new tab; what went wrong on it meanwhile is in its list `problems`."""

    def opened(width=1280, height=900, **settings):
        context = browser.new_context(viewport={"width": width, "height": height}, accept_downloads=True, **settings)
        context.set_default_timeout(1000 * PATIENCE)
        tab = context.new_page()
        tab.problems = []
        tab.on("console", lambda message: tab.problems.append(message.text) if message.type in ("error", "warning") else None)
        tab.on("pageerror", lambda error: tab.problems.append(str(error)))
        tab.on(
            "request",
            lambda request: (
                tab.problems.append(request.url) if not request.url.startswith(("file:", "data:", "blob:")) else None
            ),
        )
        tab.goto(address, wait_until="load")
        return tab

    return opened


@pytest.fixture(scope="module")
def tab(open_page):
    """One tab for all tests that leave the page as they found it."""
    return open_page()


@pytest.fixture(scope="module")
def phone(open_page):
    """A small screen for fingers, with all that can be opened open."""
    tab = open_page(360, 740, is_mobile=True, has_touch=True)
    tab.locator("#unfold").click()
    tab.evaluate("document.querySelectorAll('details').forEach(details => (details.open = true))")
    return tab


@pytest.fixture
def fresh(open_page):
    """A tab of its own, for a test that changes what the page shows."""
    tab = open_page()
    yield tab
    tab.context.close()


@pytest.fixture
def seen_as(tab):
    """A function that shows the shared tab in light or dark and in some width, until the test ends."""

    def shown(scheme, width=1280):
        tab.set_viewport_size({"width": width, "height": 900})
        tab.emulate_media(color_scheme=scheme)
        tab.locator("#graph-fig2-1").scroll_into_view_if_needed()
        dark = {"light": "false", "dark": "true"}[scheme]
        wait(tab, f"matchMedia('(prefers-color-scheme: dark)').matches === {dark}")
        wait(tab, "document.querySelector('#graph-fig2-1 .main-svg') !== null")
        return tab

    yield shown
    shown("light")


def wait(tab, condition):
    """Until a JavaScript expression is true. The page forbids evaluation of text, which Playwright's own wait needs."""
    end = time.monotonic() + PATIENCE
    while not tab.evaluate(condition):
        assert time.monotonic() < end, condition
        tab.wait_for_timeout(50)


def draw_all(tab, within="main"):
    """Scroll through a part of the page until every graph is drawn."""
    for graph in tab.locator(f"{within} .graph:visible").all():
        graph.scroll_into_view_if_needed()
    wait(
        tab,
        f"[...document.querySelectorAll('{within} .graph')].every(g => !g.checkVisibility() || g.querySelector('.main-svg'))",
    )


def shown_claims(tab):
    return tab.locator(".claim:visible").evaluate_all("rows => rows.map(row => row.dataset)")


def test_all_figures_show_without_network_or_errors(tab):
    pictures = tab.locator("section.figure img")
    assert pictures.count() == len(PANELS) or "REPORT_PAGE" in os.environ
    assert all(
        pictures.evaluate_all("images => images.map(image => image.complete && image.naturalWidth > 0 && image.alt !== '')")
    )
    draw_all(tab)
    empty = tab.locator(".graph:visible").evaluate_all(
        "graphs => graphs.filter(g => !g.querySelector('.scatterlayer .trace, .heatmaplayer image')).map(g => g.id)"
    )
    assert empty == []
    assert tab.problems == []


def test_filters_by_figure_verdict_and_words(fresh):
    tab = fresh
    everything = shown_claims(tab)
    tab.select_option("select[name=figure]", "fig2")
    assert shown_claims(tab) == [claim for claim in everything if claim["figure"] == "fig2"]
    tab.locator("#filters button[type=reset]").click()
    wait(tab, f"document.querySelectorAll('.claim:not([hidden])').length === {len(everything)}")
    for outcome in ("holds", "partly", "untestable"):
        tab.uncheck(f"#filters input[value={outcome}]")
    failing = shown_claims(tab)
    assert failing == [claim for claim in everything if claim["outcome"] == "fails"]
    assert tab.locator("#count").inner_text() == f"{len(failing)} of {len(everything)} statements"
    tab.fill("input[type=search]", "no such words")
    assert shown_claims(tab) == []
    assert tab.locator("#nothing").is_visible()


def test_details_open_by_keyboard_and_by_link(fresh):
    tab = fresh
    first = tab.locator(".claim").first
    assert not first.locator(".more").is_visible()
    first.locator(".fold").focus()
    tab.keyboard.press("Enter")
    assert first.locator(".more").is_visible()
    assert "Passes if" in first.locator(".more").inner_text()
    # A link to a statement that the filters hide shows it.
    tab.fill("input[type=search]", "no such words")
    link = tab.locator("ul.verdicts a").last
    link.click()
    target = tab.locator(link.get_attribute("href"))
    target.locator(".more").wait_for(state="visible")
    assert tab.evaluate("document.activeElement.className") == "fold"


def test_every_control_is_reached_by_tab_with_a_visible_focus(fresh):
    tab = fresh
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.className") == "skip"
    assert tab.evaluate("document.activeElement.getBoundingClientRect().left >= 0")
    controls = "#filters :is(select, input, button), nav a, .overview a, .fold, #fig1 a"
    wanted = tab.locator(controls).evaluate_all("all => all.filter(e => e.checkVisibility()).length")
    reached = 0
    for _ in range(3 * wanted):
        tab.keyboard.press("Tab")
        known, outline, done = tab.evaluate(
            "controls => { const e = document.activeElement; const style = getComputedStyle(e);"
            " return [e.matches(controls), style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 1, e.closest('#fig2') !== null]; }",
            controls,
        )
        assert outline, tab.evaluate("document.activeElement.outerHTML.slice(0, 200)")
        reached += known
        if done:
            break
    assert reached == wanted


def test_the_legend_switches_theory_and_simulation_in_all_panels(fresh):
    tab = fresh
    draw_all(tab, "#fig2")
    visible = (
        "key => [...document.querySelectorAll('.graph[data-of=fig2]')].flatMap(g => g.data)"
        ".filter(trace => trace.meta && trace.meta.key === key).map(trace => trace.visible)"
    )
    assert set(tab.evaluate(visible, "gradient descent")) == {True}
    box = tab.locator('.legend[data-of=fig2] input[value="gradient descent"]')
    box.focus()
    tab.keyboard.press("Space")
    wait(tab, f"!({visible})('gradient descent').includes(true)")
    assert set(tab.evaluate(visible, "theory")) == {True}
    tab.emulate_media(color_scheme="dark")
    tab.wait_for_timeout(500)
    assert set(tab.evaluate(visible, "gradient descent")) == {False}
    box.check()
    wait(tab, f"!({visible})('gradient descent').includes(false)")


def test_graphs_zoom_by_mouse_and_by_keyboard_and_show_values(fresh):
    tab = fresh
    graph = tab.locator("#graph-fig2-1")
    graph.scroll_into_view_if_needed()
    wait(tab, "document.querySelector('#graph-fig2-1 .main-svg') !== null")
    span = "(() => { const [a, b] = document.getElementById('graph-fig2-1')._fullLayout.xaxis.range; return b - a; })()"
    before = tab.evaluate(span)
    graph.focus()
    tab.keyboard.press("+")
    wait(tab, f"{span} < 0.9 * {before}")
    tab.keyboard.press("0")
    wait(tab, f"Math.abs({span} - {before}) < 1e-9")
    box = graph.locator(".nsewdrag").bounding_box()
    x, y = box["x"] + box["width"] / 3, box["y"] + box["height"] / 3
    tab.mouse.move(x, y)
    tab.mouse.down()
    tab.mouse.move(x + box["width"] / 3, y + box["height"] / 3, steps=5)
    tab.mouse.up()
    wait(tab, f"{span} < 0.6 * {before}")
    tab.keyboard.press("0")
    point = graph.locator(".scatterlayer .points path").first.bounding_box()
    tab.mouse.move(point["x"] + point["width"] / 2, point["y"] + point["height"] / 2, steps=3)
    graph.locator(".hovertext").wait_for()
    assert "draws" in graph.locator(".hovertext").text_content()


def test_no_link_is_dead(tab):
    links = tab.locator("a[href]").evaluate_all("links => links.map(link => link.getAttribute('href'))")
    assert len(links) > 50
    anchors = {link[1:] for link in links if link.startswith("#")}
    known = set(tab.evaluate("[...document.querySelectorAll('[id]')].map(element => element.id)"))
    assert anchors <= known
    assert all(link.startswith(("#", "data:text/csv")) for link in links)
    ids = tab.evaluate("[...document.querySelectorAll('[id]')].map(element => element.id)")
    assert len(ids) == len(set(ids))


def test_numbers_can_be_downloaded(tab, tmp_path):
    with tab.expect_download() as download:
        tab.locator("#fig2 .download a").first.click()
    assert download.value.suggested_filename.startswith("fig2_b_bias")
    download.value.save_as(tmp_path / "numbers.csv")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "numbers.csv").read_text())))
    assert {row["method"] for row in rows} == {"theory", "gp", "gd"}


@pytest.mark.parametrize("width", [360, 768])
def test_nothing_sticks_out_sideways(phone, width):
    tab = phone
    tab.set_viewport_size({"width": width, "height": 740})
    draw_all(tab, "#fig2")
    wait(tab, f"document.documentElement.scrollWidth <= {width}")
    wide = tab.evaluate(
        "[...document.querySelectorAll('main *, header *')].filter(e => e.checkVisibility() && !e.closest('.hidden, .stacked > thead, svg')"
        " && e.getBoundingClientRect().right > innerWidth + 1).map(e => e.outerHTML.slice(0, 150))"
    )
    assert wide == []
    assert tab.problems == []


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (360, "dark")])
def test_contrast_names_and_structure_pass_axe(seen_as, scheme, width):
    from axe_playwright_python.sync_playwright import Axe

    tab = seen_as(scheme, width)
    tab.locator("#unfold").click()
    found = Axe().run(tab).response["violations"]
    assert [(rule["id"], node["html"][:200]) for rule in found for node in rule["nodes"]] == []
    tab.locator("#unfold").click()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_lines_stand_out_from_the_page(seen_as, scheme):
    tab = seen_as(scheme)
    paper = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    colours = tab.evaluate("document.getElementById('graph-fig2-1').data.filter(t => t.meta.look).map(t => t.line.color)")
    assert len(colours) >= 3
    for colour in colours:
        rgb = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
        back = list(map(int, re.findall(r"\d+", paper)))
        bright, dim = sorted((luminance(rgb), luminance(back)), reverse=True)
        assert (bright + 0.05) / (dim + 0.05) >= 3, colour


def luminance(rgb):
    parts = [c / 255 / 12.92 if c / 255 <= 0.04045 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in rgb]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def test_the_page_is_ready_soon(open_page):
    start = time.monotonic()
    tab = open_page()
    assert tab.locator("#claims").is_visible()
    assert time.monotonic() - start < 20
    tab.context.close()
