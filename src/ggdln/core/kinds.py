"""Kinds of tasks, gates, methods, observables, panels and conditions: one file each, found by its name.

A kind is a class. Its fields are its parameters, with type, bounds, default and meaning; its methods say what a schema can't,
what it costs and how it is computed or drawn. The kind `noisy_teacher` of a task is the class `NoisyTeacher` in
`ggdln/tasks/noisy_teacher.py`; nothing else has to name it. A file of the user's may hold kinds of any sort, which `add_file`
adds under the names of their classes.
"""

import importlib
import importlib.util
import inspect
import pkgutil
import re
import sys
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import ClassVar

import numpy as np
from pydantic import BaseModel, ConfigDict

from ggdln.core.errors import ConfigError, InputError
from ggdln.core.problems import choices, short, violations
from ggdln.core.variables import Variable


@dataclass(frozen=True)
class Costs:
    """Core-seconds and megabytes for a unit of each term of a job, fitted by `benchmarks/resources.py`."""

    seconds: dict = field(default_factory=lambda: {"start": 1.5, "points": 0.02, "work": 1.0})
    megabytes: dict = field(default_factory=lambda: {"start": 300.0, "inputs": 3.0, "work": 2.0})


@dataclass(frozen=True)
class Terms:
    """What a job does, in amounts of the terms of `Costs`: `work` adds up, of `memory` the largest counts."""

    work: dict = field(default_factory=dict)
    memory: dict = field(default_factory=dict)


@dataclass(frozen=True)
class Look:
    """How lines of a method are drawn: a colour by name, a line (theory) or a marker (simulation)."""

    label: str
    color: str = "ink"
    linestyle: str = ""
    marker: str = ""
    markerfacecolor: str = ""


class Kind(BaseModel):
    """Parameters of a kind of something. Values are taken as they are: no text is read as a number."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)
    sort: ClassVar[str] = ""
    from_file: ClassVar[bool] = False
    """Whether it reads a file of the user's, on whose content its numbers depend; it then has `settled`."""
    variables: ClassVar[dict[str, Variable]] = {}
    """Names, symbols and equations of what it makes or measures."""

    @classmethod
    def kind_name(cls):
        """The name under which configurations know it."""
        return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__).lower()

    def spec(self):
        """Its name and parameters as plain values, from which `make` makes it again."""
        return {"kind": self.kind_name()} | self.model_dump(exclude_none=True)

    def programs(self):
        """Python files of the user's that it runs, beside the one that it is written in."""
        return []


class Registry:
    """The kinds of one sort: the public modules of a package, and what files of the user's have added."""

    def __init__(self, sort, package):
        self.sort, self.package, self.added = sort, package, {}

    @property
    def base(self):
        """The class that all kinds of this sort extend."""
        package = importlib.import_module(self.package)
        return next(c for c in vars(package).values() if isinstance(c, type) and vars(c).get("sort") == self.sort)

    def own(self):
        """Names of the library's own kinds."""
        return list(_modules(self.package))

    def names(self):
        return [*self.own(), *self.added]

    def get(self, name):
        """The class of a kind."""
        if name in self.added:
            return self.added[name][0]
        if name not in self.own():
            raise InputError(f"{self.sort}: got {name!r}, accepted: {choices(name, self.names())}")
        module = importlib.import_module(f"{self.package}.{name}")
        return getattr(module, name.title().replace("_", ""))

    def make(self, spec):
        """The kind that a mapping with "kind" and parameters stands for. Numbers may be those of numpy."""
        if not isinstance(spec, Mapping):
            raise InputError(f"{self.sort} = {short(spec)}; accepted: a mapping with 'kind' and the parameters of that kind")
        values = {name: value.item() if isinstance(value, np.generic) else value for name, value in spec.items()}
        if "kind" not in values:
            raise InputError(f"{self.sort}.kind is missing; accepted: {', '.join(self.names())}")
        cls = self.get(values.pop("kind"))
        found = violations(cls, values, self.sort)
        if found:
            raise InputError("; ".join(map(str, found)))
        return cls(**values)

    def file(self, name):
        """The file that a kind is written in."""
        if name in self.added:
            return self.added[name][1]
        return Path(importlib.import_module(self.package).__file__).parent / f"{name}.py"


@cache
def _modules(package):
    """Names of the public modules of a package."""
    folder = importlib.import_module(package).__path__
    return [module.name for module in pkgutil.iter_modules(folder) if not module.name.startswith("_")]


REGISTRIES = {
    "task": Registry("task", "ggdln.tasks"),
    "gates": Registry("gates", "ggdln.gates"),
    "observable": Registry("observable", "ggdln.observables"),
    "method": Registry("method", "ggdln.experiments.methods"),
    "condition": Registry("condition", "ggdln.study.conditions"),
    "panel": Registry("panel", "ggdln.study.panels"),
}


def add_file(path):
    """Add the kinds that are written in a Python file: (sort, name) of each."""
    if not Path(path).is_file():
        raise ConfigError(f"kinds: there is no file {path}")
    path = Path(path).absolute()
    name = f"ggdln_kinds_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        last = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)][-1:]
        line = error.lineno if isinstance(error, SyntaxError) else last[0].lineno if last else 0
        raise ConfigError(f"kinds: {path}, line {line}: {type(error).__name__}: {error}") from error
    classes = [cls for cls in vars(module).values() if inspect.isclass(cls) and issubclass(cls, Kind)]
    classes = [cls for cls in classes if cls.__module__ == name and cls.sort in REGISTRIES and not cls.__name__.startswith("_")]
    found = {(cls.sort, cls.kind_name()): cls for cls in classes}
    if not found:
        raise ConfigError(f"kinds: {path} holds no kind; accepted: subclasses of ggdln.tasks.Task, ggdln.gates.Gates and so on")
    for sort, kind in found:
        if kind in REGISTRIES[sort].names() and REGISTRIES[sort].file(kind) != path:
            raise ConfigError(f"kinds: {path} has a {sort} {kind!r}; accepted: names that are not taken")
    for (sort, kind), cls in found.items():
        REGISTRIES[sort].added[kind] = cls, path
    return list(found)
