"""Globally gated deep linear networks: exact finite-width theory, and the dynamics it is compared with.

The public names are loaded on first use: `import ggdln` is cheap, and a program that only needs the theory never imports torch.
They stand in `__init__.pyi`, where type checkers and editors find them too.
"""

from importlib import import_module
from importlib.util import find_spec

from ggdln.public import LINES, NAMES

__doc__ = f"{__doc__}\n" + "\n".join(f"{name:22}{LINES[name]}" for name in NAMES)


def __getattr__(name):
    if name == "__version__":
        return import_module("importlib.metadata").version("ggdln")
    if name in NAMES:
        try:
            return getattr(import_module(NAMES[name]), name)
        except ModuleNotFoundError as error:
            if error.name == "torch":
                message = f"ggdln.{name} needs {error.name}, which is not installed: pip install 'ggdln[networks]'"
                raise ModuleNotFoundError(message, name=error.name) from error
            raise
    raise AttributeError(f"module 'ggdln' has no attribute {name!r}; it has {', '.join(NAMES)}")


def __dir__():
    """What can be loaded here; `help` loads all of it."""
    torch = find_spec("torch") is not None
    return [*(name for name, module in NAMES.items() if torch or ".networks." not in module), "__version__"]
