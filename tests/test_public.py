"""The public surface: every name is there, and the theory pulls in neither torch nor what checks types."""

import subprocess
import sys

import pytest

import ggdln
from ggdln.public import NAMES


def test_every_public_name_is_callable():
    assert {"solve", "gp_limit", "train_ensemble", "langevin", "sample_posterior"} <= set(dir(ggdln))
    for name in NAMES:
        assert callable(getattr(ggdln, name))


def test_unknown_names_list_the_known_ones():
    with pytest.raises(AttributeError, match=r"it has capacity, .*, solve, "):
        _ = ggdln.solv


def test_theory_needs_neither_torch_nor_what_checks_types():
    program = "import sys, ggdln; ggdln.solve; ggdln.gp_limit; sys.exit(not {'torch', 'beartype'}.isdisjoint(sys.modules))"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0
