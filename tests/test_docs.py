"""The generated parts of the documentation are those of the current configuration and workflow."""

import importlib.util
import os
import re
import subprocess
import sys

import pytest
import yaml

from ggdln.workflow.config import read_config


@pytest.fixture
def generate(root):
    spec = importlib.util.spec_from_file_location("generate", root / "docs/generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_table_of_assumptions_is_current(root, generate):
    assert (root / "docs/assumptions.md").read_text() == generate.assumptions()


@pytest.mark.xdist_group("workflow")
def test_picture_of_the_rules_is_current(root, generate, tmp_path):
    generate.draw_rule_graph(generate.rule_graph(), tmp_path / "rulegraph.svg")
    assert (tmp_path / "rulegraph.svg").read_bytes() == (root / "docs/rulegraph.svg").read_bytes()


def block(root, language):
    return re.search(rf"```{language}\n(.*?)```", (root / "README.md").read_text(), re.S).group(1)


def test_library_example_of_the_readme_runs(root):
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", block(root, "python")], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert "(20, 20)" in done.stdout


def test_own_experiment_of_the_readme_is_valid(root, raw, schema):
    for section, content in yaml.safe_load(block(root, "yaml")).items():
        raw[section] |= content
    config = read_config(raw, schema)
    assert config.experiments["mine"].task["P"] == 500
    assert "mine" in config.figures


def test_readme_names_every_figure(root, raw):
    text = (root / "README.md").read_text()
    for figure in raw["figures"]:
        assert f"`make figures/{figure}.pdf`" in text
