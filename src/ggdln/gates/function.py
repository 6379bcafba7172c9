"""Gates that a Python function of the user's computes."""

import importlib.util
import inspect
import sys
import traceback
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

import numpy as np
from pydantic import Field

from ggdln.core import seeds
from ggdln.core.errors import InputError
from ggdln.core.kinds import Variable
from ggdln.core.problems import Problem, near
from ggdln.gates import Gates

TRIAL = 64
"""Gaussian inputs on which a function is tried if the configuration doesn't say how many gates it has."""


class Function(Gates):
    """Gates from a function in a Python file of the user's, whose code is run: my_gates(x) gives (n, M) for inputs x (n, N0).

    If the file also has a function `fit(x, rng)`, that gets the training inputs and a random generator and gives an array with
    a row for each gate, which my_gates gets as its second argument. Either may have a parameter M, the number of gates. The
    code counts, with the modules beside it that it imports: an edit reruns what uses the gates.
    """

    from_file: ClassVar[bool] = True
    dims: ClassVar[dict[str, tuple]] = {"fitted": ("gate", "fitted_number")}
    variables: ClassVar[dict[str, Variable]] = {"fitted": Variable("what a function of the user's was fitted to, a row a gate")}

    M: int | None = Field(
        None, ge=1, le=100_000, description="Number M of gates; by default as many as the function gives for Gaussian inputs"
    )
    path: str = Field(
        min_length=1, description="Python file with the function, from the folder where the workflow runs; its code is run"
    )
    name: str = Field(min_length=1, description="Name of the function")

    def problems(self, task):
        try:
            functions = _functions(self.path, _state(self.path))
        except InputError as error:
            return [Problem("gates.path", self.path, str(error))]
        if self.name not in functions:
            others = [other for other in functions if other != "fit"]
            told = f"a function of {self.path}: {', '.join(others) or 'there is none'}{near(self.name, others)}"
            return [Problem("gates.name", self.name, told)]
        needed = [p.name for p in inspect.signature(functions[self.name]).parameters.values() if _needed(p)]
        if needed[1:] and "fit" not in functions:
            told = f"a function of x, or a function fit(x, rng) beside it that gives what {self.name} gets as {needed[1]}"
            return [Problem("gates.name", self.name, told)]
        if self.M is None:
            try:
                self._tried(task)
            except InputError as error:
                told = f"the number of gates, since {TRIAL} Gaussian inputs don't tell it: {error}"
                return [Problem("gates.M", None, told, "missing")]
        return []

    def programs(self):
        return [Path(self.path).absolute()]

    def _tried(self, task):
        """How many gates there are for Gaussian inputs of the dimension of a task."""
        rng = np.random.default_rng(0)
        x = rng.standard_normal((TRIAL, task.sizes().N0))
        arrays, _ = self.fit(x, subtask=None, seed=0, draw=0)
        return self.values(x, None, **arrays).shape[1]

    def settled(self, task):
        return self.model_copy(update={"M": self.M or self._tried(task)})

    def fit(self, x, *, subtask, seed, draw):
        if "fit" not in _functions(self.path, _state(self.path)):
            return {}, {}
        fitted = self._call("fit", x, seeds.rng(seed, "function", self.name, draw))
        if fitted.ndim != 2 or len(fitted) != (self.M or len(fitted)):
            raise InputError(
                f"fit of {self.path} gave the shape {fitted.shape}; accepted: a row for each of the {self.M or ''} gates"
            )
        return {"fitted": fitted}, {}

    def values(self, x, subtask, *, fitted=None):
        found = self._call(self.name, x, *(() if fitted is None else (fitted,)))
        if found.ndim != 2 or found.shape != (len(x), self.M or found.shape[1]):
            told = f"({len(x)}, {self.M or 'M'})"
            raise InputError(f"{self.name} of {self.path} gave the shape {found.shape} for x {x.shape}; accepted: {told}")
        return found

    def _call(self, name, *arguments):
        """What a function of the file gives, as finite numbers."""
        function = _functions(self.path, _state(self.path))[name]
        more = {"M": self.M} if "M" in inspect.signature(function).parameters else {}
        try:
            found = np.asarray(function(*arguments, **more), dtype=np.float64)
        except Exception as error:
            raise InputError(f"{name} of {self.path}{_line(error, self.path)}: {type(error).__name__}: {error}") from error
        if not np.isfinite(found).all():
            raise InputError(f"{name} of {self.path} gave numbers that are NaN or infinite")
        return found


def _needed(parameter):
    """Whether a function must be given this parameter, other than M."""
    positional = parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    return positional and parameter.default is parameter.empty and parameter.name != "M"


def _state(path):
    if not Path(path).is_file():
        others = sorted(map(str, Path(path).parent.glob("*.py")))
        raise InputError(f"a Python file that is there{near(path, others)}")
    return Path(path).stat().st_mtime_ns


@lru_cache(maxsize=4)
def _functions(path, state):
    """The functions of one state of a file, by name."""
    folder, name = str(Path(path).absolute().parent), f"ggdln_function_{Path(path).stem}"
    spec = importlib.util.spec_from_file_location(name, Path(path).absolute())
    if spec is None:
        raise InputError("a file whose name ends in .py")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, folder)  # for modules beside it
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise InputError(f"a file that Python can run{_line(error, path)}: {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove(folder)
    return {name: value for name, value in vars(module).items() if inspect.isfunction(value)}


def _line(error, path):
    """The last line of the file that an error went through, in words."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == str(Path(path).absolute())]
    lines += [error.lineno] if isinstance(error, SyntaxError) else []
    return f", line {lines[-1]}" if lines else ""
