"""Globally gated deep linear networks: exact finite-width theory, and the dynamics it is compared with.

The public names, listed in `ggdln.public`, are loaded on first use: `import ggdln` is cheap, and a program that only needs the
theory never imports torch.
"""

from importlib import import_module


def __getattr__(name):
    if name == "__version__":
        return import_module("importlib.metadata").version("ggdln")
    public = import_module("ggdln.public").NAMES
    if name in public:
        try:
            return getattr(import_module(public[name]), name)
        except ModuleNotFoundError as error:
            if error.name in ("torch", "arviz_stats"):
                message = f"ggdln.{name} needs {error.name}, which is not installed: pip install 'ggdln[networks]'"
                raise ModuleNotFoundError(message, name=error.name) from error
            raise
    raise AttributeError(f"module 'ggdln' has no attribute {name!r}; it has {', '.join(sorted(public))}")


def __dir__():
    return [*sorted(import_module("ggdln.public").NAMES), "__version__"]
