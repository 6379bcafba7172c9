"""Which source files a program is made of, and a fingerprint of what they compute.

The fingerprint is taken of the parsed code without what no result depends on: comments, docstrings, descriptions of
parameters, predicted costs, and functions whose names say that they only check or predict. Nor do names, symbols and looks
count, or functions that only give words, except for programs that put such words into what they make. So a new word reruns no
calculation.
"""

import ast
import hashlib
import json
import os
import platform
from functools import cache
from pathlib import Path

PREDICTING = {"Costs", "problems", "terms", "work"}
"""Calls and functions on which no result depends."""
TELLING = {"Variable", "Look", "words", "heading", "sizes"}
"""Those on which only figures and pages depend."""


def modules_of(programs, folders):
    """The files `programs` and all modules under `folders` that they import, directly or not, sorted."""
    folders = tuple(Path(folder) for folder in folders)
    found, queue = set(), [Path(program) for program in programs]
    while queue:
        path = queue.pop()
        if path not in found:
            found.add(path)
            queue += _imported(path, folders)
    return sorted(found)


def of_job(programs, folders, *, own=(), words=False):
    """The fingerprint of the programs of a job, and of files of the user's `own`, with all modules that they import.

    Of the user's files and the modules beside them every function counts, whatever its name.
    """
    beside = [Path(file).parent for file in own]
    whole = set(modules_of(own, beside))
    files = modules_of([*programs, *own], [*folders, *beside])
    return fingerprint(files, words=words, whole=whole)


def fingerprint(files, *, words=False, whole=()):
    """A short hash of what the files compute; with `words`, also of what they say; of those in `whole` nothing is left out."""
    total = hashlib.sha256()
    for file in files:
        without = () if file in whole else PREDICTING if words else PREDICTING | TELLING
        total.update(f"{Path(file).name} {_digest(str(file), frozenset(without))}\n".encode())
    return total.hexdigest()[:16]


def forget():
    """Read all files anew from here on."""
    for function in (_content, _imported, _files, _digest):
        function.cache_clear()


RECORD = ".snakemake/code.json"
"""Where the workflow leaves its findings for its jobs."""

_VERSION = hashlib.sha256(Path(__file__).read_bytes()).hexdigest() + platform.python_version()
"""What else the findings depend on: this file, and how this Python shows parsed code."""

_found: dict = {}
"""What was found out about the contents of files, by their hashes: to parse them takes longer than many a job."""


def recall(path):
    """Take over what `record` wrote to a file, if that is there and whole."""
    try:
        told = json.loads(Path(path).read_text())
    except (OSError, ValueError):
        return
    if isinstance(told, dict) and told.pop("version", None) == _VERSION:
        _found.update(told)


def record(path):
    """Keep what was found out in a file; where that can't be written it is found out again."""
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".{os.getpid()}")
        part.write_text(json.dumps({"version": _VERSION} | _found))
        part.replace(path)
    except OSError:
        pass


@cache
def _content(path):
    """The hash and the text of a file."""
    content = Path(path).read_bytes()
    return hashlib.sha256(content).hexdigest(), content.decode()


@cache
def _digest(path, without):
    name, text = _content(path)
    key = " ".join([name, *sorted(without)])
    if key not in _found:
        tree = _Without(without).visit(ast.parse(text, path))
        _found[key] = hashlib.sha256(ast.dump(tree).encode()).hexdigest()
    return _found[key]


class _Without(ast.NodeTransformer):
    """Takes docstrings, descriptions, and calls and functions of some names out of parsed code."""

    def __init__(self, names):
        self.names = names

    def visit_Expr(self, node):
        is_text = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        return None if is_text else self.generic_visit(node)

    def visit_FunctionDef(self, node):
        return None if node.name in self.names else self.generic_visit(node)

    def visit_Call(self, node):
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        if name in self.names and name[0].isupper():
            return ast.Constant(None)
        node.keywords = [keyword for keyword in node.keywords if keyword.arg != "description"]
        return self.generic_visit(node)


@cache
def _imported(path, folders):
    name, text = _content(str(path))
    key = f"{name} imports"
    if key not in _found:
        _found[key] = _names(ast.parse(text, str(path)))
    return [file for module in _found[key] for file in _files(module, folders)]


def _names(tree):
    """The modules that parsed code imports, or names in them."""
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return names


@cache
def _files(name, folders):
    """The files that importing `name` runs: the packages above it and the module itself."""
    parts = name.split(".")
    files = []
    for folder in folders:
        if not folder.joinpath(parts[0]).exists() and not folder.joinpath(f"{parts[0]}.py").exists():
            continue
        for i in range(1, len(parts) + 1):
            base = folder.joinpath(*parts[:i])
            files += [path for path in (base / "__init__.py", base.with_suffix(".py")) if path.is_file()]
    return files
