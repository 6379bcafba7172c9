"""One set of versions: pyproject.toml, constraints.txt and environment.yml agree."""

import re
import tomllib

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


@pytest.fixture
def pins(root):
    lines = [line for line in (root / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.]+", line) for line in lines)
    return {canonicalize_name(name): version for name, version in (line.split("==") for line in lines)}


@pytest.fixture
def needed(root):
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    return [
        Requirement(text) for group in (project["dependencies"], *project["optional-dependencies"].values()) for text in group
    ]


def test_every_requirement_is_pinned_once_and_only_in_the_constraints(needed, pins):
    for requirement in needed:
        assert canonicalize_name(requirement.name) in pins
        assert not requirement.specifier


def test_conda_environment_has_the_same_versions(root, needed, pins):
    environment = yaml.safe_load((root / "environment.yml").read_text())
    *conda, pip = environment["dependencies"]
    assert conda == ["python=3.11", "pip"]
    listed = {canonicalize_name(r.name): str(r.specifier) for r in map(Requirement, pip["pip"])}
    assert listed == {canonicalize_name(r.name): f"=={pins[canonicalize_name(r.name)]}" for r in needed}


def test_installed_versions_are_the_pinned_ones(needed, pins):
    from importlib.metadata import version

    for requirement in needed:
        assert version(requirement.name).split("+")[0] == pins[canonicalize_name(requirement.name)]
