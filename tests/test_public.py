"""The public surface: every name is there, and the theory doesn't pull in torch."""

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


def test_theory_needs_no_torch():
    program = "import sys, ggdln; ggdln.solve; ggdln.gp_limit; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0
