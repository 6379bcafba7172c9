"""Which source files a program is made of, found by reading its import statements."""

import ast
from functools import cache
from pathlib import Path


def modules_of(program, folders):
    """The file `program` and all modules under `folders` that it imports, directly or not, sorted."""
    folders = tuple(Path(folder) for folder in folders)
    found, queue = set(), [Path(program)]
    while queue:
        path = queue.pop()
        if path not in found:
            found.add(path)
            queue += _imported(path, folders)
    return sorted(found)


@cache
def _imported(path, folders):
    files = []
    for node in ast.walk(ast.parse(path.read_text(), str(path))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            continue
        for name in names:
            files += _files(name, folders)
    return files


def _files(name, folders):
    """The files that importing `name` runs: the packages above it and the module itself."""
    parts = name.split(".")
    files = []
    for folder in folders:
        for i in range(1, len(parts) + 1):
            base = folder.joinpath(*parts[:i])
            files += [path for path in (base / "__init__.py", base.with_suffix(".py")) if path.is_file()]
    return files
