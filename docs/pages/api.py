"""The library: every public name with its signature, what its docstring says, and an example that a test runs.

Classes that are returned and not made by the user, such as `Solution`, are told with what they offer.
"""

import importlib
import inspect
from functools import cache

import ggdln
from ggdln.public import NAMES
from pages import DOCS
from pages.markdown import docstring

GROUPS = {
    "Data and gates": ("make_task", "fit_gates"),
    "Theory": ("solve", "solve_sweep", "solve_exact", "select", "gp_limit", "capacity", "load", "Solver"),
    "Estimators": (
        "GGDLNRegressor",
        "GGDLNClassifier",
        "RandomGates",
        "RectifiedGates",
        "LocalGates",
        "OpenGates",
        "SoftKMeansGates",
    ),
    "Simulations": ("train_ensemble", "train_relu", "langevin", "sample_posterior", "Training", "Sampling", "Runtime"),
    "Statistics": ("predictor_statistics", "ensemble_statistics"),
}
RETURNED = {
    # class: the group that it stands in
    "ggdln.tasks.TaskData": "Data and gates",
    "ggdln.gates.FittedGates": "Data and gates",
    "ggdln.theory.solution.Solution": "Theory",
    "ggdln.theory.loops.LoopSolution": "Theory",
    "ggdln.theory.exact.ExactSolution": "Theory",
    "ggdln.theory.select.Selection": "Theory",
    "ggdln.theory.gp.GPSolution": "Theory",
}


def groups():
    """Group -> names, with all names that no group has at the end."""
    rest = [name for name in NAMES if not any(name in names for names in GROUPS.values())]
    return GROUPS | ({"More": tuple(rest)} if rest else {})


@cache
def targets():
    """Name -> full name, of everything that has an entry."""
    found = {name: f"ggdln.{name}" for name in NAMES}
    return found | {path.rsplit(".", 1)[1]: path for path in RETURNED}


def reference(name):
    """A link to an entry, by what stands in backquotes in a docstring."""
    first, _, rest = name.partition(".")
    if name in targets():
        return f"{{py:obj}}`{name} <{targets()[name]}>`"
    if first in targets() and rest:
        return f"{{py:obj}}`{name} <{targets()[first]}>`"
    return None


def signature(thing):
    """The parameters without annotations."""
    found = inspect.signature(thing)
    plain = [p.replace(annotation=inspect.Parameter.empty) for p in found.parameters.values() if p.name != "self"]
    return str(found.replace(parameters=plain, return_annotation=inspect.Signature.empty))


def directive(kind, head, body, depth=4):
    fence = ":" * depth
    return f"{fence}{{py:{kind}}} {head}\n\n{body}\n{fence}\n"


def example(name):
    """The example of a name, as a block of code."""
    file = DOCS / f"examples/use_{name}.py"
    return f"\n\n```python\n{file.read_text().strip()}\n```" if file.exists() else ""


def members(cls):
    """What an object of a class offers: properties and methods with a docstring, its bases' included."""
    for name, member in inspect.getmembers(cls):
        thing = getattr(member, "func", member)  # of a cached property
        thing = getattr(thing, "fget", thing)
        called = inspect.isfunction(thing) and thing is member
        if (name.startswith("_") and name != "__call__") or not (thing.__doc__ if hasattr(thing, "__doc__") else None):
            continue
        if not (inspect.isfunction(thing) and thing.__module__.startswith("ggdln")):
            continue
        if name in INTERNAL:
            continue
        kind = "method" if called else "attribute"
        yield directive(kind, name + (signature(thing) if called else ""), docstring(thing, reference), 4)


INTERNAL = {"moments", "between", "diagonal", "dataset", "data", "coexisting"}
"""Methods of `Solution` that its own modules call."""


def public(name):
    thing = getattr(ggdln, name)
    kind = "class" if inspect.isclass(thing) else "function"
    body = docstring(thing, reference) + example(name)
    return directive(kind, f"ggdln.{name}{signature(thing)}", body)


def returned(path):
    module, name = path.rsplit(".", 1)
    cls = getattr(importlib.import_module(module), name)
    body = "\n\n".join([docstring(cls, reference), *members(cls)])
    return directive("class", path, body, 6)


def page():
    missing = [name for name in NAMES if not (DOCS / f"examples/use_{name}.py").exists()]
    if missing:
        raise SystemExit(f"docs/examples has no example for {', '.join(missing)}")
    parts = [
        "# The library",
        "",
        "`import ggdln` gives these names, each loaded on first use: what needs only the theory never imports torch. Arrays are NumPy's;",
        "$P$ training inputs of dimension $N_0$ are `x` of shape `(P, N0)`, their gates `(P, M)`, their labels `(P,)`. A value that can't",
        "be accepted is refused with its name, what it is and what would be accepted.",
        "",
    ]
    for group, names in groups().items():
        parts += [f"## {group}", ""]
        parts += [public(name) for name in names]
        parts += [returned(path) for path, where in RETURNED.items() if where == group]
    return "\n".join(parts)
