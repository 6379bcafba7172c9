"""The report: what it says, and how it behaves in a real browser.

The page is made from small invented numbers for every figure and from invented verdicts (tests/data/claims.json). With
REPORT_PAGE=figures/report.html the tests in the browser look at a finished page instead.
"""

import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pytest
import xarray as xr
import yaml

from ggdln.experiments import store
from ggdln.workflow.config import read_config
from ggdln.study.figures import content, style
from ggdln.study.report import graphs, numbers, page, text

pytestmark = pytest.mark.xdist_group("report")

ROOT = Path(__file__).resolve().parents[1]
CLAIMS = json.loads((ROOT / "tests/data/claims.json").read_text())
CHROMIUM = next((path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None)
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PATIENCE = 120
"""Seconds that a busy machine may need for one step."""

MATRICES = {"order_parameter": ("gate", "gate2"), "task_correlation": ("p", "q"), "kernel_picture": ("row", "column")}
PROFILES = {"kernel_histogram": "kernel_element", "kernel_profile": "theta"}


def invented(curve, quantities, rng):
    """A dataset with the dimensions of a curve and what the panels show of it; the first point of a simulation failed once."""
    axes = {name: list(values) for name, values in curve.axes().items()}
    dims, shape = ("draw", *axes), (3, *map(len, axes.values()))
    variables = {}
    for name in quantities:
        if name in MATRICES:
            variables[name] = ((*dims, *MATRICES[name]), rng.normal(size=(*shape, 6, 6)))
        elif name in PROFILES:
            variables[name] = ((*dims, PROFILES[name]), rng.random((*shape, 9)))
        else:
            variables[name] = (dims, 0.1 + rng.random(shape))
    if curve.method in ("gd", "relu", "posterior", "langevin"):
        failed = np.zeros(shape, int)
        failed.reshape(3, -1)[1, 0] = 1
        variables["runs_failed"] = (dims, failed)
    coordinates = {"kernel_element": np.linspace(-0.4, 1, 9), "theta": np.linspace(-np.pi, np.pi, 9)}
    used = {dim for dims, _ in variables.values() for dim in dims}
    kept = {dim: values for dim, values in coordinates.items() if dim in used}
    return xr.Dataset(variables, coords={"draw": range(3)} | axes | kept)


def quick_configuration():
    raw = {}
    for name in ("config", "figures", "claims", "quick"):
        path = ROOT / f"config/{name}.yaml"
        if path.exists():
            merge(raw, yaml.safe_load(path.read_text()))
    return raw, yaml.safe_load((ROOT / "workflow/schemas/config.schema.yaml").read_text())


def merge(into, other):
    for key, value in other.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            merge(into[key], value)
        else:
            into[key] = value


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """What a page is made from: configuration, schema, numbers and pictures by figure."""
    folder, rng = tmp_path_factory.mktemp("report"), np.random.default_rng(1)
    raw, schema = quick_configuration()
    config = read_config(raw, schema)
    files, pictures = {}, {}
    for figure, layout in config.figures.items():
        wanted = {"kernel_profile"} if figure == "figS5" else set()
        wanted |= {panel["quantity"] for panel in layout["panels"].values() if "quantity" in panel}
        data = {f"{e.name}/{c.method}": invented(c, wanted, rng) for e in config.experiments_of(figure) for c in e.curves()}
        files[figure], pictures[figure] = folder / f"{figure}.nc", folder / f"{figure}.png"
        store.write(data, files[figure], provenance={"seed": [config.seed], "data_source": "invented"})
        drawn = style.plt.figure(figsize=layout["size"])
        drawn.savefig(pictures[figure], dpi=20)
        style.plt.close(drawn)
    return raw, schema, files, pictures


@pytest.fixture(scope="module")
def html(parts):
    raw, schema, files, pictures = parts
    return page.render(raw, schema, CLAIMS, files, pictures, benchmarks=ROOT / "no benchmarks")


# What the page says


def test_the_same_parts_give_the_same_page(parts, html):
    raw, schema, files, pictures = parts
    assert page.render(raw, schema, CLAIMS, files, pictures, benchmarks=ROOT / "no benchmarks") == html


def test_every_verdict_is_counted_once():
    found = [page.outcome(claim) for claim in CLAIMS["claims"]]
    assert set(found) == set(page.OUTCOMES)
    assert page.outcome({"id": "a", "verdict": "holds in 7 of 12"}) == "partly"
    with pytest.raises(ValueError, match="claim a: verdict 'perhaps'; accepted: holds"):
        page.outcome({"id": "a", "verdict": "perhaps"})


def test_a_graph_has_the_summary_and_the_rings_of_the_picture(parts):
    raw, schema, files, _ = parts
    panel, data = read_config(raw, schema).figures["fig2"]["panels"]["b"], store.groups(files["fig2"])
    traces = {trace.name: trace for trace in graphs.panel_graph(panel, data, {}).data if (trace.meta or {}).get("look")}
    simulated = data["teacher_regular/gd"].bias
    np.testing.assert_allclose(traces["gradient descent"].y, simulated.mean("draw"), rtol=1e-6)
    np.testing.assert_allclose(traces["gradient descent"].error_y.array, simulated.std("draw", ddof=1) / np.sqrt(3), rtol=1e-5)
    np.testing.assert_allclose(traces["theory"].y, data["teacher_regular/theory"].bias.mean("draw"), rtol=1e-6)
    assert list(traces["runs failed"].x) == [simulated.N.values[0]]


def test_a_median_is_shown_with_its_quartiles(parts):
    raw, schema, files, _ = parts
    config, data = read_config(raw, schema), store.groups(files["figS1"])
    panel = config.figures["figS1"]["panels"]["a"]
    experiment = {"double_descent": vars(config.experiments["double_descent"])}
    values = data["double_descent/gd"].bias
    (trace,) = (t for t in graphs.panel_graph(panel, data, experiment).data if t.name == "gradient descent")
    np.testing.assert_allclose(trace.y, values.median("draw"), rtol=1e-6)
    np.testing.assert_allclose(trace.y + trace.error_y.array, values.quantile(0.75, "draw"), rtol=1e-5)
    np.testing.assert_allclose(trace.y - trace.error_y.arrayminus, values.quantile(0.25, "draw"), rtol=1e-5)


def test_the_numbers_of_a_panel_are_those_of_its_lines(parts):
    raw, schema, files, _ = parts
    panel, data = read_config(raw, schema).figures["fig2"]["panels"]["b"], store.groups(files["fig2"])
    uri = numbers.csv_uri(numbers.panel_table(panel, data))
    rows = list(csv.DictReader(io.StringIO(unquote(uri.partition(",")[2]))))
    for line in content.curves(panel, data):
        own = [row for row in rows if row["method"] == line.method]
        np.testing.assert_allclose([float(row["mean"]) for row in own], np.atleast_1d(line.centre), rtol=1e-4)
        np.testing.assert_allclose([float(row["draw 1"]) for row in own], np.atleast_1d(line.values[1]), rtol=1e-4)
    assert [row["caveats"] for row in rows if row["method"] == "gd"][:2] == ["runs failed", ""]
    assert [row["N"] for row in rows if row["method"] == "gp"] == ["any"]


def test_parameters_of_the_paper_and_assumed_ones_stand_apart(html, parts):
    section = re.search(r'<section id="fig3".*?</section>', html, re.S).group()
    tables = dict(re.findall(r'<table class="parameters (\w+)">(.*?)</table>', section, re.S))
    assert "network.N" in tables["paper"]
    assert "task.normalization" in tables["assumed"]
    assert "task.normalization" not in tables["paper"]
    assert "How pixels are centred and scaled" in tables["assumed"]
    assert "task.P" in tables["reduced"]


def test_runtime_adds_up_what_the_jobs_of_a_figure_took(parts, tmp_path):
    raw, schema, _, _ = parts
    jobs = list(page.Jobs(read_config(raw, schema)).of_figure("figS5").values())
    for job in jobs[:2]:
        path = tmp_path / job.benchmark
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("s\tcpu_time\tmax_rss\n90\t60\t200\n")
    cost = page._cost(jobs, tmp_path)
    assert (cost["measured"], cost["jobs"]) == (2, len(jobs))
    assert (cost["wall"], cost["cpu"], cost["memory"]) == ("3 min", "2 min", "200 MB")


@pytest.mark.parametrize(
    ("value", "error", "shown"),
    [(-0.3123, 0.0217, "−0.312 ± 0.022"), (41.23, 6.3, "41.2 ± 6.3"), (1200.0, 150.0, "1200 ± 150"), (2.0, None, "2"),
     (3e-7, 2e-8, "3e−07 ± 2e-08"), (None, None, "–"), (0.5, 0.0, "0.5")],
)  # fmt: skip
def test_errors_have_two_digits(value, error, shown):
    assert text.with_error(value, error) == shown


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
    assert text.formula(tex) == shown


def test_symbols_have_their_index_in_prose():
    assert text.prose("N_0 < U_1, teacher_regular") == "N<sub>0</sub> &lt; U<sub>1</sub>, teacher_regular"


def test_findings_may_link_within_the_page_only_and_hold_no_html():
    shown = text.markdown("A **b** [here](#fig2), [there](docs/x.md) <script>alert(1)</script>")
    assert '<a href="#fig2">here</a>, there' in shown
    assert "<b" not in shown.replace("<b>", "")
    assert "<script" not in shown


def test_the_library_does_not_need_the_packages_of_the_report():
    program = "import sys, ggdln, ggdln.workflow.config, ggdln.workflow.jobs, ggdln.study.figures.compose; print({'plotly', 'markdown_it'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


# In the browser


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        pytest.skip("no chromium on this machine (apt-get install chromium)")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield running
        running.close()


@pytest.fixture(scope="module")
def address(request, tmp_path_factory):
    finished = os.environ.get("REPORT_PAGE")
    if finished:
        return Path(finished).resolve().as_uri()
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(request.getfixturevalue("html"))
    return path.as_uri()


@pytest.fixture
def opened(browser, address):
    """Opens the page and gives it; what went wrong on it meanwhile is in its list `problems`."""
    contexts = []

    def open_page(width=1280, height=900, **settings):
        contexts.append(browser.new_context(viewport={"width": width, "height": height}, accept_downloads=True, **settings))
        contexts[-1].set_default_timeout(1000 * PATIENCE)
        tab = contexts[-1].new_page()
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

    yield open_page
    for context in contexts:
        context.close()


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


def test_all_figures_show_without_network_or_errors(opened):
    tab = opened()
    pictures = tab.locator("section.figure img")
    assert pictures.count() == len(quick_configuration()[0]["figures"])
    assert all(
        pictures.evaluate_all("images => images.map(image => image.complete && image.naturalWidth > 0 && image.alt !== '')")
    )
    draw_all(tab)
    empty = tab.locator(".graph:visible").evaluate_all(
        "graphs => graphs.filter(g => !g.querySelector('.scatterlayer .trace, .heatmaplayer image')).map(g => g.id)"
    )
    assert empty == []
    assert tab.problems == []


def test_filters_by_figure_verdict_and_words(opened):
    tab = opened()
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


def test_details_open_by_keyboard_and_by_link(opened):
    tab = opened()
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


def test_every_control_is_reached_by_tab_with_a_visible_focus(opened):
    tab = opened()
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


def test_the_legend_switches_theory_and_simulation_in_all_panels(opened):
    tab = opened()
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


def test_graphs_zoom_by_mouse_and_by_keyboard_and_show_values(opened):
    tab = opened()
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


def test_no_link_is_dead(opened):
    tab = opened()
    links = tab.locator("a[href]").evaluate_all("links => links.map(link => link.getAttribute('href'))")
    assert len(links) > 50
    anchors = {link[1:] for link in links if link.startswith("#")}
    known = set(tab.evaluate("[...document.querySelectorAll('[id]')].map(element => element.id)"))
    assert anchors <= known
    assert all(link.startswith(("#", "data:text/csv")) for link in links)
    ids = tab.evaluate("[...document.querySelectorAll('[id]')].map(element => element.id)")
    assert len(ids) == len(set(ids))


def test_numbers_can_be_downloaded(opened, tmp_path):
    tab = opened()
    with tab.expect_download() as download:
        tab.locator("#fig2 .download a").first.click()
    assert download.value.suggested_filename.startswith("fig2_b_bias")
    download.value.save_as(tmp_path / "numbers.csv")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "numbers.csv").read_text())))
    assert {row["method"] for row in rows} == {"theory", "gp", "gd"}


@pytest.mark.parametrize("width", [360, 768])
def test_nothing_sticks_out_sideways(opened, width):
    tab = opened(width, 740, is_mobile=True, has_touch=True)
    tab.locator("#unfold").click()
    tab.evaluate("document.querySelectorAll('details').forEach(details => (details.open = true))")
    draw_all(tab, "#fig2")
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    wide = tab.evaluate(
        "[...document.querySelectorAll('main *, header *')].filter(e => e.checkVisibility() && !e.closest('.hidden, .stacked > thead, svg')"
        " && e.getBoundingClientRect().right > innerWidth + 1).map(e => e.outerHTML.slice(0, 150))"
    )
    assert wide == []
    assert tab.problems == []


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (360, "dark")])
def test_contrast_names_and_structure_pass_axe(opened, scheme, width):
    from axe_playwright_python.sync_playwright import Axe

    tab = opened(width, 800, color_scheme=scheme)
    tab.locator("#unfold").click()
    tab.locator("#graph-fig2-1").scroll_into_view_if_needed()
    wait(tab, "document.querySelector('#graph-fig2-1 .main-svg') !== null")
    found = Axe().run(tab).response["violations"]
    assert [(rule["id"], node["html"][:200]) for rule in found for node in rule["nodes"]] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_lines_stand_out_from_the_page(opened, scheme):
    tab = opened(color_scheme=scheme)
    tab.locator("#graph-fig2-1").scroll_into_view_if_needed()
    wait(tab, "document.querySelector('#graph-fig2-1 .main-svg') !== null")
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


def test_the_page_is_ready_soon(opened):
    start = time.monotonic()
    tab = opened()
    assert tab.locator("#claims").is_visible()
    assert time.monotonic() - start < 20
