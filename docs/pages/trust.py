"""Why the numbers may be believed: every document of evidence, what it says in a line, and the commit that last changed it."""

import re
import subprocess

from pages import DOCS, ROOT
from pages.markdown import table
from pages.verdicts import claims, commits, counts

EVIDENCE = {
    # document: (what it tells, how it is made)
    "verdicts.md": ("Does the paper hold? Every statement with its condition, effect and control", "make report, make docs"),
    "calibration.md": (
        "Values that were tried for what the paper leaves open, and what each wins and loses",
        "make calibrate, make report, make docs",
    ),
    "agreement.md": ("Trained networks, Langevin dynamics and the exact posterior beside the theory", "make report, make docs"),
    "assumptions.md": ("Every value that the paper leaves open, and what was taken for it", "make docs"),
    "solutions.md": ("Where the theory needs a temperature, and where it has several minima", "by hand"),
    "faults.md": (
        "Kills, full disks, damaged files, odd input: what was done to a run and what became of it",
        "make test-faults",
    ),
    "benchmarks/theory.md": ("What a solution costs, against the formulation of the paper", "make bench"),
    "benchmarks/threads.md": ("What a second thread is worth", "make bench"),
    "benchmarks/many_samples.md": ("Tens of thousands of samples, and prior and temperature chosen by evidence", "make bench"),
    "benchmarks/exact.md": ("The exact posterior: its cost beside Gibbs sampling; errors of theory and one loop", "make bench"),
    "benchmarks/dynamics.md": ("What training and sampling cost, against plain implementations", "make bench"),
    "benchmarks/minima.md": ("Is the minimum that is found the lowest one?", "make bench"),
    "benchmarks/install.md": ("Seconds and megabytes of an install", "make bench"),
    "benchmarks/cluster.md": ("What a cluster adds to many tiny jobs", "python benchmarks/cluster.py"),
    "benchmarks/portability.md": ("How far numbers differ between threads, instruction sets and BLAS libraries", "make bench"),
}


def commit(path):
    """The commit that last changed a file: (short hash, date); nothing where there is no history."""
    command = ["git", "log", "-1", "--format=%h %cs", "--", str(path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    return tuple(done.stdout.split()) if done.returncode == 0 and done.stdout.strip() else ("", "")


def title(path):
    return re.search(r"^# (.+)$", (DOCS / path).read_text(), re.M)[1]


def page():
    # A document that needs a long run is there once that has been made.
    shown = {path: entry for path, entry in EVIDENCE.items() if (DOCS / path).exists()}
    rows = []
    for path, (told, how) in shown.items():
        short, day = commit(DOCS / path)
        made = f"`{how}`" if how.startswith(("make", "python")) else how
        rows.append([f"[{title(path)}]({path})", told, made.replace(", ", "`, `"), f"`{short}`, {day}" if short else "–"])
    found = counts(claim for claim in claims() if claim["paper"])
    holds = ", ".join(f"{number} {name}" for name, number in found.items() if number)
    pages = "\n".join(shown)
    made = f" The numbers behind the verdicts were put together at commit {commits()}." if commits() else ""
    return f"""\
# Can it be trusted?

Of {sum(found.values())} statements that the paper makes about its figures, {holds}. Each stands with the condition under which we say
that it holds, with the size of the effect, and with a control for which it must fail. Tables are generated from results, or
printed by a test; findings and what is told of solutions are written by hand.

{table(["document", "what it tells", "made by", "last changed at commit"], rows)}
The commit is the one that last changed the text of a document. What it tells was measured with the code of that commit or of an
earlier one, and a later run that found the same has changed nothing. Numbers of figures are computed again when an edit concerns
them, and only then; their files say in attributes with which code they were made.{made} Benchmarks are run by hand.

The library is checked against closed forms, limits, Monte Carlo and other samplers; `make test`, `make test-all` and `make test-long` do so,
and every number of a figure can be traced by the attributes of its file to code, configuration, seed and data.

```{{toctree}}
:hidden:

{pages}
```
"""
