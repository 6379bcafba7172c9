"""Compare the numbers and verdicts of two folders of results: python tests/compare_results.py A B [--figures fig1 ...] [--claims].

Numbers are those in figX.nc, in groups experiment/method; verdicts those in claims.json. The difference of a variable is the
largest over its elements of |a - b| relative to the larger of both, but never relative to less than a thousandth of the largest
value of the variable: errors and variances run over many powers of ten, so that a scale common to all would hide changes of the
small ones, and those that are zero up to rounding have no scale of their own. Exits with 1 if anything is beyond its tolerance.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import xarray as xr

DETERMINED, SIMULATED = 1e-6, 1e-3
"""Relative tolerances of what is solved for and of what is simulated in single precision along a long run."""
LOOSE = ("fig6", "fig7", "figS1")
"""Figures near capacity or with a solver's tolerance of 1e-6, where solutions too are determined to `SIMULATED` only."""
SOLVED = ("gp", "theory")
COUNTERS = ("evaluations", "residual", "steps")
"""How a solution was found, not what it is: listed, and not judged."""
SMALL = 1e-3
EFFECTS = 1e-3
VERDICTS = {"holds": "holds", "doesn't hold": "fails", "not testable here": "untestable"}


class Row(NamedTuple):
    """A comparison: where, of what, largest relative difference, tolerance (None if it isn't judged), and a remark."""

    place: str
    name: str
    difference: float
    tolerance: float | None
    remark: str = ""

    @property
    def ok(self):
        return self.tolerance is None or self.difference <= self.tolerance


def relative_difference(a, b):
    """Largest relative difference of two arrays; inf if they differ in shape, in kind, or in where they have no value."""
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape:
        return np.inf
    if a.dtype.kind != "f" or b.dtype.kind != "f":
        return 0.0 if np.array_equal(a, b) else np.inf
    known = np.isfinite(a)
    if not np.array_equal(known, np.isfinite(b)) or not np.array_equal(a[~known], b[~known], equal_nan=True):
        return np.inf
    a, b = a[known].astype(float), b[known].astype(float)
    if not a.size or np.array_equal(a, b):
        return 0.0
    size = np.maximum(np.abs(a), np.abs(b))
    return float((np.abs(a - b) / np.maximum(size, SMALL * size.max())).max())


def tolerance(figure, method, name, values):
    """Tolerance of a variable; None for what isn't judged, 0 for what must be the same."""
    if name in COUNTERS:
        return None
    if np.asarray(values).dtype.kind != "f" or name in values.dims:
        return 0.0
    return DETERMINED if method in SOLVED and figure not in LOOSE else SIMULATED


def compare_groups(figure, a, b):
    """Rows for all variables and axes of two mappings from "experiment/method" to datasets."""
    rows = [Row(f"{figure} {group}", "", 0.0, None, "only in the second") for group in b if group not in a]
    for group, first in a.items():
        place = f"{figure} {group}"
        if group not in b:
            rows.append(Row(place, "", np.inf, 0.0, "missing"))
            continue
        second = b[group]
        rows += [Row(place, name, 0.0, None, "only in the second") for name in second.variables if name not in first.variables]
        for name, values in first.variables.items():
            if name not in second.variables:
                rows.append(Row(place, name, np.inf, 0.0, "missing"))
                continue
            other = second.variables[name]
            other = other.transpose(*values.dims) if set(other.dims) == set(values.dims) else other
            allowed = tolerance(figure, group.split("/")[-1], name, values)
            rows.append(Row(place, name, relative_difference(values, other), allowed))
    return rows


def read_groups(file):
    """Datasets of a file by "experiment/method"."""
    with xr.open_datatree(file, engine="netcdf4") as tree:
        return {node.path.strip("/"): node.to_dataset().load() for node in tree.subtree if node.variables}


def compare_figures(a, b, figures=None):
    """Rows for the figures that are named, or for all that the first folder has."""
    a, b = Path(a), Path(b)
    rows = []
    for figure in figures or sorted(file.stem for file in a.glob("fig*.nc")):
        missing = [folder for folder in (a, b) if not (folder / f"{figure}.nc").exists()]
        if missing:
            rows.append(Row(figure, "", np.inf, 0.0, f"no file in {', '.join(map(str, missing))}"))
        else:
            rows += compare_groups(figure, *(read_groups(folder / f"{figure}.nc") for folder in (a, b)))
    return rows


def outcome(result):
    """The outcome of a claim, control or variant, which older files have in words."""
    return result["outcome"] if "outcome" in result else VERDICTS.get(result["verdict"], "partly")


def compare_verdicts(place, first, second):
    """Rows for counts, outcome and effect. An effect is compared on the scale of its standard error if that is larger."""
    same = [(outcome(r), r["holds"], r["draws"]) for r in (first, second)]
    told = "" if same[0] == same[1] else f"{same[0]} and {same[1]}"
    effects = [r["effect"] for r in (first, second)]
    difference = 0.0 if effects[0] is effects[1] is None else np.inf
    if None not in effects:
        scale = max(1e-6, *(abs(e["value"]) for e in effects), *(e["error"] or 0.0 for e in effects))
        difference = abs(effects[0]["value"] - effects[1]["value"]) / scale
    return [Row(place, "verdict", np.inf if told else 0.0, 0.0, told), Row(place, "effect", difference, EFFECTS)]


def compare_claims(a, b, figures=None):
    """Rows for all claims, or those about the figures that are named, with controls and variants."""
    a, b = ({claim["id"]: claim for claim in json.loads((Path(f) / "claims.json").read_text())["claims"]} for f in (a, b))
    rows = [Row(f"claim {name}", "", 0.0, None, "only in the second") for name in b if name not in a]
    for name, first in a.items():
        if figures and first["figure"] not in figures:
            continue
        place, second = f"claim {name}", b.get(name)
        if second is None:
            rows.append(Row(place, "", np.inf, 0.0, "missing"))
            continue
        rows += compare_verdicts(place, first, second)
        parts = [{v.get("experiment", v["varied"]): v for v in claim["sensitivity"]} for claim in (first, second)]
        for part, claim in zip(parts, (first, second), strict=True):
            part |= {"control": claim["control"]} if claim["control"] else {}
        for part in parts[0]:
            if part in parts[1]:
                rows += compare_verdicts(f"{place}, {part}", parts[0][part], parts[1][part])
            else:
                rows.append(Row(f"{place}, {part}", "", np.inf, 0.0, "missing"))
    return rows


def main(arguments=None):
    """Print all comparisons; 1 if any is beyond its tolerance."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("a", type=Path, help="folder to compare with")
    parser.add_argument("b", type=Path, help="folder to compare")
    parser.add_argument("--figures", nargs="+", help="only these figures")
    parser.add_argument("--claims", action="store_true", help="compare verdicts too")
    options = parser.parse_args(arguments)
    rows = compare_figures(options.a, options.b, options.figures)
    rows += compare_claims(options.a, options.b, options.figures) if options.claims else []
    width = max([len(row.place) for row in rows], default=0)
    print(f"{'group':{width}}  {'variable':28}  difference  tolerance")
    for row in rows:
        allowed = "not judged" if row.tolerance is None else f"{row.tolerance:9.0e}" if row.tolerance else "    exact"
        verdict = "" if row.tolerance is None else "ok" if row.ok else "BEYOND"
        print(f"{row.place:{width}}  {row.name:28}  {row.difference:10.1e}  {allowed:10}  {verdict:6} {row.remark}".rstrip())
    beyond = [row for row in rows if not row.ok]
    print(f"{len(rows)} comparisons, {len(beyond)} beyond their tolerance")
    return 1 if beyond or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
