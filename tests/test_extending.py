"""CONTRIBUTING.md does what it says: its six kinds give a figure and a verdict, in the library's folders and in a file outside."""

import json
import re
import subprocess
import sys

import pytest
from helpers import ROOT, copy_project

TEXT = (ROOT / "CONTRIBUTING.md").read_text()
FILES = {name: code for name, _, code in re.findall(r"`([\w/.]+)`:\n\n```(python|yaml)\n(.*?)```", TEXT, re.S)}
KINDS = {name: code for name, code in FILES.items() if name.endswith(".py")}
(COMMAND,) = re.findall(r"```bash\n(.*?)\n```", TEXT, re.S)


def run(folder, *more):
    """The command of the document."""
    name, *arguments = COMMAND.split()
    command = [sys.executable, "-m", name, *more, *arguments]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600)
    assert result.returncode == 0, result.stdout + result.stderr
    return json.loads((folder / "results/mine/claims/mine_share.json").read_text())


def is_made(folder, verdict):
    return (folder / "figures/mine/mine.pdf").read_bytes()[:4] == b"%PDF" and (verdict["outcome"], verdict["draws"]) == (
        "holds",
        2,
    )


@pytest.fixture(scope="module")
def verdict(tmp_path_factory):
    """What the kinds say in the folders of the library, to which nothing else is added."""
    folder = tmp_path_factory.mktemp("project")
    copy_project(ROOT, folder)
    for name, text in FILES.items():
        assert not (folder / name).exists()
        (folder / name).write_text(text)
    found = run(folder)
    assert is_made(folder, found)
    return found


def test_a_kind_of_each_sort_is_one_file(verdict):
    assert [name.split("/")[-2] for name in KINDS] == ["tasks", "gates", "methods", "observables", "panels", "conditions"]
    assert verdict["condition"] == {"kind": "stays", "within": 0.2}


@pytest.mark.slow
def test_kinds_in_a_file_outside_the_project_give_the_same(verdict, tmp_path):
    """From a folder of the user's, without a change of the project."""
    (tmp_path / "my_kinds.py").write_text("\n".join(KINDS.values()))
    (tmp_path / "mine.yaml").write_text(FILES["mine.yaml"] + "kinds: [my_kinds.py]\n")
    found = run(tmp_path, "--snakefile", str(ROOT / "Snakefile"))
    assert is_made(tmp_path, found)
    assert found == verdict
