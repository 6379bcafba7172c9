"""The library: every public name with its signature, what its docstring says, and an example that a test runs.

Classes are told with the methods and properties that they offer, those too that are returned and not made by the user, such as
`Solution`. Annotations are those of the source, with links to what has an entry.
"""

import ast
import importlib
import inspect
import itertools
import re
import textwrap
from dataclasses import is_dataclass
from functools import cache

import ggdln
from ggdln.public import NAMES
from ggdln.theory.predictor import Predictor
from pages import DOCS
from pages.markdown import docstring, escape

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
    "ggdln.theory.predictor.Predictor": "Theory",
    "ggdln.theory.solution.Solution": "Theory",
    "ggdln.theory.solution.Sweep": "Theory",
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


TYPES = "ggdln.core.types"
SHORT = {"np": "numpy", "xr": "xarray", "os": "os"}
"""Modules by the names that annotations have for them."""


def definition(thing):
    """The node of the parsed source that defines a function or a class; nothing if its source isn't Python of a file."""
    try:
        return ast.parse(textwrap.dedent(inspect.getsource(thing))).body[0]
    except (OSError, TypeError):
        return None


def annotations(thing):
    """Parameter -> annotation, as the source has it; "return" among them."""
    node = definition(thing.__init__ if inspect.isclass(thing) and not is_dataclass(thing) else thing)
    if isinstance(node, ast.ClassDef):
        found = {line.target.id: line.annotation for line in node.body if isinstance(line, ast.AnnAssign)}
    elif isinstance(node, ast.FunctionDef):
        given = [*node.args.args, *node.args.kwonlyargs, *filter(None, (node.args.vararg, node.args.kwarg))]
        found = {argument.arg: argument.annotation for argument in given} | {"return": node.returns}
    else:
        found = {}
    return {name: written(annotation) for name, annotation in found.items() if annotation is not None}


def written(annotation):
    """An annotation as text, with full names of what has an entry."""
    text = annotation.value if isinstance(annotation, ast.Constant) and annotation.value else ast.unparse(annotation)
    text = re.sub(r"(?<![\w.])(np|xr|os)(?=\.)", lambda found: SHORT[found[0]], str(text))
    return re.sub(r"(?<![\w.])[A-Z]\w+", lambda found: targets().get(found[0], found[0]), text)


def signature(thing):
    """Parameters with annotations and defaults, and what comes back."""
    told, parts, found = annotations(thing), [], inspect.signature(thing)
    parameters = [p for p in found.parameters.values() if p.name != "self"]
    star = False
    for p in parameters:
        if p.kind is p.KEYWORD_ONLY and not star:
            star = True
            parts.append("*")
        name = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "") + p.name
        star |= p.kind is p.VAR_POSITIONAL
        annotation = f": {told[p.name]}" if p.name in told else ""
        blank = " " if annotation else ""
        parts.append(name + annotation + ("" if p.default is p.empty else f"{blank}={blank}{p.default!r}"))
    back = "" if inspect.isclass(thing) else told.get("return", "")
    return f"({', '.join(parts)})" + (f" -> {back}" if back else "")


def directive(kind, head, body, depth=4):
    fence = ":" * depth
    return f"{fence}{{py:{kind}}} {head}\n\n{body}\n{fence}\n"


def example(name):
    """The example of a name, as a block of code."""
    file = DOCS / f"examples/use_{name}.py"
    return f"\n\n```python\n{file.read_text().strip()}\n```" if file.exists() else ""


def members(cls):
    """What an object of a class offers: its properties and methods, those of its bases included."""
    for name, member in inspect.getmembers(cls):
        thing = getattr(member, "func", member)  # of a cached property
        thing = getattr(thing, "fget", thing)
        if (name.startswith("_") and name != "__call__") or name in INTERNAL or not inspect.isfunction(thing):
            continue
        if cls is not Predictor and vars(Predictor).get(name) is member:
            continue  # told once for all solutions
        own = thing.__module__.startswith("ggdln")
        if not inspect.getdoc(member if own else thing) or "metadata" in name or REQUEST.fullmatch(name):
            continue
        body = docstring(inspect.getdoc(getattr(cls, name)) or "", reference) if own else borrowed(thing)
        if thing is member:
            yield directive("method", name + signature(thing), body, 4)
        else:
            told = annotations(thing).get("return")
            yield directive("attribute", name + (f"\n:type: {told}" if told else ""), body, 4)


def borrowed(thing):
    """The first sentence of what a base class of another package says of a method."""
    package = thing.__module__.split(".")[0]
    first = re.sub(r":\w+:`([^`<]+?)(?: <[^>]*>)?`", r"\1", inspect.getdoc(thing).split("\n\n")[0])
    return f"{escape(' '.join(first.split()))} (From {PACKAGES.get(package, package)}.)"


PACKAGES = {"sklearn": "scikit-learn"}
REQUEST = re.compile(r"set_\w+_request")
"""Methods by which scikit-learn routes arguments that these estimators don't have."""
INTERNAL = {
    "moments",
    "between",
    "diagonal",
    "components",
    "live",
    "dataset",
    "data",
    "coexisting",
    "filled",
    "of",
    "step_limit",
}
"""Methods that the library's own modules call."""


def public(name):
    thing = getattr(ggdln, name)
    body = docstring(thing, reference) + example(name)
    if not inspect.isclass(thing):
        return directive("function", f"ggdln.{name}{signature(thing)}", body)
    return directive("class", f"ggdln.{name}{signature(thing)}", "\n\n".join([body, *members(thing)]), 6)


def returned(path):
    module, name = path.rsplit(".", 1)
    cls = getattr(importlib.import_module(module), name)
    parts = [docstring(cls, reference)]
    if issubclass(cls, Predictor) and cls is not Predictor:
        shared = [n for n, m in vars(Predictor).items() if n not in INTERNAL and n[0] != "_" and vars(cls).get(n, m) is m]
        names = ", ".join(f"{{py:obj}}`{n} <{targets()['Predictor']}.{n}>`" for n in shared if callable(getattr(Predictor, n)))
        parts.append(f"Like all solutions it has {names}.")
    return directive("class", path, "\n\n".join([*parts, *members(cls)]), 6)


def types(used):
    """The names that annotations in `used` have: what each stands for, and the sentence below it in the source."""
    body = ast.parse(inspect.getsource(importlib.import_module(TYPES))).body
    aliases = {node.target.id: ast.unparse(node.value) for node in body if isinstance(node, ast.AnnAssign)}
    for node, below in itertools.pairwise([*body, None]):
        if isinstance(node, ast.ClassDef):
            name, meaning = node.name, docstring(ast.get_docstring(node))
        elif isinstance(node, ast.AnnAssign):
            is_told = isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)
            told = docstring(below.value.value) if is_told else ""
            name = node.target.id
            meaning = re.sub(r"\b[A-Z]\w+", lambda found: aliases.get(found[0], found[0]), aliases[name])
            meaning = f"`{meaning}`{'. ' + told if told else ''}"
        else:
            continue
        if re.search(rf"\b{name}\b", used):
            yield directive("type", name, meaning)


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
    parts += [
        "## Types",
        "",
        docstring(importlib.import_module(TYPES)),
        "",
        *types("\n".join(re.findall(r"\{py:\w+\} .*|^:type: .*", "\n".join(parts), re.M))),
    ]
    return "\n".join(parts)
