"""Generated documents are what the present code and configuration give, and what the README says can be done works."""

import importlib
import importlib.util
import inspect
import json
import os
import re
import subprocess
import sys
import typing

import numpy as np
import pytest
import xarray as xr
from helpers import ROOT

import ggdln
from ggdln.core.kinds import REGISTRIES
from ggdln.public import NAMES
from ggdln.study.claims import Agreement, Claim
from ggdln.study.compose import Figure
from ggdln.workflow.models import ExperimentValues, Root

DOCUMENTS = [
    "docs/assumptions.md",
    "docs/rulegraph.svg",
    "workflow/schemas/config.schema.json",
    "constraints.txt",
    "environment.yml",
]


def load_module(root, name):
    spec = importlib.util.spec_from_file_location(name, root / f"docs/{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def generate(root):
    return load_module(root, "generate")


@pytest.fixture
def readme(root):
    return (root / "README.md").read_text()


@pytest.mark.xdist_group("workflow")
@pytest.mark.parametrize("path", DOCUMENTS)
def test_document_is_current(root, generate, path):
    assert (root / path).read_text() == generate.GENERATED[path](), f"make docs writes {path}"


def test_no_generated_document_goes_unchecked(generate):
    assert set(DOCUMENTS) == set(generate.GENERATED)


def test_verdicts_are_told_in_full(root, readme):
    verdicts = load_module(root, "verdicts")
    content = json.loads((root / "tests/data/claims.json").read_text())
    pages = verdicts.documents(content, readme)
    for claim in content["claims"]:
        told = pages["docs/verdicts.md"].count(f"| {claim['statement']} |")
        # Those of the paper that don't hold throughout stand at the top too.
        assert told == 1 + (claim["outcome"] != "holds" and claim["source"] != "ours")
    for entry in content["agreement"]:
        for point in entry["rows"]:
            assert f"| {point['x']:g} | {entry['quantity'].replace('_', ' ')} |" in pages["docs/agreement.md"]
    begin, end = readme.index(verdicts.BEGIN), readme.index(verdicts.END)
    assert pages["README.md"].startswith(readme[:begin])
    assert pages["README.md"].endswith(readme[end:])
    assert verdicts.documents(content, pages["README.md"]) == pages


def test_verdicts_say_of_which_commits_the_numbers_are(generate, pages, monkeypatch, readme, root, tmp_path):
    for number, version in enumerate(["0.1.0 aaa", "0.1.0 aaa", "0.1.0 bbb+changes", "0.1.0"]):
        xr.Dataset(attrs={"code_version": version}).to_netcdf(tmp_path / f"fig{number}.nc")
        os.utime(tmp_path / f"fig{number}.nc", (number, number))
    found = generate.commits(tmp_path)
    assert list(found.items()) == [("bbb+changes", 1), ("aaa", 2)]
    content = json.loads((root / "tests/data/claims.json").read_text())
    text = load_module(root, "verdicts").documents(content, readme, found)["docs/verdicts.md"]
    assert "were put together at commit `bbb+changes` (1 figure), `aaa` (2 figures).\n" in text
    (tmp_path / "verdicts.md").write_text(text)
    monkeypatch.setattr(pages("verdicts"), "DOCS", tmp_path)
    assert pages("verdicts").commits() == "`bbb+changes` (1 figure), `aaa` (2 figures)"
    assert pages("verdicts").claims()


def test_without_results_verdicts_stay_as_they_are(generate, monkeypatch, tmp_path, capsys):
    (tmp_path / "environment.yml").write_text("")
    monkeypatch.setattr(generate, "ROOT", tmp_path)
    monkeypatch.setattr(generate, "GENERATED", {"environment.yml": lambda: "name: ggdln\n"})
    generate.main()
    assert "make report" in capsys.readouterr().out
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("environment.yml", "name: ggdln\n")]


def test_library_example_of_the_readme_agrees_with_itself(readme):
    """Theory and exact posterior predict the same, as networks of one width and depth should; gradient descent nearly so."""
    (example,) = re.findall(r"```python\n(import numpy as np, ggdln\n.*?)```", readme, re.S)
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", example], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    first, *rows = done.stdout.splitlines()
    assert first.endswith("(8, 8)")
    _, descent, posterior, limit = map(float, re.findall(r"[\d.]+", rows[0]))
    assert posterior > 0.97
    assert descent > 0.8
    assert limit > 0.8


def test_estimators_of_the_readme_learn(readme):
    (example,) = re.findall(r"```python\n(import ggdln\n.*?)```", readme, re.S)
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", example], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout.splitlines()[0].split()[-1]) > 0.9
    assert "Solution(P=178, N0=14, " in done.stdout


def test_documents_name_every_figure_and_every_room(root, readme, raw):
    for figure in raw["figures"]:
        assert f"`make figures/{figure}.pdf`" in readme
    design = (root / "docs/design.md").read_text()
    table = design[design.index("| where | what |") :].split("\n\n")[0]
    for room in (root / "src/ggdln").glob("*/__init__.py"):
        assert re.search(rf"[`/]{room.parent.name}`", table)


def test_files_and_targets_that_the_documents_name_are_there(root):
    targets = set(re.findall(r"^([a-z][a-z-]*):", (root / "Makefile").read_text(), re.M))
    listed = subprocess.run(["git", "ls-files", "docs/*.md"], cwd=root, capture_output=True, text=True).stdout.split()
    # Pages that the site is built from code for are not in git; the build checks links to them.
    ignored = (root / ".gitignore").read_text().split()
    for page in [root / "README.md", *(root / name for name in listed)]:
        text = page.read_text()
        for link in re.findall(r"\]\((?!http)([^)#]+)\)", text):
            path = (page.parent / link).resolve()
            made = any(f"/{path.relative_to(root)}".startswith(name) for name in ignored if name.startswith("/docs/"))
            assert made or path.exists(), f"{page.name} links to {link}"
        for path in re.findall(r"`((?:src|config|workflow|tests|benchmarks|docs)/[\w./-]+)`", text):
            assert (root / path).exists(), f"{page.name} names {path}"
        for target in re.findall(r"`make ([a-z-]+)`", text):
            assert target in targets, f"{page.name} names make {target}"


def test_every_public_name_has_an_example_for_the_site(root):
    """Without it the site isn't built."""
    assert [name for name in NAMES if not (root / f"docs/examples/use_{name}.py").exists()] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_example_of_a_public_name_runs(root, name, tmp_path):
    command = [sys.executable, root / f"docs/examples/use_{name}.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr


# ---- Copies of figures


def test_numbers_of_a_figure_fit_into_a_small_file(root):
    """Short lines are whole; of long ones every k-th point is there, and both ends."""
    pictures = load_module(root, "pictures")
    few = [["a", "bias", "e", "theory", "theory", "N", str(n), *["0.123456"] * 3] for n in range(20)]
    assert len(pictures.small_table(few).splitlines()) == 21
    many = [["b", "density", "e", "gp", f"L = {L}", "x", str(i), *["0.123456"] * 3] for L in range(10) for i in range(1000)]
    content = pictures.small_table(few + many)
    assert len(content) <= pictures.MOST_BYTES
    head, *rows = [line.split(",") for line in content.decode().splitlines()]
    assert head == pictures.HEAD
    assert rows[:20] == few
    for L in range(10):
        found = [int(row[6]) for row in rows if row[4] == f"L = {L}"]
        assert (found[0], found[-1]) == (0, 999)
        assert len(set(np.diff(found[:-1]).tolist())) == 1
    assert pictures.small_table([]).decode().split() == [",".join(pictures.HEAD)]


def test_numbers_of_a_heatmap_are_lines_of_one_y_each(root):
    pictures = load_module(root, "pictures")
    spec = {"kind": "heatmap", "experiment": "e", "method": "gp", "quantity": "bias", "x": "N", "y": "sigma"}
    layout = Figure(caption="", size=[3, 3], mosaic=["a"], panels={"a": REGISTRIES["panel"].make(spec)})
    bias = np.arange(12.0).reshape(2, 3, 2)
    data = xr.Dataset({"bias": (("draw", "N", "sigma"), bias)}, {"draw": range(2), "N": [5, 10, 20], "sigma": [0.5, 1.0]})
    rows = list(pictures.numbers(layout, {"e/gp": data}, {}))
    assert [row[:8] for row in rows[:4]] == [
        ["a", "bias", "e", "gp", "sigma = 0.5", "N", "5", "3"],
        ["a", "bias", "e", "gp", "sigma = 0.5", "N", "10", "5"],
        ["a", "bias", "e", "gp", "sigma = 0.5", "N", "20", "7"],
        ["a", "bias", "e", "gp", "sigma = 1", "N", "5", "4"],
    ]
    assert len(rows) == 6


# ---- Pages that the site is built from code for


@pytest.fixture
def pages(monkeypatch):
    """A function that imports a module of docs/pages."""
    monkeypatch.syspath_prepend(ROOT / "docs")
    return lambda name: importlib.import_module(f"pages.{name}")


def entries(text, kind):
    """The first words of the entries of a kind: everything up to the parameters."""
    return re.findall(rf"^:+\{{py:{kind}\}} ([\w.]+)", text, re.M)


def test_the_page_of_the_library_tells_every_method(pages):
    """All that a user may call has a signature and a docstring there, and nothing that only the library calls."""
    api = pages("api")
    text = api.page()
    sections = {part.split("(")[0].split("\n")[0]: part for part in re.split(r"^:+\{py:class\} ", text, flags=re.M)[1:]}
    estimators = {name: "fit get_params set_params" for name in api.GROUPS["Estimators"]}
    for name in estimators:
        estimators[name] += " transform fit_transform" if name.endswith("Gates") else " predict score"
    estimators["GGDLNRegressor"] += " sample_y"
    estimators["GGDLNClassifier"] += " predict_proba decision_function"
    for name, methods in estimators.items():
        assert set(methods.split()) <= set(entries(sections[f"ggdln.{name}"], "method")), name
    assert "return_std: bool = False" in sections["ggdln.GGDLNRegressor"]
    predictor = entries(sections["ggdln.theory.predictor.Predictor"], "method")
    assert set(predictor) == {"facts", "kernel", "kernel_diagonal", "plot", "predict", "prediction", "sample", "save"}
    for path in api.RETURNED:
        module, name = path.rsplit(".", 1)
        cls = getattr(importlib.import_module(module), name)
        told = predictor + [found for kind in ("method", "attribute") for found in entries(sections[path], kind)]
        for member, thing in inspect.getmembers(cls, inspect.isfunction):
            if member[0] != "_" and member not in api.INTERNAL and member != "facts":
                assert member in told, (name, member)
                assert inspect.getdoc(thing), (name, member)
    assert not re.search(r"_request\(|metadata_routing", text)
    for name in NAMES:
        assert f" ggdln.{name}{api.signature(getattr(ggdln, name))}\n" in text


def test_names_in_signatures_have_an_entry(pages):
    """Those that are neither Python's nor those of another package, so that links to them lead somewhere."""
    text = pages("api").page()
    heads = re.findall(r"^:+\{py:(?:function|class|method)\} .*\)(?: -> .*)?$|^:type: .*$", text, re.M)
    named = set(re.findall(r"(?<![\w.'])[A-Z]\w+", re.sub(r"\w+=|\w+(?=: )|'\w+'", "", "\n".join(heads))))
    assert {"Inputs", "Values", "NetworkKeywords", "PerLayer", "Told"} <= named
    assert named - set(typing.__all__) - {"PathLike", "None", "True", "False"} == set(entries(text, "type"))


def test_the_page_of_the_configuration_tells_every_model(pages):
    """Every model that a value of the configuration may have stands there, or on the pages of kinds."""
    configuration = pages("configuration")
    kinds = [registry.get(name) for registry in REGISTRIES.values() for name in registry.own()]
    found, new = set(), [Root, ExperimentValues, Claim, Agreement, *kinds]
    while new:
        model = new.pop()
        found.add(model)
        below = [m for field in model.model_fields.values() for m in configuration.models(field.annotation)]
        new += [m for m in below if m not in found]
    assert found == {model for model, _ in configuration.PARTS.values()} | set(kinds)
    text = configuration.page()
    for title, (model, _) in configuration.PARTS.items():
        section = text.split(f"\n## {title}\n")[1].split("\n## ")[0]
        assert re.findall(r"^\| `(\w+)` \|", section, re.M) == list(model.model_fields)
    for anchor in re.findall(r"\]\(#([\w-]+)\)", text):
        assert anchor in [title.lower().replace(" ", "-") for title in configuration.PARTS]


def test_the_page_of_commands_tells_every_target(pages, root):
    told, _ = pages("running").help_text()
    targets = {target.split()[1].split("/")[0] for target, _ in told}
    assert targets == set(re.findall(r"^([a-z][a-z-]*):", (root / "Makefile").read_text(), re.M)) - {"clean"}
    assert not [meaning for _, meaning in told if "make " in meaning]


def test_every_kind_has_a_picture(pages):
    drawn = set(pages("sketches").SKETCHES)
    assert drawn == {(sort, name) for sort, registry in REGISTRIES.items() for name in registry.own()}


def test_the_set_of_torchvision_is_drawn_without_a_download(pages, tmp_path):
    assert pages("sketches").save("task", "torchvision", tmp_path) == "task_torchvision.png"
