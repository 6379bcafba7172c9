"""Verdicts on claims, on curves whose answer is known."""

import copy
import importlib.util
import json
import re
from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr
import yaml
from jsonschema import Draft202012Validator

from ggdln.core.expand import expand
from ggdln.core.kinds import REGISTRIES
from ggdln.study import words
from ggdln.study.claims import Sheet, agreement, claim_problems, expand_sheets, judge, references

X = np.array([10.0, 20.0, 40.0, 80.0, 160.0, 320.0])
MEASURED = {"experiment": "some", "method": "theory", "variable": "bias", "along": "N"}
RISES = {"kind": "rises"}


def curves(values, name="bias", x=X, axis="N", **more):
    """A dataset with one row of values a draw."""
    values = np.asarray(values, dtype=float)
    return xr.Dataset({name: (("draw", axis), values), **more}, coords={"draw": np.arange(len(values)), axis: x})


def claim(condition, measured=MEASURED, **more):
    about = {"figure": "fig2", "panel": "b", "statement": "", "source": "text", "sensitivity": []}
    return about | {"measured": measured, "condition": condition} | more


def verdict_of(condition, data, measured=MEASURED, experiment=None):
    data = data if isinstance(data, dict) else {"some/theory": data}
    return judge(claim(condition, measured), data, {"some": experiment or {}})


@pytest.mark.parametrize(("slopes", "verdict"), [
    ([1] * 10, "holds"),
    ([1] * 9 + [-1], "holds"),
    ([1] * 5 + [-1] * 5, "holds in 5 of 10"),
    ([-1] * 9 + [1], "doesn't hold"),
])  # fmt: skip
def test_the_verdict_counts_draws(slopes, verdict):
    found = verdict_of(RISES, curves([10 + slope * np.log(X) for slope in slopes]))
    assert words.verdict(found) == verdict
    assert found["draws"] == len(slopes)


def test_a_trend_is_more_than_its_ends():
    """The last point is above the first, and yet most of the curve falls."""
    falls = np.array([5.0, 4.9, 4.8, 4.7, 4.6, 5.1])
    assert verdict_of(RISES, curves([falls] * 3))["outcome"] == "fails"
    flat = verdict_of(RISES, curves(np.ones((3, 6))))
    assert flat["outcome"] == "fails"
    assert flat["effect"]["value"] == 0


def test_the_effect_has_the_error_of_its_mean():
    found = verdict_of(RISES, curves([[1, 1, 1, 1, 2, 2], [1, 1, 1, 1, 4, 4]]))
    each = np.array([1 / (8 / 6), 3 / (12 / 6)])
    assert found["effect"]["value"] == pytest.approx(each.mean())
    assert found["effect"]["error"] == pytest.approx(each.std(ddof=1) / np.sqrt(2))


def test_points_without_a_value_are_left_out_and_too_few_can_not_be_judged():
    rows = np.array([[1, np.nan, 3, 4, np.nan, 6], [1, np.nan, np.nan, np.nan, np.nan, 6]])
    found = verdict_of(RISES, curves(rows))
    assert (found["holds"], found["draws"]) == (1, 1)
    nothing = verdict_of(RISES, curves(rows[1:]))
    assert nothing["outcome"] == "untestable"
    assert nothing["effect"] is None
    assert nothing["caveats"] == [{"caveat": "too few points", "needed": 3}]
    assert words.caveats(nothing["caveats"]) == "no draw has 3 usable points"


VALLEY = {"kind": "valley"}


@pytest.mark.parametrize(("values", "condition", "met"), [
    ([3, 2, 1, 2, 3, 4], VALLEY, True),
    ([3, 2, 1, 2, 3, 4], VALLEY | {"at": 40}, True),
    ([3, 2, 1, 2, 3, 4], VALLEY | {"at": 80}, False),
    ([6, 5, 4, 3, 2, 1], VALLEY, False),
    ([3, 2, 1.999, 1.9995, 2, 2.001], VALLEY, False),
    ([1, 2, 3, 4, 5, 6], {"kind": "exceeds", "bound": 0.9}, True),
    ([1, 2, 3, 4, 5, 6], {"kind": "exceeds", "bound": 1.1}, False),
    ([1, 1, 1, 1, 1, 1 + 1e-9], {"kind": "constant", "relative": 1e-6}, True),
    ([1, 1, 1, 1, 1, 1.01], {"kind": "constant", "relative": 1e-6}, False),
])  # fmt: skip
def test_shapes(values, condition, met):
    assert verdict_of(condition, curves([values]))["holds"] == met


def test_comparisons_are_made_within_a_draw_at_the_points_that_both_have():
    data = {"some/theory": curves([[1, 2, 3, 4, 5, 6], [2, 3, 4, 5, 6, 7]]), "some/gp": curves([[1.5, 2.5], [9, 9]], x=X[:2])}
    below = {"kind": "below", "other": {"method": "gp"}}
    assert verdict_of(below, data)["holds"] == 2
    assert verdict_of(below | {"kind": "above"}, data)["holds"] == 0
    # A limit without the axis is the same at all points, and draws that it lacks are left out.
    data["some/gp"] = xr.Dataset({"bias": ("draw", [3.5])}, coords={"draw": [1]})
    found = verdict_of(below | {"share": 0.3}, data)
    assert (found["holds"], found["draws"]) == (1, 1)


def test_agreement_allows_a_tolerance_and_two_errors():
    theory = curves([[10.0] * 6])
    simulated = curves([[10.4] * 6], bias_error=(("draw", "N"), np.full((1, 6), 0.1)))
    data = {"some/theory": theory, "some/gd": simulated}
    measured = MEASURED | {"method": "gd"}
    agrees = {"kind": "agrees", "other": {"method": "theory"}}
    assert verdict_of(agrees | {"relative": 0.025}, data, measured)["holds"] == 1
    assert verdict_of(agrees | {"relative": 0.015}, data, measured)["holds"] == 0
    assert verdict_of(agrees | {"absolute": 0.21}, data, measured)["holds"] == 1
    # Errors as large as the quantity itself agree with everything, and say nothing.
    data["some/gd"]["bias_error"] += 5.0
    assert verdict_of(agrees | {"relative": 0.025}, data, measured)["holds"] == 0


def test_closer_compares_distances_from_a_reference():
    data = {name: curves([[value] * 6]) for name, value in (("some/theory", 1.1), ("some/gp", 1.3), ("some/gd", 1.0))}
    closer = {"kind": "closer", "other": {"method": "gp"}, "reference": {"method": "gd"}}
    assert verdict_of(closer, data)["holds"] == 1
    assert verdict_of(closer, data, MEASURED | {"method": "gp"})["holds"] == 0


M = np.array([2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 16.0])
AT_CAPACITY = {"experiment": {"task": {"N0": 10, "P": 70}}, "measured": MEASURED | {"along": "M"}}


@pytest.mark.parametrize(("values", "condition", "met"), [
    ([3, 2, 1, 0, 0, 0, 0], {"kind": "zero_after"}, True),
    ([3, 2, 1, 0.1, 0, 0, 0], {"kind": "zero_after"}, False),
    ([3, 2, 0, 0, 0, 0, 0], {"kind": "zero_after"}, False),
    ([0, 0, 0, 1, 2, 3, 3], {"kind": "zero_before"}, True),
    ([1, 1, 2, 9, 2, 1, 1], {"kind": "peak"}, True),
    ([1, 1, 2, 2, 2, 1, 9], {"kind": "peak"}, False),
    ([20, 40, 60, 70, 70, 70, 70], {"kind": "counts"}, True),
    ([20, 40, 59, 70, 70, 70, 70], {"kind": "counts"}, False),
])  # fmt: skip
def test_at_capacity(values, condition, met):
    """N0 = 10 and P = 70, so that capacity is reached with 7 gates."""
    condition = {"formula": "generic", "depth": 1} | condition
    data = curves([values], x=M, axis="M", dead=(("draw", "M"), np.zeros((1, len(M)))))
    assert verdict_of(condition, data, **AT_CAPACITY)["holds"] == met


def test_inputs_that_open_no_gate_are_not_counted():
    counts = {"kind": "counts", "formula": "generic", "depth": 1}
    ranks = [20, 40, 60, 69, 70, 70, 70]
    for dead, met in ((0, False), (1, True)):
        data = curves([ranks], x=M, axis="M", dead=(("draw", "M"), [[0, 0, 0, dead, 0, 0, 0]]))
        assert verdict_of(counts, data, **AT_CAPACITY)["holds"] == met


def test_a_claim_whose_control_meets_its_condition_is_empty():
    rising, falling = curves([np.log(X)] * 3), curves([-np.log(X)] * 3)
    control = {"what": "infinite width", "method": "gp"}
    for other, empty in ((rising, True), (falling, False)):
        found = judge(claim(RISES, control=control), {"some/theory": rising, "some/gp": other}, {"some": {}})
        assert found["empty"] is empty
        assert found["control"]["passes"] is empty


def test_variants_are_judged_by_the_same_condition():
    data = {"some/theory": curves([-np.log(X)] * 3), "other/theory": curves([np.log(X)] * 2)}
    experiments = {"some": {}, "other": {"varied": "task.normalization = pixel"}}
    about = claim(RISES, sensitivity=["other"])
    assert references(about) == [("some", "theory"), ("other", "theory")]
    (variant,) = judge(about, data, experiments)["sensitivity"]
    assert (variant["outcome"], variant["varied"]) == ("holds", "task.normalization = pixel")


def test_chains_that_have_not_mixed_are_told():
    points = ("draw", "N")
    sampled = curves([np.log(X)], mixed=(points, np.zeros((1, 6), bool)), largest_rhat=(points, np.full((1, 6), 1.7)))
    found = judge(claim(RISES, MEASURED | {"method": "langevin"}), {"some/langevin": sampled}, {"some": {}})
    assert found["caveats"] == [{"caveat": "not mixed", "points": 6, "of": 6, "largest_rhat": 1.7}]
    assert words.caveats(found["caveats"]) == "chains have not mixed at 6 of 6 points (R-hat up to 1.70)"


def test_runs_that_failed_are_counted():
    failed = np.zeros((2, 6), int)
    failed[1, :2] = 3
    found = verdict_of(RISES, curves([np.log(X)] * 2, runs_failed=(("draw", "N"), failed)))
    assert found["caveats"] == [{"caveat": "runs failed", "points": 2, "of": 12, "runs": 6}]
    assert words.caveats(found["caveats"]) == "6 runs failed"


def test_the_distance_from_the_theory_and_its_power_of_the_width():
    rng = np.random.default_rng(0)
    theory = 1 + rng.random((4, 6))
    simulated = theory * (1 - 2 / X) * (1 + 1e-3 * rng.standard_normal((4, 6)))
    data = {"some/theory": curves(theory), "some/gd": curves(simulated)}
    entry = MEASURED | {"figure": "fig2", "method": "gd", "reference": {"method": "theory"}}
    found = agreement(entry, data)
    assert [row["x"] for row in found["rows"]] == list(X)
    assert found["rows"][0]["difference"] == pytest.approx(-0.2, abs=4 * found["rows"][0]["error"])
    assert found["exponent"]["value"] == pytest.approx(-1, abs=3 * found["exponent"]["error"])
    data["some/gd"] = curves(theory * (1 + 0.1 * rng.standard_normal((4, 6))))
    assert agreement(entry, data)["exponent"] is None
    json.dumps(found, allow_nan=False)


def test_both_sides_of_a_comparison_are_told_with_their_runs():
    shape = (("draw", "N"), np.full((2, 6), 4))
    simulated = curves([[1.1] * 6, [3.3] * 6], runs_used=shape, runs_failed=(("draw", "N"), np.eye(2, 6, dtype=int)))
    theory = xr.Dataset({"bias": ("draw", [1.0, 3.0, 9.0])}, coords={"draw": range(3)})
    entry = MEASURED | {"figure": "fig2", "method": "gd", "reference": {"method": "theory"}}
    found = agreement(entry, {"some/theory": theory, "some/gd": simulated})
    assert found["rows"][0]["reference"] == {"value": 2.0, "error": pytest.approx(1.0)}
    assert found["rows"][0]["simulation"] == {"value": pytest.approx(2.2), "error": pytest.approx(1.1)}
    assert (found["runs"], found["failed"], found["largest_rhat"], found["least_ess"]) == (4, 2, None, None)


SHEET = {
    "defaults": {
        "source": "text",
        "measured": {"experiment": "some", "method": "theory", "along": "N"},
        "condition": {"kind": "falls", "strength": 0.7},
        "control": {"what": "infinite width", "method": "gp"},
    },
    "statements": {
        "fig2b_{variable}": {
            "for": {"variable": ["bias", "variance"], "finding": ["descent", None]},
            "statement": "The {variable} falls with N.",
            "measured": {"variable": "{variable}"},
            "finding": "{finding}",
        }
    },
}


def sheet_with(**changes):
    sheet = copy.deepcopy(SHEET)
    sheet["statements"]["fig2b_{variable}"] |= changes
    return {"fig2": sheet}


def test_a_sheet_gives_a_claim_for_each_value_with_the_defaults_of_its_figure():
    claims, _, problems = expand_sheets({"fig2": SHEET})
    assert not problems
    measured = {"experiment": "some", "method": "theory", "along": "N"}
    shared = {"figure": "fig2", "panel": "b", "source": "text", "condition": {"kind": "falls", "strength": 0.7}}
    shared |= {"control": {"what": "infinite width", "method": "gp"}, "sensitivity": []}
    assert claims == {
        "fig2b_bias": shared
        | {"statement": "The bias falls with N.", "measured": measured | {"variable": "bias"}, "finding": "descent"},
        "fig2b_variance": shared | {"statement": "The variance falls with N.", "measured": measured | {"variable": "variance"}},
    }


@pytest.mark.parametrize(("changes", "part", "expected"), [
    ({"condition": "rises"}, "condition", {"kind": "rises", "strength": 0.5}),
    ({"condition": {"kind": "exceeds", "bound": 1}}, "condition", {"kind": "exceeds", "bound": 1.0}),
    ({"condition": {"strength": 0.9}}, "condition", {"kind": "falls", "strength": 0.9}),
    ({"control": {"what": "shuffled labels", "experiment": "other"}}, "control", {"what": "shuffled labels", "experiment": "other"}),
    ({"control": {"experiment": "other"}}, "control", {"what": "infinite width", "method": "gp", "experiment": "other"}),
    ({"control": None}, "control", None),
    ({"panel": "d"}, "panel", "d"),
])  # fmt: skip
def test_what_a_statement_says_stands_before_the_defaults(changes, part, expected):
    """Another kind of condition, or another control, replaces all of the default one; nothing takes it away."""
    claims, _, problems = expand_sheets(sheet_with(**changes))
    assert not problems
    assert claims["fig2b_bias"].get(part) == expected


@pytest.mark.parametrize(("changes", "message"), [
    ({"condition": "fals"}, "claims.fig2.statements.fig2b_bias.condition.kind = 'fals'; accepted: above, .*did you mean 'falls'"),
    ({"condition": {"strength": 2}}, "fig2b_bias.condition.strength = 2; accepted: a number > 0 and <= 1"),
    ({"condition": "below"}, "fig2b_bias.condition.other is missing; accepted: keys and values"),
    ({"measured": {"alog": "N", "variable": "{variable}"}}, "measured.alog = 'N' is not a known key; .*did you mean 'along'"),
    ({"measured": {}}, "fig2b_bias.measured = .*; accepted: one of variable and reduce"),
    ({"source": "captoin"}, "fig2b_bias.source = 'captoin'; accepted: caption, text, appendix, ours; did you mean 'caption'"),
    ({"control": {"condition": {"other": {"method": "gp"}}}}, "fig2b_bias.control.condition.other = .* is not a known key"),
    ({"statement": "The {varable} falls."}, "fig2b_{variable}.statement = .*; accepted: names under `for`, .*did you mean 'variable'"),
    ({"for": {"variable": ["bias"], "finding": []}}, "fig2b_{variable}.for.finding = \\[\\]; accepted: a list of values"),
])  # fmt: skip
def test_mistakes_in_a_sheet_are_named(changes, message):
    _, _, problems = expand_sheets(sheet_with(**changes))
    assert any(re.search(message, str(problem)) for problem in problems), list(map(str, problems))


def test_names_that_can_not_name_a_file_are_refused():
    sheet = {"fig2": {"defaults": SHEET["defaults"], "statements": {"fig2b_{variable}": {"statement": "No values are given."}}}}
    claims, _, problems = expand_sheets(sheet)
    assert not claims
    assert "accepted: a name that matches" in str(problems[0])


def test_the_schema_for_editors_takes_the_sheets_as_they_are_written(request):
    schema = Draft202012Validator(Sheet.model_json_schema())
    for file in (request.config.rootpath / "config/claims").glob("*.yaml"):
        for sheet in yaml.safe_load(file.read_text())["claims"].values():
            assert [error.message for error in schema.iter_errors(sheet)] == []
    wrong = {"statements": {"a": {"sourc": "text"}, "b": {"source": "captoin"}, "c": {"source": "{source}", "panel": None}}}
    assert {error.absolute_path[1] for error in schema.iter_errors(wrong)} == {"a", "b"}


def test_a_mistake_in_the_defaults_is_named_once():
    sheet = copy.deepcopy(SHEET)
    sheet["defaults"]["sourc"] = "text"
    (problem,) = expand_sheets({"fig2": sheet})[2]
    assert str(problem).startswith("claims.fig2.defaults.sourc = 'text' is not a known key")


def test_what_is_not_there_is_named_with_what_is():
    claims, _, _ = expand_sheets(sheet_with(sensitivity=["othr"]))
    entries = [
        {
            "figure": "fig3",
            "experiment": "some",
            "method": "gd",
            "variable": "bias",
            "along": "N",
            "reference": {"method": "gp"},
        }
    ]
    figures = {"fig2": SimpleNamespace(panels={"a": 1, "c": 2})}
    experiments = {"some": SimpleNamespace(methods=("theory", "gp")), "other": SimpleNamespace(methods=())}
    found = list(map(str, claim_problems(claims, entries, figures, experiments)))
    where = "claims.fig2.statements.fig2b_bias"
    assert f"{where}.panel = 'b'; accepted: a, c" in found
    assert f"{where}.sensitivity = 'othr'; accepted: some, other; did you mean 'other'?" in found
    assert "claims.fig3 = 'fig3'; accepted: fig2; did you mean 'fig2'?" in found
    assert "claims.fig3.agreement: method of some = 'gd'; accepted: theory, gp" in found
    claims, _, _ = expand_sheets(sheet_with(measured={"experiment": "sme", "variable": "{variable}"}))
    found = list(map(str, claim_problems(claims, [], figures, experiments)))
    assert f"{where}: experiment = 'sme'; accepted: some, other; did you mean 'some'?" in found


@pytest.fixture(scope="module")
def configured(request):
    """What config/claims and config/config.yaml say: claims, comparisons and the values of each experiment."""
    folder = request.config.rootpath / "config"
    sheets, experiments = {}, yaml.safe_load((folder / "config.yaml").read_text())["experiments"]
    for file in sorted((folder / "claims").glob("*.yaml")):
        content = yaml.safe_load(file.read_text())
        assert not set(sheets) & set(content["claims"])
        sheets |= content["claims"]
        variants, problems = expand(content.get("experiments", {}), "experiments")
        assert not problems
        assert not set(experiments) & set(variants)
        experiments |= variants
    claims, entries, problems = expand_sheets(sheets)
    assert not problems, "\n".join(map(str, problems))
    values = {}
    for name, sections in experiments.items():
        values[name] = {"varied": sections.get("varied", {})}
        for part in (experiments[sections["base"]] if "base" in sections else sections, sections):
            for section in ("paper", "assumed", "varied"):
                merge(values[name], part.get(section, {}))
    return claims, entries, values


def merge(into, other):
    for key, value in other.items():
        if isinstance(value, dict):
            merge(into.setdefault(key, {}), value)
        else:
            into[key] = value


def test_there_are_claims_on_every_figure(configured, raw):
    claims, entries, experiments = configured
    assert {c["figure"] for c in claims.values()} == set(raw["figures"])
    assert len([c for c in claims.values() if c["source"] != "ours"]) >= 30
    statements = [c["statement"] for c in claims.values()]
    assert len(set(statements)) == len(statements)
    assert {c["condition"]["kind"] for c in claims.values()} == set(REGISTRIES["condition"].own())
    assert all(words.condition(c["condition"]) for c in claims.values())
    figures = {name: SimpleNamespace(panels=figure["panels"]) for name, figure in raw["figures"].items()}
    known = {name: SimpleNamespace(methods=values["methods"]) for name, values in experiments.items()}
    assert not claim_problems(claims, entries, figures, known)


def test_theory_claims_have_enough_draws(configured):
    """Ten, or five where P = 3000."""
    claims, _, experiments = configured
    for name, about in claims.items():
        measured = about["measured"]
        values = experiments[measured["experiment"]]
        if measured["method"] not in ("theory", "gp") or "reference" in about["condition"]:
            continue
        large = values["task"].get("permutations", 1) * values["task"].get("P", 1) >= 3000
        assert values["draws"] >= (5 if large else 10), name


def test_variants_of_failing_claims_vary_something(configured):
    claims, _, experiments = configured
    for about in claims.values():
        for name in about["sensitivity"]:
            assert experiments[name]["varied"].keys() & {"task", "gates", "network", "sweep"}, name


@pytest.fixture(scope="module")
def written(request):
    """The module that writes the documents, and a small claims.json."""
    root = request.config.rootpath
    spec = importlib.util.spec_from_file_location("verdicts", root / "docs/verdicts.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module, json.loads((root / "tests/data/claims.json").read_text())


def test_documents_tell_every_verdict_and_distance(written):
    verdicts, content = written
    made = verdicts.documents(content, f"before\n{verdicts.BEGIN}\noutdated\n{verdicts.END}\nafter\n")
    page, compared = (made[f"docs/{name}.md"] for name in ("verdicts", "agreement"))
    for claim in content["claims"]:
        assert f"| {words.place(claim)} | {claim['statement']} | {words.effect(claim['effect'])} |" in page
    assert "| infinite-width limit: 0 of 10 |" in page
    assert "| shuffled labels: 10 of 10 (empty) |" in page
    readme = made["README.md"]
    papers = [claim["outcome"] for claim in content["claims"] if claim["source"] != "ours"]
    assert f"| all | {len(papers)} | {' | '.join(str(papers.count(outcome)) for outcome in words.OUTCOMES)} |" in page
    assert f"Of {len(papers)} statements that the paper makes about its figures, {papers.count('holds')} hold" in readme
    assert readme.startswith("before\n")
    assert readme.endswith("after\n")
    assert "outdated" not in readme
    assert "| 25 | bias | 0.1600 ± 0.0050 | 0.1522 ± 0.0060 | (−4.9 ± 1.0) % |" in compared
    assert "4 runs or chains a point, 0 failed; largest R-hat 1.04, least effective sample size 150." in compared


def test_the_verdicts_of_the_example_are_as_judged(written):
    _, content = written
    filled = [REGISTRIES["condition"].make(claim["condition"]).spec() for claim in content["claims"]]
    assert filled == [claim["condition"] for claim in content["claims"]]
    assert {words.verdict(claim) for claim in content["claims"]} >= {
        "holds",
        "doesn't hold",
        "not testable here",
        "holds in 15 of 20",
    }
