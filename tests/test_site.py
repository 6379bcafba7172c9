"""The site in a real browser: every page, on a desk and on a phone, in light and in dark, without a network.

The site is the one that `make site` builds, which these tests call: pages that have not changed since are not built again. It is served
from a folder below the root of a server, as GitHub serves it.
"""

import functools
import http.server
import subprocess
import threading
from urllib.parse import urlsplit

import pytest
from helpers import ROOT

SITE = ROOT / "docs/_build/site"
FOLDER = "/ggdln/"
SIZES = {"desk": {"width": 1280, "height": 900}, "phone": {"width": 390, "height": 844}}
PATIENCE = 120
"""Seconds that a busy machine may need for one step."""

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("site")]

WIDE = """\
[...document.querySelectorAll('body *')].filter(e => e.checkVisibility() && !e.closest('svg, .sidebar-drawer, .toc-drawer, .visually-hidden')
  && e.getBoundingClientRect().right > innerWidth + 1 && !scrolls(e)).map(e => e.outerHTML.slice(0, 150))"""
SCROLLS = """\
function scrolls(e) {
  for (; e; e = e.parentElement) if (['auto', 'scroll', 'hidden'].includes(getComputedStyle(e).overflowX)) return true;
  return false;
}"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    def translate_path(self, path):
        inside = urlsplit(path).path
        return super().translate_path(inside.removeprefix(FOLDER[:-1])) if inside.startswith(FOLDER) else "/nowhere"

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def address(browser):
    """Where the site is served from."""
    done = subprocess.run(["make", "site"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=SITE))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}{FOLDER}"
    server.shutdown()
    server.server_close()


def pages():
    """Every page of the built site, by its path."""
    found = sorted(str(path.relative_to(SITE)).removesuffix("index.html") for path in SITE.rglob("*.html"))
    return [path for path in found if not path.startswith("_")]


@pytest.fixture(scope="module")
def tabs(browser, address):
    """Size -> a tab, whose list `problems` has what went wrong since it was last emptied."""
    made = {}
    for name, size in SIZES.items():
        context = browser.new_context(viewport=size, is_mobile=name == "phone", has_touch=name == "phone")
        context.set_default_timeout(1000 * PATIENCE)
        tab = made[name] = context.new_page()
        tab.problems = []
        watch(tab, address)
    return made


def watch(tab, address):
    def told(text):
        tab.problems.append(text)

    tab.on("console", lambda message: told(f"console: {message.text}") if message.type in ("error", "warning") else None)
    tab.on("pageerror", lambda error: told(f"error: {error}"))
    tab.on("requestfailed", lambda request: told(f"failed: {request.url}"))
    tab.on("response", lambda response: told(f"{response.status}: {response.url}") if response.status >= 400 else None)
    tab.on("request", lambda r: None if r.url.startswith((address, "data:", "blob:")) else told(f"asks for {r.url}"))


def opened(tab, address):
    """What is wrong with a page, once it is there with all its pictures and equations."""
    tab.goto("about:blank")  # what the page before still asked for is broken off
    tab.problems.clear()
    tab.goto(address, wait_until="load")
    tab.evaluate("document.querySelectorAll('details').forEach(e => (e.open = true))")
    tab.evaluate("document.querySelectorAll('img').forEach(e => (e.loading = 'eager'))")
    tab.wait_for_function("[...document.images].every(e => e.complete)")
    tab.evaluate("window.MathJax && MathJax.startup ? MathJax.startup.promise.then(() => true) : true")
    found = list(tab.problems)
    found += tab.evaluate("[...document.images].filter(e => !e.naturalWidth).map(e => 'empty picture: ' + e.src)")
    found += tab.evaluate("[...document.images].filter(e => !e.hasAttribute('alt')).map(e => 'no words for ' + e.src)")
    found += tab.evaluate("[...document.querySelectorAll('.math')].filter(e => !e.querySelector('mjx-container svg'))"
                          ".map(e => 'not typeset: ' + e.textContent.slice(0, 80))")  # fmt: skip
    found += tab.evaluate(
        "[...document.querySelectorAll('mjx-merror, [data-mjx-error]')].map(e => 'equation: ' + e.outerHTML.slice(0, 200))"
    )
    wide = tab.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    if wide > 0:
        found.append(f"{wide} px too wide: {tab.evaluate(f'(() => {{ {SCROLLS} return {WIDE} }})()')[:3]}")
    return found


@pytest.mark.parametrize("size", SIZES)
def test_every_page_is_whole_and_fits(tabs, address, size):
    listed = pages()
    assert len(listed) > 30
    wrong = {page: found for page in listed if (found := opened(tabs[size], address + page))}
    assert wrong == {}


BROKEN = """<html><head><link rel="icon" href="data:,"><script>console.error("oh")</script></head><body>
<img src="missing.png" alt="none"><img src="data:image/png;base64," alt="empty"><img src="http://example.org/far.png" alt="far">
<span class="math">x</span><pre style="width: 3000px">wide</pre></body></html>"""


@pytest.mark.parametrize("size", SIZES)
def test_what_is_wrong_is_found(tabs, address, size):
    tab = tabs[size]
    tab.route("**/broken", lambda route: route.fulfill(content_type="text/html", body=BROKEN))
    tab.route("http://example.org/**", lambda route: route.abort())
    found = "\n".join(opened(tab, address + "broken"))
    tab.problems.clear()
    for words in (
        "console: oh",
        "404",
        "missing.png",
        "asks for http://example.org",
        "empty picture",
        "not typeset: x",
        "px too wide: ['<pre",
    ):
        assert words in found


def test_search_finds_without_a_network(tabs, address):
    tab = tabs["phone"]
    tab.problems.clear()
    tab.goto(f"{address}search/?q=saddle+point", wait_until="load")
    tab.locator("#search-results ul.search li a").first.wait_for()
    links = tab.locator("#search-results ul.search li a").evaluate_all("links => links.map(link => link.href)")
    assert any("theory/saddle_point" in link for link in links)
    assert tab.problems == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(
    "page", ["", "gallery/", "theory/saddle_point/", "reference/gates/", "tutorials/own_data/", "compare/"]
)
def test_words_stand_out_and_pictures_lie_on_white(browser, address, page, scheme):
    from axe_playwright_python.sync_playwright import Axe

    context = browser.new_context(viewport=SIZES["desk"], color_scheme=scheme)
    context.set_default_timeout(1000 * PATIENCE)
    tab = context.new_page()
    tab.goto(address + page, wait_until="load")
    found = Axe().run(tab, context="article", options={"runOnly": ["color-contrast", "image-alt"]}).response["violations"]
    assert [(rule["id"], node["html"][:200]) for rule in found for node in rule["nodes"]] == []
    pictures = "[...document.querySelectorAll('article img')].map(e => getComputedStyle(e).backgroundColor)"
    assert set(tab.evaluate(pictures)) <= {"rgb(255, 255, 255)"}
    context.close()
