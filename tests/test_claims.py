"""Verdicts on claims, on curves whose answer is known."""

import json

import numpy as np
import pytest
import xarray as xr

from ggdln.study.claims import CONDITIONS, agreement, condition_text, judge, references
from ggdln.workflow.config import load_config

X = np.array([10.0, 20.0, 40.0, 80.0, 160.0, 320.0])
MEASURED = {"experiment": "some", "method": "theory", "variable": "bias", "along": "N"}
RISES = {"kind": "trend", "direction": "rises", "strength": 0.5}


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
    assert found["verdict"] == verdict
    assert found["draws"] == len(slopes)


def test_a_trend_is_more_than_its_ends():
    """The last point is above the first, and yet most of the curve falls."""
    falls = np.array([5.0, 4.9, 4.8, 4.7, 4.6, 5.1])
    assert verdict_of(RISES, curves([falls] * 3))["verdict"] == "doesn't hold"
    flat = verdict_of(RISES, curves(np.ones((3, 6))))
    assert flat["verdict"] == "doesn't hold"
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
    assert nothing["verdict"] == "not testable here"
    assert nothing["effect"] is None
    assert "3 usable points" in nothing["caveat"]


VALLEY = {"kind": "valley", "margin": 0.01, "strength": 0.5}


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
    below = {"kind": "order", "side": "below", "share": 0.9, "other": {"method": "gp"}}
    assert verdict_of(below, data)["holds"] == 2
    assert verdict_of(below | {"side": "above"}, data)["holds"] == 0
    # A limit without the axis is the same at all points, and draws that it lacks are left out.
    data["some/gp"] = xr.Dataset({"bias": ("draw", [3.5])}, coords={"draw": [1]})
    found = verdict_of(below | {"share": 0.3}, data)
    assert (found["holds"], found["draws"]) == (1, 1)


def test_agreement_allows_a_tolerance_and_two_errors():
    theory = curves([[10.0] * 6])
    simulated = curves([[10.4] * 6], bias_error=(("draw", "N"), np.full((1, 6), 0.1)))
    data = {"some/theory": theory, "some/gd": simulated}
    measured = MEASURED | {"method": "gd"}
    agrees = {"kind": "agrees", "share": 0.9, "other": {"method": "theory"}}
    assert verdict_of(agrees | {"relative": 0.025}, data, measured)["holds"] == 1
    assert verdict_of(agrees | {"relative": 0.015}, data, measured)["holds"] == 0
    assert verdict_of(agrees | {"absolute": 0.21}, data, measured)["holds"] == 1


def test_closer_compares_distances_from_a_reference():
    data = {name: curves([[value] * 6]) for name, value in (("some/theory", 1.1), ("some/gp", 1.3), ("some/gd", 1.0))}
    closer = {"kind": "closer", "other": {"method": "gp"}, "reference": {"method": "gd"}}
    assert verdict_of(closer, data)["holds"] == 1
    assert verdict_of(closer, data, MEASURED | {"method": "gp"})["holds"] == 0


M = np.array([2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 16.0])
AT_CAPACITY = {"experiment": {"task": {"N0": 10, "P": 70}}, "measured": MEASURED | {"along": "M"}}


@pytest.mark.parametrize(("values", "condition", "met"), [
    ([3, 2, 1, 0, 0, 0, 0], {"kind": "onset", "zero": "after", "relative": 1e-6}, True),
    ([3, 2, 1, 0.1, 0, 0, 0], {"kind": "onset", "zero": "after", "relative": 1e-6}, False),
    ([3, 2, 0, 0, 0, 0, 0], {"kind": "onset", "zero": "after", "relative": 1e-6}, False),
    ([0, 0, 0, 1, 2, 3, 3], {"kind": "onset", "zero": "before", "relative": 1e-6}, True),
    ([1, 1, 2, 9, 2, 1, 1], {"kind": "peak", "factor": 3.0}, True),
    ([1, 1, 2, 2, 2, 1, 9], {"kind": "peak", "factor": 3.0}, False),
    ([20, 40, 60, 70, 70, 70, 70], {"kind": "counts"}, True),
    ([20, 40, 59, 70, 70, 70, 70], {"kind": "counts"}, False),
])  # fmt: skip
def test_at_capacity(values, condition, met):
    """N0 = 10 and P = 70, so that capacity is reached with 7 gates."""
    condition = {"formula": "generic", "depth": 1, "relative": 0.0} | condition
    data = curves([values], x=M, axis="M", dead=(("draw", "M"), np.zeros((1, len(M)))))
    assert verdict_of(condition, data, **AT_CAPACITY)["holds"] == met


def test_inputs_that_open_no_gate_are_not_counted():
    counts = {"kind": "counts", "formula": "generic", "depth": 1, "relative": 0.0}
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
    assert (variant["verdict"], variant["varied"]) == ("holds", "task.normalization = pixel")


def test_chains_that_have_not_mixed_are_told():
    some = np.ones((1, 6))
    sampled = curves([np.log(X)], mixed=(("draw", "N"), 0 * some), largest_rhat=(("draw", "N"), 1.7 * some))
    found = judge(claim(RISES, MEASURED | {"method": "langevin"}), {"some/langevin": sampled}, {"some": {}})
    assert "not mixed at 6 of 6 points (R-hat up to 1.70)" in found["caveat"]


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


@pytest.fixture
def configured(root):
    return load_config(root, [root / f"config/{name}.yaml" for name in ("config", "figures", "claims")])


def test_there_are_claims_on_every_figure(configured):
    assert {c["figure"] for c in configured.claims.values()} == set(configured.figures)
    of_the_paper = [c for c in configured.claims.values() if c["source"] != "ours"]
    assert len(of_the_paper) >= 30
    statements = [c["statement"] for c in configured.claims.values()]
    assert len(set(statements)) == len(statements)
    assert {c["condition"]["kind"] for c in configured.claims.values()} == set(CONDITIONS)
    assert all(condition_text(c["condition"]) for c in configured.claims.values())


def test_claims_fit_the_reduced_sizes_too(root):
    names = ("config", "figures", "claims", "quick")
    assert load_config(root, [root / f"config/{name}.yaml" for name in names]).run == "quick"


def test_theory_claims_have_enough_draws(configured):
    """Ten, or five where P = 3000."""
    for name, about in configured.claims.items():
        measured = about["measured"]
        experiment = configured.experiments[measured["experiment"]]
        if measured["method"] not in ("theory", "gp") or "reference" in about["condition"]:
            continue
        large = experiment.task.get("permutations", 1) * experiment.task.get("P", 1) >= 3000
        assert experiment.draws >= (5 if large else 10), name


def test_variants_of_failing_claims_say_what_they_vary(configured):
    for about in configured.claims.values():
        for name in about["sensitivity"]:
            assert configured.varied[name], name
