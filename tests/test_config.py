"""Configuration: what is accepted, what each mistake prints, and where values come from."""

import copy

import pytest
import yaml
from jsonschema import Draft202012Validator

from ggdln.workflow.config import describe, join, leaves, read_config
from ggdln.core.errors import ConfigError


def changed(raw, path, value):
    raw = copy.deepcopy(raw)
    node = raw
    *parents, last = path.split("/")
    for key in parents:
        node = node.setdefault(key, {})
    node[last] = value
    return raw


TASK = "experiments/capacity/paper/task"
BAD = {
    "misspelt section": ("experimets", {}, "experimets = {} is not a known key", "did you mean 'experiments'?"),
    "misspelt key": (f"{TASK}/gama", 0.1, "experiments.capacity.task.gama = 0.1 is not a known key", "did you mean 'gamma'?"),
    "misspelt kind": (f"{TASK}/kind", "noisy_techer", "task.kind (under paper) = 'noisy_techer'", "did you mean 'noisy_teacher'?"),
    "wrong type": (f"{TASK}/P", "many", "experiments.capacity.task.P (under paper) = 'many'", "a whole number >= 1"),
    "fraction": ("experiments/capacity/assumed/draws", 2.5, "draws (under assumed) = 2.5", "a whole number >= 1"),
    "no gates": ("experiments/capacity/assumed/sweep/gates.M", [1, 0], "capacity.sweep.gates.M[1] = 0", "a whole number >= 1"),
    "negative sigma": ("experiments/capacity/assumed/network/sigma", -1.0, "network.sigma (under assumed) = -1.0", "> 0"),
    "threshold NaN": ("experiments/capacity/assumed/gates/b", float("nan"), "assumed.gates.b = nan", "a finite number"),
    "infinite": ("experiments/capacity/assumed/network/sigma", float("inf"), "sigma = inf", "a finite number"),
    "more test than training": (f"{TASK}/P_t", 5000, "experiments.capacity.task.P_t = 5000", "at most task.P = 2100"),
    "given twice": ("experiments/capacity/assumed/task/P", 3, "task.P stands under both paper and assumed", "one of them"),
    "given and swept": ("experiments/capacity/assumed/gates/M", 3, "gates.M is given and swept", "one of them"),
    "unknown axis": ("experiments/kernel_angle/paper/sweep", {"gates.MM": [1]}, "kernel_angle.gates.MM = 1 is not a known key", "did you mean 'M'?"),
    "empty sweep": ("experiments/kernel_angle/paper/sweep", {"gates.M": []}, "kernel_angle.sweep.gates.M = []", "at least 1"),
    "unknown method": ("experiments/capacity/paper/methods", {"gpp": {}}, "methods.gpp = {}", "did you mean 'gp'?"),
    "unknown experiment": ("figures/fig1/panels/b/series", [{"experiment": "capacty", "method": "gp"}], "figures.fig1.panels.b.experiment = 'capacty'", "did you mean 'capacity'?"),
    "no such axis": ("figures/fig1/panels/b/x", "Q", "figures.fig1.panels.b.x = 'Q'", "an axis of the sweep"),
    "no such panel": ("figures/fig1/mosaic", ["abcx"], "figures.fig1.mosaic", "those of panels"),
    "negative seed": ("seed", -1, "seed = -1", "a whole number >= 0"),
    "other source": ("digits/source", "fashion", "digits.source = 'fashion'", "embedded, full"),
    "path in a run": ("run", "../elsewhere", "run = '../elsewhere'", "matches"),
    "path in a name": ("figures/..%2Fx", {}, "'..%2Fx'", "names that match"),
    "nothing there": ("experiments", None, "experiments = None", "keys and values"),
    "list for keys": ("experiments/capacity/paper", [1], "experiments.capacity.paper = [1]", "keys and values"),
    "number for keys": ("experiments/capacity/paper/task", 3, "experiments.capacity", "accepted"),
}  # fmt: skip


def test_schema_is_valid_draft_2020_12(schema):
    Draft202012Validator.check_schema(schema)


def test_every_parameter_has_a_description_and_numbers_have_bounds(schema):
    """Each scalar key is described; each number has a lower bound."""

    def walk(node, name):
        if isinstance(node, dict):
            scalar = node.get("type") in ("integer", "number", "boolean", "string") or "enum" in node
            if scalar and name not in ("items", "prefixItems", "if", "scale") and not isinstance(name, int):
                assert node.get("description"), name
            if node.get("type") in ("integer", "number") and name != "items":
                assert "minimum" in node or "exclusiveMinimum" in node, name
            for key, child in node.items():
                walk(child, key)
        elif isinstance(node, list):
            for i, child in enumerate(node):
                walk(child, i)

    walk({"properties": schema["properties"], "$defs": schema["$defs"]}, "")


def test_the_paper_configuration_is_valid(raw, schema):
    config = read_config(raw, schema)
    capacity = config.experiments["capacity"]
    assert capacity.task["P"] == 2100
    assert capacity.task["N_T"] == 3000
    assert capacity.network["T"] == 0.0  # a default
    assert [experiment.name for experiment in config.experiments_of("fig1")] == ["capacity"]
    # A figure that doesn't show a method doesn't wait for it.
    assert {name for experiment in config.experiments_of("fig3") for name in experiment.methods} == {"theory", "gp"}


@pytest.mark.parametrize("case", BAD)
def test_mistakes_are_named_with_key_value_and_what_is_accepted(case, raw, schema):
    path, value, *expected = BAD[case]
    with pytest.raises(ConfigError) as error:
        read_config(changed(raw, path, value), schema)
    for text in expected:
        assert text in str(error.value)


def parity(raw, P, P_t, source="embedded"):
    raw = changed(raw, "digits/source", source)
    task = {"kind": "mnist_parity", "P": P, "P_t": P_t}
    experiment = {
        "paper": {"task": task, "gates": {"kind": "random", "M": 3}, "network": {"L": 1, "sigma": 1.0}, "methods": {"gp": {}}},
        "assumed": {"draws": 1},
    }
    return changed(raw, "experiments/mine", experiment)


def test_more_digits_than_the_source_has(raw, schema):
    assert read_config(parity(raw, 4000, 1000), schema)
    with pytest.raises(ConfigError, match=r"task.P \+ P_t = 5002; accepted: at most 5000, since the digits source 'embedded'"):
        read_config(parity(raw, 4000, 1002), schema)
    assert read_config(parity(raw, 40000, 1002, "full"), schema)


def test_all_problems_are_reported_together(raw, schema):
    raw = changed(changed(raw, f"{TASK}/N0", 0), "experiments/kernel_angle/assumed/draws", 0)
    with pytest.raises(ConfigError, match="2 problems"):
        read_config(raw, schema)


def test_reduced_values_replace_the_others(raw, schema):
    small = changed(raw, "experiments/capacity/reduced", {"task": {"P": 100, "P_t": 10}, "draws": 2})
    experiment = read_config(small, schema).experiments["capacity"]
    assert (experiment.task["P"], experiment.task["N0"], experiment.draws) == (100, 30, 2)


def test_quick_configuration_only_reduces(root, raw):
    """The quick configuration has reduced values for every experiment and changes nothing that the paper states."""
    quick = yaml.safe_load((root / "config/quick.yaml").read_text())
    assert set(quick["experiments"]) == set(raw["experiments"])
    assert all({"reduced"} <= set(sections) <= {"reduced", "batch"} for sections in quick["experiments"].values())
    assert set(quick) <= {"run", "batch", "experiments"}


def test_every_assumed_value_has_a_meaning(raw, schema):
    for sections in raw["experiments"].values():
        for path, _ in leaves(sections["assumed"]):
            assert describe(schema, join(sections), path), path
