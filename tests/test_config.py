"""Configuration: what is accepted, what each mistake prints, where values come from, and the schema for editors."""

import json

import pytest
import yaml
from helpers import ROOT, changed, raw_configuration
from jsonschema import Draft202012Validator

from ggdln.core.errors import ConfigError
from ggdln.core.trees import leaves
from ggdln.workflow import schema
from ggdln.workflow.config import read_config
from ggdln.workflow.files import default_files, load, read_yaml
from ggdln.workflow.sections import description, join

FILES = [*sorted((ROOT / "config").glob("*.yaml")), *sorted((ROOT / "config/claims").glob("*.yaml"))]
TASK = "experiments/capacity/paper/task"
HEATMAP = {"kind": "heatmap", "experiment": "capacity", "method": "gp", "quantity": "bias", "x": "M", "y": "L"}
BAD = {
    "misspelt part": ("experimets", {}, "experimets = {} is not a known key", "did you mean 'experiments'?"),
    "misspelt section": ("experiments/capacity/assumd", {}, "1 problem:", "experiments.capacity.assumd = {} is not a known key", "did you mean 'assumed'?"),
    "misspelt key": (f"{TASK}/gama", 0.1, "experiments.capacity.task.gama (under paper) = 0.1 is not a known key", "did you mean 'gamma'?"),
    "key of the library": ("experiments/capacity/assumed/network", {"temperature": 0.1}, "network.temperature", "did you mean 'T'?"),
    "misspelt kind": (f"{TASK}/kind", "noisy_techer", "task.kind (under paper) = 'noisy_techer'", "did you mean 'noisy_teacher'?"),
    "wrong type": (f"{TASK}/P", "many", "experiments.capacity.task.P (under paper) = 'many'", "a whole number >= 1"),
    "number that YAML reads as text": (f"{TASK}/gamma", "1e-2", "task.gamma (under paper) = '1e-2'", "a number >= 0", "write 1.0e-2"),
    "fraction": ("experiments/capacity/assumed/draws", 2.5, "draws (under assumed) = 2.5", "a whole number >= 1"),
    "no gates": ("experiments/capacity/assumed/sweep/gates.M", [1, 0], "capacity.sweep.gates.M[1] = 0", "a whole number >= 1"),
    "negative sigma": ("experiments/capacity/assumed/network/sigma", -1.0, "network.sigma (under assumed) = -1.0", "> 0"),
    "threshold NaN": ("experiments/capacity/assumed/gates/b", float("nan"), "assumed.gates.b = nan", "a finite number"),
    "infinite": ("experiments/capacity/assumed/network/sigma", float("inf"), "sigma = inf", "a finite number"),
    "more test than training": (f"{TASK}/P_t", 5000, "experiments.capacity.task.P_t = 5000", "at most task.P = 2100"),
    "given twice": ("experiments/capacity/assumed/task/P", 3, "task.P stands under both paper and assumed", "one of them"),
    "given and swept": ("experiments/capacity/assumed/gates/M", 3, "gates.M is given and swept", "one of them"),
    "swept twice": ("experiments/capacity/assumed/sweep/gates.M", [3, 5, 3], "sweep.gates.M = [3, 5, 3]", "values that differ"),
    "unknown axis": ("experiments/kernel_angle/paper/sweep", {"gates.MM": [1]}, "kernel_angle.gates.MM = 1 is not a known key", "did you mean 'M'?"),
    "axis of nothing": ("experiments/kernel_angle/paper/sweep/gate.M", [1], "kernel_angle.sweep (under paper) = 'gate.M'", "names that match"),
    "empty sweep": ("experiments/kernel_angle/paper/sweep", {"gates.M": []}, "kernel_angle.sweep.gates.M = []", "at least 1"),
    "unknown method": ("experiments/capacity/paper/methods", {"gpp": {}}, "methods.gpp (under paper) = {} is not a known key", "did you mean 'gp'?"),
    "no settings of a method": ("experiments/capacity/paper/methods/gp", True, "methods.gp (under paper) = True", "keys and values"),
    "place that isn't swept": ("experiments/capacity/paper/methods/gp", {"at": {"network.L": [1, 9]}}, "capacity.methods.gp.at.network.L = [1, 9]", "values of the sweep, [1, 2, 3]"),
    "place on no axis": ("experiments/capacity/paper/methods/gp", {"at": {"network.T": [1.0]}}, "methods.gp.at.network.T = [1.0]", "an axis of the sweep, network.L or gates.M"),
    "unknown observable": ("experiments/capacity/paper/observables", ["predictr"], "observables[0] = 'predictr'", "did you mean 'predictor'?"),
    "unknown base": ("experiments/other", {"base": "capacty"}, "experiments.other.base = 'capacty'", "did you mean 'capacity'?"),
    "unknown experiment": ("figures/fig1/panels/b/series", [{"experiment": "capacty", "method": "gp"}], "figures.fig1.panels.b.experiment = 'capacty'", "did you mean 'capacity'?"),
    "unknown variable": ("figures/fig1/panels/b/quantity", "training_eror", "figures.fig1.panels.b.quantity = 'training_eror'", "did you mean 'training_error'?"),
    "misspelt key of a panel": ("figures/fig1/panels/b/qantity", "bias", "figures.fig1.panels.b.qantity = 'bias' is not a known key", "did you mean 'quantity'?"),
    "misspelt panel": ("figures/fig1/panels/a/kind", "drawng", "figures.fig1.panels.a.kind = 'drawng'", "did you mean 'drawing'?"),
    "no such axis": ("figures/fig1/panels/b/x", "Q", "figures.fig1.panels.b.x = 'Q'", "an axis of the sweep"),
    "axis left open": ("figures/fig1/panels/b/series", [{"experiment": "capacity", "method": "gp"}], "figures.fig1.panels.b.select.L is missing", "one of [1, 2, 3]"),
    "one axis twice": ("figures/fig1/panels/b", HEATMAP | {"y": "M"}, "figures.fig1.panels.b.y = 'M'", "an axis other than M"),
    "axis that doesn't matter": ("figures/mine", {"caption": "", "size": [3, 2], "mosaic": ["a"], "panels": {"a": HEATMAP | {"experiment": "wide", "y": "N"}}}, "figures.mine.panels.a.y = 'N'", "an axis on which gp depends: M"),
    "no place for 0": ("figures/mine", {"caption": "", "size": [3, 2], "mosaic": ["a"], "panels": {"a": HEATMAP | {"experiment": "cold", "y": "T", "yscale": "log"}}}, "figures.mine.panels.a.yscale = 'log'", "linear, since T has values that are not above 0"),
    "no single number": ("figures/fig1/panels/b", HEATMAP | {"experiment": "kernel_angle", "quantity": "kernel_profile"}, "figures.fig1.panels.b.quantity = 'kernel_profile'", "training_error, rank, log_evidence, dead"),
    "no such best": ("figures/fig1/panels/b", HEATMAP | {"best": {"by": "evidence"}}, "figures.fig1.panels.b.best.by = 'evidence'", "training_error, rank, log_evidence, dead"),
    "no such panel": ("figures/fig1/mosaic", ["abcx"], "figures.fig1.mosaic", "those of panels"),
    "negative seed": ("seed", -1, "seed = -1", "a whole number >= 0"),
    "other source": ("digits/source", "fashion", "digits.source = 'fashion'", "embedded, full"),
    "path in a run": ("run", "../elsewhere", "run = '../elsewhere'", "matches"),
    "path in a name": ("figures/..%2Fx", {}, "1 problem:", "'..%2Fx'", "names that match"),
    "nothing there": ("experiments", None, "1 problem:", "experiments = None", "keys and values"),
    "list for keys": ("experiments/capacity/paper", [1], "1 problem:", "experiments.capacity.paper = [1]", "keys and values"),
    "number for keys": ("experiments/capacity/paper/task", 3, "1 problem:", "experiments.capacity.task (under paper) = 3", "keys and values"),
    "text for kinds": ("kinds", "mine.py", "kinds = 'mine.py'", "a list"),
    "kinds that aren't there": ("kinds", ["none.py"], "kinds: there is no file none.py", "the code of files under kinds is run"),
    "kinds that are no Python": ("kinds", ["README.md"], "kinds[0] = 'README.md'; accepted: Python files (.py), whose code is run"),
}  # fmt: skip


@pytest.fixture(scope="module")
def small(default_configuration):
    """Two experiments with their figures, which are read in no time."""
    raw = {name: default_configuration[name] for name in ("seed", "digits", "batch")}
    for part, names in (("experiments", ("capacity", "kernel_angle")), ("figures", ("fig1", "figS5"))):
        raw[part] = {name: default_configuration[part][name] for name in names}
    for name, axis, values in (("wide", "network.N", [10, 20]), ("cold", "network.T", [0.0, 1.0])):
        sweep = {"gates.M": [2, 3], "network.L": None, axis: values}
        raw["experiments"][name] = {"base": "capacity", "varied": {"network": {"L": 1}, "sweep": sweep}}
    return raw


@pytest.fixture(scope="module")
def paper(default_configuration):
    return read_config(default_configuration)


def message(raw):
    """What is said of a configuration that is refused."""
    with pytest.raises(ConfigError) as error:
        read_config(raw)
    return str(error.value)


def test_the_paper_configuration_is_valid(paper):
    capacity = paper.experiments["capacity"]
    assert capacity.task["P"] == 2100
    assert capacity.task["N_T"] == 3000
    assert capacity.network["T"] == 0.0  # a default
    assert paper.curves_of("fig1") == [("capacity", "gp")]
    # A figure that doesn't show a method doesn't wait for it.
    assert {method for _, method in paper.curves_of("fig3")} == {"theory", "gp"}


@pytest.mark.parametrize("case", BAD)
def test_mistakes_are_named_with_key_value_and_what_is_accepted(case, small):
    path, value, *expected = BAD[case]
    found = message(changed(small, path, value))
    for text in expected:
        assert text in found
    assert "Traceback" not in found


def test_more_digits_than_the_source_has(small):
    def parity(P, P_t, source="embedded"):
        values = {
            "task": {"kind": "mnist_parity", "P": P, "P_t": P_t},
            "gates": {"kind": "random", "M": 3},
            "network": {"L": 1, "sigma": 1.0},
            "methods": {"gp": {}},
            "draws": 1,
        }
        return changed(changed(small, "digits/source", source), "experiments/mine", {"assumed": values})

    assert read_config(parity(4000, 1000)).experiments["mine"].task["digits"] == "embedded"
    assert "task.P + P_t = 5002; accepted: at most 5000, since the digits source 'embedded'" in message(parity(4000, 1002))
    assert read_config(parity(40000, 1002, "full"))


def test_all_problems_are_reported_together(small):
    raw = changed(changed(small, f"{TASK}/N0", 0), "experiments/kernel_angle/assumed/draws", 0)
    assert message(raw).startswith("The configuration has 2 problems:")
    # Of several experiments and figures, whatever is wrong with them.
    for path, value in {
        "experiments/wrong": {"assumd": {}},
        "figures/fig1/panels/b/quantity": "bais",
        "figures/figS5/sise": [1, 1],
        "seed": -1,
    }.items():
        raw = changed(raw, path, value)
    found = message(raw)
    assert found.startswith("The configuration has 5 problems:")  # panels of an experiment that can't be read aren't checked
    for place in ("task.N0", "kernel_angle.draws", "experiments.wrong.assumd", "figures.figS5.sise", "seed = -1"):
        assert place in found


def test_a_problem_of_an_experiment_is_told_once_and_not_for_its_variants(small):
    raw = changed(small, "experiments/open", {"base": "kernel_angle", "varied": {"gates": {"kind": "open", "b": None}}})
    assert read_config(raw).experiments["open"].gates == {"kind": "open"}
    wrong = changed(raw, "experiments/kernel_angle/paper/task/noise", -1)
    assert message(wrong).splitlines()[1:] == [
        "  experiments.kernel_angle.task.noise (under paper) = -1; accepted: a number >= 0 and <= 1000"
    ]
    assert message(changed(raw, "experiments/kernel_angle/papr", {})).startswith("The configuration has 1 problem:")
    assert "experiments.open.task.noise (under varied) = -2" in message(
        changed(raw, "experiments/open/varied/task", {"noise": -2})
    )


def test_reduced_values_replace_the_others(small):
    reduced = changed(small, "experiments/capacity/reduced", {"task": {"P": 100, "P_t": 10}, "draws": 2})
    experiment = read_config(reduced).experiments["capacity"]
    assert (experiment.task["P"], experiment.task["N0"], experiment.draws) == (100, 30, 2)


def test_sections_may_be_left_out(small):
    sections = small["experiments"]["kernel_angle"]
    whole = {"assumed": join(sections)}
    assert read_config(changed(small, "experiments/kernel_angle", whole)).experiments["kernel_angle"].draws == 10


def test_one_entry_may_stand_for_several_experiments(small):
    entry = {"for": {"N0": [20, 50]}, "base": "kernel_angle", "varied": {"task": {"N0": "{N0}"}}}
    config = read_config(changed(small, "experiments/angle_{N0}", entry))
    assert [config.experiments[name].task["N0"] for name in ("angle_20", "angle_50")] == [20, 50]
    assert config.experiments["angle_20"].varied == "task.N0 = 20"
    found = message(changed(small, "experiments/angle_{N0}", entry | {"for": {"N1": [20, 50]}}))
    assert "experiments.angle_{N0}.for.N1" in found


def test_claims_are_about_what_is_measured(small, default_configuration):
    raw = changed(
        small, "experiments/kernel_angle_open", {"base": "kernel_angle", "varied": {"gates": {"kind": "open", "b": None}}}
    )
    claim = {
        "panel": "a", "source": "ours", "statement": "The kernel falls with depth.",
        "measured": {"experiment": "kernel_angle", "method": "gp", "variable": "dead", "along": "L", "select": {"M": 50}},
        "condition": "falls", "control": {"what": "open gates", "experiment": "kernel_angle_open"},
    }  # fmt: skip
    raw = changed(raw, "claims", {"figS5": {"statements": {"few": claim}}})
    assert read_config(raw).curves_of_claim("few") == [("kernel_angle", "gp"), ("kernel_angle_open", "gp")]
    statement = "claims/figS5/statements/few"
    for path, value, text in (
        ("measured/variable", "ded", "claims.figS5.statements.few.measured.variable = 'ded'"),
        ("control/variable", "ded", "claims.figS5.statements.few.control.variable = 'ded'"),
        ("measured/experiment", "kernel_angel", "did you mean 'kernel_angle'?"),
        ("condition", "fals", "did you mean 'falls'?"),
        ("panel", "z", "claims.figS5.statements.few.panel = 'z'"),
    ):
        assert text in message(changed(raw, f"{statement}/{path}", value))


def test_quick_configuration_only_reduces(root):
    """It has reduced values for every experiment of the paper and changes nothing that the paper states."""
    quick, config = (read_yaml(root / "config" / name) for name in ("quick.yaml", "config.yaml"))
    assert set(quick["experiments"]) == set(config["experiments"])
    assert all({"reduced"} <= set(sections) <= {"reduced", "batch"} for sections in quick["experiments"].values())
    assert set(quick) <= {"run", "batch", "experiments"}


def test_claims_fit_the_reduced_sizes_too(paper):
    config = read_config(raw_configuration("quick.yaml"))
    assert config.run == "quick"
    assert list(config.claims) == list(paper.claims)
    for name in config.claims:
        assert all(method in config.experiments[experiment].methods for experiment, method in config.curves_of_claim(name))


def test_every_assumed_value_has_a_meaning(paper):
    for sections in paper.written.values():
        for section in ("assumed", "varied"):
            for path, value in leaves(sections.get(section) or {}):
                told = value is not None and (value != {} or path[0] == "methods")
                assert not told or description(join(sections), path), path


@pytest.mark.parametrize(("text", "told"), [
    ("seed: [1, 2", ", line 2, column 1: not valid YAML, "),
    ("a: 1\n\t- x", ", line 2, column 1: not valid YAML, "),
    ("seed: 1\nrun: x\nseed: 2\n", ", line 3, column 1: the key 'seed' stands here again, after line 1"),
    ("experiments:\n  a: {paper: {}, paper: {}}\n", ", line 2, column 18: the key 'paper' stands here again, after line 2"),
    ("- seed", ": ['seed']; accepted: keys and values"),
    ("seed", ": 'seed'; accepted: keys and values"),
    ("seed: 2022-13-01", ": not valid YAML, month must be in 1..12"),
    ("seed: !!python/object/apply:os.getcwd []", ", line 1, column 7: not valid YAML, could not determine a constructor"),
])  # fmt: skip
def test_a_file_that_is_no_configuration_is_told_with_its_place(tmp_path, text, told):
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError) as error:
        load([file])
    assert str(error.value).startswith(f"{file}{told}")


def test_files_that_can_not_be_read_are_named(tmp_path):
    with pytest.raises(ConfigError, match=r"^There is no configuration file .*none\.yaml\.$"):
        load([tmp_path / "none.yaml"])
    (tmp_path / "bytes.yaml").write_bytes(b"seed: \xff")
    for file in (tmp_path, tmp_path / "bytes.yaml"):
        with pytest.raises(ConfigError, match=r"^The configuration file .* can't be read: "):
            load([file])


def test_files_add_to_those_before_and_merge_keys_are_no_repeats(tmp_path):
    (tmp_path / "a.yaml").write_text("a: &a {x: 1, y: 2}\nb: &b {<<: *a, y: 3}\nc: {<<: *b, x: 4}\n")
    (tmp_path / "b.yaml").write_text("a: {y: 5}\n")
    (tmp_path / "empty.yaml").write_text("# nothing\n")
    raw = load([tmp_path / "a.yaml", tmp_path / "b.yaml", tmp_path / "empty.yaml"], {"a": {"z": 6}})
    assert raw == {"a": {"x": 1, "y": 5, "z": 6}, "b": {"x": 1, "y": 3}, "c": {"x": 4, "y": 3}}


@pytest.mark.parametrize("text", ["experiments: &a {b: *a}\n", "experiments: &a [*a]\n"])
def test_values_that_contain_themselves_are_refused(text, tmp_path):
    """In a file that the library reads, and in what Snakemake has read."""
    file = tmp_path / "cycle.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=r"line 1, column .*no alias to a value that contains it"):
        load([file])
    assert "no alias to a value that contains it" in message(yaml.safe_load(text))


def test_reading_a_configuration_writes_nothing(tmp_path, monkeypatch, small):
    monkeypatch.chdir(tmp_path)
    read_config(small)
    message(changed(small, "seed", -1))
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def checked():
    return Draft202012Validator(schema.schema())


def test_the_schema_is_that_of_the_models_and_kinds(root):
    assert (root / schema.PATH).read_text() == schema.text(), "write it anew with `make docs`"


def test_schema_is_valid_draft_2020_12():
    Draft202012Validator.check_schema(schema.schema())


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_configuration_files_name_the_schema_and_fit_it(file, checked):
    words, path = file.read_text().splitlines()[0].split("$schema=")
    assert words == "# yaml-language-server: "
    assert (file.parent / path).resolve() == (ROOT / schema.PATH).resolve()
    assert list(checked.iter_errors(yaml.safe_load(file.read_text()))) == []
    assert file.name in ("quick.yaml", "gallery.yaml") or file in default_files(ROOT)


@pytest.mark.parametrize(("path", "value"), [
    ("sed", 1),
    ("seed", -1),
    ("digits/source", "fashion"),
    ("batch/drows", 1),
    ("machine/memory_mb", 1),
    (f"{TASK}/gama", 0.1),
    (f"{TASK}/gamma", -0.1),
    ("experiments/capacity/assumed/gates/bb", 1.0),
    ("experiments/capacity/assumed/network/sigma", 0.0),
    ("experiments/capacity/assumed/sweep/gate.M", [1]),
    ("experiments/capacity/paper/methods/gpp", {}),
    ("experiments/capacity/paper/methods/gp", {"rank_tolerance": 1.0}),
    ("experiments/capacity/paper/observables", ["predictr"]),
    ("experiments/capacity/assumd", {}),
    ("figures/fig1/panels/b/qantity", "bias"),
    ("figures/fig1/panels/b/xscale", "logarithmic"),
    ("figures/fig1/size", [9.0]),
    ("claims/fig1/statement", {}),
    ("claims/fig1/defaults", {"surce": "ours"}),
])  # fmt: skip
def test_the_schema_refuses_what_the_library_refuses(path, value, small, checked):
    assert list(checked.iter_errors(small)) == []
    raw = changed(small, path, value)
    assert list(checked.iter_errors(raw))
    message(raw)


def test_every_parameter_has_a_description_and_numbers_have_bounds():
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

    found = json.loads(schema.text())
    walk({"properties": found["properties"], "$defs": found["$defs"]}, "")
