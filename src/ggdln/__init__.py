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
        return getattr(import_module(public[name]), name)
    raise AttributeError(f"module 'ggdln' has no attribute {name!r}; it has {', '.join(sorted(public))}")


def __dir__():
    return [*sorted(import_module("ggdln.public").NAMES), "__version__"]
