"""The verdicts as data: read from docs/verdicts.md, which `make docs` writes from the results."""

import re

from verdicts import MADE

from pages import DOCS

OUTCOMES = ("hold", "hold in part of the draws", "don’t hold", "can’t be tested here")
COLOURS = {
    "hold": "success",
    "hold in part of the draws": "warning",
    "don’t hold": "danger",
    "can’t be tested here": "secondary",
}


def claims():
    """Every row of the tables of claims: figure, panel, statement, effect, draws, outcome, control, and whether it is the paper's."""
    text = (DOCS / "verdicts.md").read_text()
    found = []
    for heading, paper in (("What the paper says", True), ("What we add", False)):
        section = text.split(f"\n## {heading}\n", 1)[1].split("\n## ")[0]
        for line in section.splitlines():
            cells = [cell.strip() for cell in line.strip("|").split(" | ")]
            if len(cells) == 6 and re.match(r"S?\d", cells[0]):
                number, panel = re.fullmatch(r"(S?\d+)(\w*)", cells[0]).groups()
                outcome = _outcome(cells[4])
                found.append(dict(zip(("statement", "effect", "draws", "verdict", "control"), cells[1:], strict=True)))
                found[-1] |= {"figure": f"fig{number}", "panel": panel, "paper": paper, "outcome": outcome}
    return found


def commits():
    """The commits at which the numbers behind the verdicts were put together, in words; nothing if they aren't told."""
    found = re.search(rf"^{MADE} (.+)\.$", (DOCS / "verdicts.md").read_text(), re.M)
    return found[1] if found else ""


def _outcome(verdict):
    if verdict.startswith("holds in"):
        return OUTCOMES[1]
    return {"holds": OUTCOMES[0], "doesn't hold": OUTCOMES[2]}.get(verdict, OUTCOMES[3])


def counts(chosen):
    """Outcome -> how many of these claims have it."""
    outcomes = [claim["outcome"] for claim in chosen]
    return {name: outcomes.count(name) for name in OUTCOMES}
