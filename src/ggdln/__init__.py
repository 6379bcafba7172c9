"""Globally gated deep linear networks: exact finite-width theory, and the dynamics it is compared with.

The public names are loaded on first use, so ``import ggdln`` is cheap and a program that only needs the theory
never imports torch.
"""

from importlib import import_module

__version__ = "0.1.0"

_PUBLIC = {
    "solve": "ggdln.theory.solution",
    "solve_sweep": "ggdln.theory.solution",
    "gp_limit": "ggdln.theory.gp",
    "capacity": "ggdln.theory.capacity",
    "predictor_statistics": "ggdln.statistics",
    "fit_gates": "ggdln.gates",
    "make_task": "ggdln.tasks.make",
}

__all__ = sorted(_PUBLIC)


def __getattr__(name):
    if name in _PUBLIC:
        return getattr(import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module 'ggdln' has no attribute {name!r}; it has {', '.join(__all__)}")


def __dir__():
    return [*__all__, "__version__"]
