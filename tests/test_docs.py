"""The generated parts of the documentation are those of the current configuration and workflow."""

import importlib.util

import pytest


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
