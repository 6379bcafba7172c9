"""What checkers, editors and help see of the public names, which are loaded lazily; and the errors of what is given wrongly."""

import inspect
import re
import subprocess
import sys

import jedi
import numpy as np
import pytest

import ggdln
from ggdln.core.errors import InputError
from ggdln.core.types import NetworkKeywords
from ggdln.public import LINES, NAMES

PROGRAM = """
import ggdln

x = [[0.0], [1.0]]
gates = ggdln.fit_gates({"kind": "random", "M": 3}, x, seed=0)
solution = ggdln.solve(x, gates(x), [0.0, 1.0], width=3, temperature=0.1)
network = ggdln.GGDLNRegressor(ggdln.RandomGates(M=3), width=3).fit(x, [0.0, 1.0])
reveal_type(gates)
reveal_type(solution)
reveal_type(solution.predict(x, gates(x)))
reveal_type(network)
reveal_type(network.predict(x))
reveal_type(ggdln.solve(x, gates(x), [0.0, 1.0], width=3, loops=1))
ggdln.solve_exact(x, gates(x), [0.0, 1.0], width=3, depth=1, temperature=0.1)
ggdln.solve(x, gates(x), [0.0, 1.0], width="3")
ggdln.RandomGates(m=3)
ggdln.solve_exact(x, gates(x), [0.0, 1.0], temperature=0.1, widths=3)
ggdln.langevin(x, gates(x), [0.0, 1.0], x, gates(x), temperature=0.1, seed=0, width=3, sigma="1")
"""
SEEN = ("FittedGates", "Solution", "tuple[", "GGDLNRegressor", "ndarray", "LoopSolution")
WRONG = (15, 16, 17, 18)
"""Lines in which a width is text, M is written m, width has another name, and sigma is text."""


def test_every_public_name_is_listed_with_a_line_and_found():
    for name, line in LINES.items():
        assert callable(getattr(ggdln, name))
        assert f"{name:22}{line}" in ggdln.__doc__.splitlines()
    assert set(dir(ggdln)) == {*NAMES, "__version__"}


def test_help_names_all_in_a_line_each():
    told = subprocess.run(
        [sys.executable, "-c", "import ggdln; help(ggdln)"], capture_output=True, text=True, check=True
    ).stdout
    for name, line in LINES.items():
        assert any(text.split() == [name, *line.split()] for text in told.splitlines())


@pytest.mark.slow
@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_checkers_see_signatures(checker, tmp_path):
    (tmp_path / "use.py").write_text(PROGRAM)
    command = [sys.executable, "-m", checker, *(["--pythonpath", sys.executable] if checker == "pyright" else []), "use.py"]
    told = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True).stdout
    revealed = re.findall(r"(?:Revealed type is|Type of \".*\" is) \"(.*)\"$", told, re.M)
    assert [type_ for type_, name in zip(revealed, SEEN, strict=True) if name not in type_] == [], told
    assert tuple(sorted({int(line) for line in re.findall(r"use\.py:(\d+).*error", told)})) == WRONG, told


def test_editors_complete_names_and_arguments():
    names = {found.name for found in jedi.Script("import ggdln\nggdln.").complete(2, 6)}
    assert set(NAMES) <= names
    for name in NAMES:
        call = f"ggdln.{name}("
        seen = jedi.Script(f"import ggdln\n{call}").get_signatures(2, len(call))
        expected = list(inspect.signature(getattr(ggdln, name)).parameters)
        if expected[-1:] == ["network"]:
            expected[-1:] = NetworkKeywords.__annotations__
        assert [[parameter.name for parameter in signature.params] for signature in seen] == [expected] * len(seen), name
        assert seen, name


RANDOM = {"kind": "random", "M": 3}
X = np.zeros((4, 2))


@pytest.mark.parametrize(("call", "told"), [
    (lambda: ggdln.fit_gates({"kind": "random"}, X, seed=1), "gates.M is missing; accepted: a whole number >= 1"),
    (lambda: ggdln.fit_gates({"kind": "random", "m": 3}, X, seed=1), "gates.m = 3 is not a known key; accepted here: M, b; did you mean 'M'?"),
    (lambda: ggdln.fit_gates(RANDOM | {"M": -1}, X, seed=1), "gates.M = -1; accepted: a whole number >= 1"),
    (lambda: ggdln.fit_gates(RANDOM | {"b": "x"}, X, seed=1), "gates.b = 'x'; accepted: a number >= -1000"),
    (lambda: ggdln.fit_gates(RANDOM, X * np.nan, seed=1), "x: 8 entries are NaN or infinite"),
    (lambda: ggdln.fit_gates(RANDOM, X, seed=None), "seed: expected a whole number >= 0, got None"),
    (lambda: ggdln.fit_gates("random", X, seed=1), "gates = 'random'; accepted: a mapping with 'kind'"),
    (lambda: ggdln.fit_gates({"M": 3}, X, seed=1), "gates.kind is missing; accepted: file, function, local"),
    (lambda: ggdln.make_task({"kind": "mnist_parity", "p": 3, "P_t": 3}, seed=1), "task.p = 3 is not a known key"),
    (lambda: ggdln.make_task({"kind": "mnist_parity", "P": 3, "P_t": 3}, seed=None), "seed: expected a whole number >= 0"),
])  # fmt: skip
def test_mistakes_are_named(call, told):
    with pytest.raises(InputError) as error:
        call()
    assert told in str(error.value)


def test_numbers_of_numpy_are_numbers():
    assert len(ggdln.fit_gates(RANDOM | {"M": np.int64(3)}, X, seed=np.int64(1))) == 3
