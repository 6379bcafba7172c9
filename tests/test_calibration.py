"""Calibration: options become experiments of their own, the paper's claims are put to each, and the page and documents tell."""

import json

import numpy as np
import pytest
import xarray as xr
import yaml
from helpers import changed, small_project, snakemake

from ggdln.core.errors import ConfigError
from ggdln.study import calibration, words
from ggdln.workflow.config import read_config

CHOICE = {
    "question": "The prior of the trained networks",
    "chosen": "half",
    "experiments": ["trained"],
    "options": {"half": {"network": {"sigma": 0.5}}, "one": {"network": {"sigma": 1.0}}},
    "varied": {"methods": {"gd": None}},
}


class Known:
    """An experiment, of which only its methods count."""

    methods = ("theory", "gp")


def claim(source="text", method="theory", **condition):
    measured = {"experiment": "a", "method": method, "variable": "bias", "along": "N"}
    return {"source": source, "measured": measured, "condition": {"kind": "falls"} | condition}


def curve(*slopes):
    """A bias against N that changes with a slope of its own in each draw."""
    N = np.array([10.0, 20.0, 40.0])
    values = 1 + np.array(slopes)[:, None] * np.log(N)
    return xr.Dataset({"bias": (("draw", "N"), values)}, coords={"draw": range(len(slopes)), "N": N})


def test_an_option_is_asked_about_claims_of_the_paper_whose_curves_it_has():
    experiments = dict.fromkeys(("a", "b", "a_choice_option"), Known)
    claims = {
        "kept": claim(),
        "compared": claim(kind="below", other={"method": "gp"}),
        "elsewhere": claim(kind="below", other={"experiment": "b", "method": "gp"}),
        "simulated": claim(method="gd"),
        "ours": claim(source="ours"),
    }
    found = calibration.tests({"a": "a_choice_option"}, claims, experiments)
    assert list(found) == ["kept", "compared", "elsewhere"]
    assert all(measured["experiment"] == "a_choice_option" for _, measured in found.values())
    pairs = [("a_choice_option", "theory"), ("a_choice_option", "gp"), ("b", "gp")]
    assert calibration.curves(found) == pairs


def test_the_score_is_the_sum_of_shares_and_the_margin_that_over_the_best_other():
    options = {name: {"words": f"x = {name}", "experiments": {"a": name}} for name in ("up", "down", "both")}
    choice = {"question": "?", "chosen": "both", "options": options}
    experiments = dict.fromkeys(("a", *options), Known)
    claims = {"falls": claim(), "rises": claim(kind="rises")}
    put = {name: calibration.tests(option["experiments"], claims, experiments) for name, option in options.items()}
    data = {"up/theory": curve(1, 1), "down/theory": curve(-1, -1), "both/theory": curve(1, -1)}
    found = calibration.weigh(choice, put, data, {name: {} for name in experiments})
    assert [(option["name"], option["held"], option["score"]) for option in found["options"]] == [
        ("up", 1, 1.0), ("down", 1, 1.0), ("both", 0, 1.0)
    ]  # fmt: skip
    assert found["margin"] == 0
    rows = words.options(found)
    assert rows[0] == ["up", "x = up", "1 of 2", "1.0", "rises", ""]
    assert rows[2][0] == "both (chosen)"
    told = calibration.tried([found], "falls")
    assert [(row["option"], row["chosen"], row["holds"], row["draws"]) for row in told] == [
        ("up", False, 0, 2), ("down", False, 2, 2), ("both", True, 1, 2)
    ]  # fmt: skip


@pytest.mark.parametrize(("path", "value", "told"), [
    ("calibration/normalization/chosen", "pixl", "calibration.normalization.chosen = 'pixl'"),
    ("calibration/normalization/experiments", ["sigma_few"], "calibration.normalization.experiments = 'sigma_few'"),
    ("calibration/normalization/options/image", {"task": {"normalization": "imge"}}, "1 problem:\n  calibration.normalization.options.image.task.normalization = 'imge'"),
    ("calibration/normalization/varied", {"drws": 5}, "1 problem:\n  calibration.normalization.varied.drws = 5"),
    ("calibration/normalization/each/sigma_few_gate", {}, "calibration.normalization.each = 'sigma_few_gate'"),
    ("experiments/conflicting/papr", {}, "The configuration has 1 problem"),
    ("calibration/normalization/optiuns", {}, "calibration.normalization.optiuns"),
])  # fmt: skip
def test_what_is_wrong_with_a_choice_is_named(raw, path, value, told):
    with pytest.raises(ConfigError) as error:
        read_config(changed(raw, path, value))
    assert told in str(error.value)


def test_the_chosen_options_are_what_the_configuration_has(raw):
    """So that the table is about the figures as they are made."""
    config = read_config(raw)
    assert len(config.calibration) >= 6
    for name, choice in config.calibration.items():
        for experiment, variant in choice["options"][choice["chosen"]]["experiments"].items():
            base, own = config.experiments[experiment], config.experiments[variant]
            # Apart from a temperature at which every option has a solution.
            written = raw["calibration"][name]
            shared = [written.get("varied", {}), written.get("each", {}).get(experiment, {})]
            alike = {"T"} & {key for values in shared for key in values.get("network", {})}
            for part in ("task", "gates", "network"):
                mine, theirs = ({k: v for k, v in getattr(one, part).items() if k not in alike} for one in (base, own))
                assert mine == theirs, (name, experiment, part)


@pytest.mark.long
def test_a_calibration_is_run_and_told(tmp_path):
    small_project(tmp_path)
    (tmp_path / "config/calibration.yaml").write_text(yaml.safe_dump({"calibration": {"prior": CHOICE}}))
    sheet = tmp_path / "config/claims/all.yaml"
    falls = {"statement": "With the width the bias falls.", "source": "text", "condition": "falls"}
    falls["measured"] = {"experiment": "trained", "method": "theory", "variable": "bias", "along": "N"}
    content = yaml.safe_load(sheet.read_text())
    content["claims"]["trained"]["statements"]["trained_falls"] = falls
    sheet.write_text(yaml.safe_dump(content))
    result = snakemake(tmp_path, "--", "calibrate")
    assert result.returncode == 0, result.stdout + result.stderr
    (choice,) = json.loads((tmp_path / "results/calibration.json").read_text())
    assert [list(option["claims"]) for option in choice["options"]] == [["trained_falls"]] * 2
    result = snakemake(tmp_path, "--", "report")
    assert result.returncode == 0, result.stdout + result.stderr
    claims = {claim["id"]: claim for claim in json.loads((tmp_path / "results/claims.json").read_text())["claims"]}
    assert [row["option"] for row in claims["trained_falls"]["tried"]] == ["half", "one"]
    assert claims["trained_theory"]["tried"] == []
    page = (tmp_path / "figures/report.html").read_text()
    assert "Values that were tried against what the paper says" in page
    assert "network.sigma = 1.0" in page
