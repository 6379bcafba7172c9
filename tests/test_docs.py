"""Generated documents are what the present code and configuration give, and what the README says can be done works."""

import importlib.util
import json
import os
import re
import subprocess
import sys

import pytest

from ggdln.public import NAMES

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
