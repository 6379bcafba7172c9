"""How the library compares with other implementations: what benchmarks have written into docs/benchmarks/compare.md."""

from pages import DOCS

HEAD = """\
# How it compares

What this library does beside what else there is: the same question, the same numbers, the same machine.

"""
NONE = """\
:::{note}
No comparison has been measured yet. A benchmark that writes `docs/benchmarks/compare.md` fills this page. What is measured already,
against plain implementations of the same: [the theory](benchmarks/theory.md) and [the dynamics](benchmarks/dynamics.md).
:::
"""


def page():
    file = DOCS / "benchmarks/compare.md"
    if not file.exists():
        return HEAD + NONE
    _, _, body = file.read_text().partition("\n")  # without its heading
    return HEAD + body.replace("](", "](benchmarks/")
