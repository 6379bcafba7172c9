"""An experiment from its sections.

The sections (paper, assumed, varied, reduced) are joined; each part of an experiment is checked by its model or by the class of
its kind, a swept parameter at each of its values; and what bounds can't say is asked of the kinds themselves.
"""

import itertools
from contextlib import suppress
from types import NoneType

from ggdln.core.errors import FileError
from ggdln.core.kinds import REGISTRIES
from ggdln.core.problems import Problem, choices, near, violations
from ggdln.core.trees import has, leaves, merge, without_none
from ggdln.experiments.experiment import Experiment
from ggdln.workflow.models import ExperimentValues, Network

SECTIONS = ("paper", "assumed", "varied", "reduced")
KINDS = {"task": "task", "gates": "gates"}


def join(sections):
    """The values of an experiment from its sections; later ones replace those of earlier ones."""
    joined = {}
    for section in SECTIONS:
        merge(joined, sections.get(section) or {})
    return without_none(joined)


def description(values, path):
    """What a parameter of an experiment means."""
    head, *rest = path
    if head == "sweep":
        return description(values, rest[0].split(".")) if rest else ExperimentValues.model_fields["sweep"].description
    if head in KINDS and rest:
        if rest[0] == "kind":
            return f"Kind of {head}"
        return _field(REGISTRIES[head].get(values[head]["kind"]), rest[0])
    if head == "methods" and rest:
        method = REGISTRIES["method"].get(rest[0])
        return _field(method, rest[1]) if len(rest) > 1 else method.__doc__
    return _field(Network, rest[0]) if head == "network" and rest else _field(ExperimentValues, head)


def _field(model, name):
    return model.model_fields[name].description or "" if name in model.model_fields else ""


class ExperimentBuilder:
    """Checks the values of one experiment and builds it; what is wrong is gathered in `problems`."""

    def __init__(self, name, sections, root):
        self.name, self.sections, self.root, self.problems = name, sections, root, []
        self.where = f"experiments.{name}"
        self.values = join(sections)

    def build(self):
        for section, head in itertools.product(SECTIONS, ("task", "gates", "network", "sweep", "methods")):
            value = (self.sections.get(section) or {}).get(head, {})
            if not isinstance(value, dict | NoneType):
                self.problems.append(Problem(f"{self.where}.{head} (under {section})", value, "keys and values"))
        if self.problems:
            return None
        for path, _ in leaves(self.sections.get("paper", {})):
            if has(self.sections.get("assumed", {}), path):
                self._add(".".join(path), "stands under both paper and assumed", "one of them")
        self.sweep = self.values.get("sweep", {})
        first = self._at_first_point()
        if first is None or not self._check(first):
            return None
        if "varied" in self.sections:
            # A variant on fewer draws than its base has fewer simulated ones too.
            for settings in first["methods"].values():
                if "draws" in settings:
                    settings["draws"] = min(settings["draws"], first["draws"])
        self.first = first
        self.axes = {axis: self._axis(axis, points) for axis, points in self.sweep.items()}
        for name, settings in first["methods"].items():
            self._check_places(name, settings)
        if self.problems:
            return None
        self._check_points()
        return None if self.problems else self._experiment()

    def _at_first_point(self):
        """The values with each swept parameter at the first of its values, in the place where it acts."""
        found = violations(ExperimentValues, self.values | {"sweep": self.sweep}, self.where)
        # The network is checked below, with swept parameters in their place.
        found = [p for p in found if not p.key.startswith(f"{self.where}.network.")]
        for name, settings in self.values.get("methods", {}).items():
            if not isinstance(settings, dict):
                found.append(Problem(f"{self.where}.methods.{name}", settings, "keys and values"))
        self.problems += self._marked(found)
        if found:
            return None
        first = {head: dict(value) if isinstance(value, dict) else value for head, value in self.values.items()}
        first.setdefault("observables", ExperimentValues.model_fields["observables"].default)
        first["methods"] = {name: dict(settings) for name, settings in first["methods"].items()}
        for axis, points in self.sweep.items():
            head, name = axis.split(".")
            if name in first[head]:
                self._add(axis, "is given and swept", "one of them")
            first[head][name] = points[0]
            if len(set(map(repr, points))) < len(points):
                self.problems.append(Problem(f"{self.where}.sweep.{axis}", points, "values that differ"))
        return first

    def _check(self, first):
        """Whether the parts of the experiment fit their kinds, at the first point of the sweep."""
        found = violations(Network, first["network"], f"{self.where}.network")
        for head, sort in KINDS.items():
            found += kind_problems(sort, first[head], f"{self.where}.{head}")
        for name, settings in first["methods"].items():
            found += kind_problems("method", {"kind": name} | settings, f"{self.where}.methods.{name}", named=True)
        known = REGISTRIES["observable"].names()
        for i, name in enumerate(first["observables"]):
            if name not in known:
                found.append(Problem(f"{self.where}.observables[{i}]", name, choices(name, known)))
        # The value of an axis is named below, by its place in the sweep.
        found = [p for p in found if p.fault == "unknown" or p.key.removeprefix(f"{self.where}.") not in self.sweep]
        self.problems += self._marked(found)
        return not self.problems

    def _axis(self, axis, points):
        """The checked values of an axis."""
        head, name = axis.split(".")
        model = Network if head == "network" else REGISTRIES[head].get(self.first[head]["kind"])
        rest = {key: value for key, value in self.first[head].items() if key != "kind"}
        taken = []
        for i, value in enumerate(points):
            found = violations(model, rest | {name: value})
            if isinstance(value, dict | list):
                found = [Problem("", value, "a number or text, since values are places along an axis")]
            self.problems += [Problem(f"{self.where}.sweep.{axis}[{i}]", value, p.accepted) for p in found]
            if not found:
                taken.append(getattr(model(**rest | {name: value}), name))
        return taken

    def _check_places(self, name, settings):
        """Whether a method runs at places of the sweep. Where another sweep stands in, at those of its places that are left."""
        where, places = f"{self.where}.methods.{name}.at", settings.get("at", {})
        for axis, values in places.items():
            swept = self.axes.get(axis, [])
            left = [value for value in values if value in swept]
            if axis in self._replaced():
                settings["at"] = settings["at"] | {axis: left or swept}
            elif not swept:
                self.problems.append(Problem(f"{where}.{axis}", values, f"an axis of the sweep, {' or '.join(self.axes)}"))
            elif len(left) < len(values) or not values:
                self.problems.append(Problem(f"{where}.{axis}", values, f"values of the sweep, {swept}"))

    def _replaced(self):
        """Axes whose values stand under a section that replaces those of the experiment."""
        later = [section for section in SECTIONS if section not in ("paper", "assumed")]
        return {axis for section in later for axis in ((self.sections.get(section) or {}).get("sweep") or {})}

    def _check_points(self):
        """Ask the kinds at every point of the sweep for what bounds can't say."""
        known = {}

        def make(head, swept):
            """The part of the experiment at one point; points that share its values share the object."""
            own = tuple((axis, value) for axis, value in swept.items() if axis.startswith(f"{head}."))
            if (head, own) not in known:
                values = self.first[head] | {axis.split(".")[1]: value for axis, value in own}
                if head == "network":
                    known[head, own] = Network(**values)
                else:
                    known[head, own] = REGISTRIES[head].make(self._with_source(values) if head == "task" else values)
            return known[head, own]

        self.methods = {name: REGISTRIES["method"].get(name)(**settings) for name, settings in self.first["methods"].items()}
        observables = [REGISTRIES["observable"].get(name)() for name in self.first["observables"]]
        found = []
        for point in itertools.product(*self.axes.values()):
            swept = dict(zip(self.axes, point, strict=True))
            task, gates, network = (make(head, swept) for head in ("task", "gates", "network"))
            found += [*task.problems(), *_demands(task, gates, observables)]
            with suppress(FileError):  # the task has told that its file can't be read
                found += gates.problems(task)
            found += _method_problems(self.methods, task, network, self.first["draws"])
            with suppress(FileError):
                found += _output_problems(task, self.first)
        first = {axis: values[0] for axis, values in self.axes.items()}
        self.parts = {head: make(head, first) for head in ("task", "gates", "network")}
        self.problems += [
            problem._replace(key=f"{self.where}.{problem.key}") for problem in {str(p): p for p in found}.values()
        ]

    def _with_source(self, task):
        """A task with the configured source of digits, if it is made from digits and doesn't name one."""
        from_digits = REGISTRIES["task"].get(task["kind"]).from_digits
        return {"digits": self.root.digits.source} | task if from_digits else task

    def _experiment(self):
        def plain(head, values):
            return {key: value for key, value in values.items() if f"{head}.{key}" not in self.sweep}

        network = self.parts["network"].model_dump(exclude_none=True)
        batch = self.root.batch.model_dump() | without_none(self.sections.get("batch", {}))
        return Experiment(
            name=self.name,
            task=plain("task", self.parts["task"].spec()),
            gates=plain("gates", self.parts["gates"].spec()),
            network=plain("network", network),
            sweep=self.axes,
            methods=self.methods,
            observables=tuple(self.first["observables"]),
            draws=self.first["draws"],
            seed=self.root.seed,
            batch=batch,
            varied=_difference(self.sections.get("varied") or {}),
        )

    def _marked(self, problems):
        """Problems whose keys say under which section the value stands."""
        return [problem._replace(key=problem.key + self._section(problem.key)) for problem in problems]

    def _section(self, place):
        path = tuple(place.removeprefix(f"{self.where}.").split("."))
        section = next((s for s in reversed(SECTIONS) if has(self.sections.get(s) or {}, path)), None)
        return f" (under {section})" if section else ""

    def _add(self, name, what, accepted):
        self.problems.append(f"{self.where}: {name} {what}; accepted: {accepted}")


def fill_variants(experiments, named):
    """Give each variant the sections of the experiment that it varies; variants of those that can't be read are left out.

    named: all names of experiments, readable or not.
    """
    problems, plain = [], [name for name, found in experiments.items() if not found.get("base")]
    for name, sections in list(experiments.items()):
        base = sections.pop("base", None)
        if base is None:
            continue
        if base not in plain:
            del experiments[name]
            if base in named and base not in experiments:
                continue
            accepted = f"an experiment that is not a variant{near(base, plain)}"
            problems.append(Problem(f"experiments.{name}.base", base, accepted))
            continue
        filled = merge({}, experiments[base])
        merge(filled, sections)
        sections |= filled
        sections.setdefault("varied", {})
    return problems


def kind_problems(sort, spec, where, named=False):
    """What is wrong with the parameters of a kind, or with its name. named: the name is part of the place, not a key."""
    registry, values = REGISTRIES[sort], dict(spec)
    name = values.pop("kind", None)
    if name in registry.names():
        return violations(registry.get(name), values, where)
    accepted = choices(name, registry.names())
    if named:
        return [Problem(where, values, accepted, "unknown")]
    return [Problem(f"{where}.kind", name, accepted, "" if name else "missing")]


def _demands(task, gates, observables):
    """What gates and observables ask of the kind of task."""
    asked = [(gates, f"{gates.kind_name()} gates")] + [(o, f"the observable {o.kind_name()}") for o in observables]
    for kind, what in asked:
        notes, labels = kind.needs_notes, getattr(kind, "needs_labels", False)

        def fits(candidate, kind=kind, notes=notes, labels=labels):
            return (
                (candidate.has_subtasks or not kind.needs_subtasks)
                and (candidate.labelled or not labels)
                and set(notes) <= set(candidate.notes)
            )

        if not fits(task):
            accepted = [name for name in REGISTRIES["task"].names() if fits(REGISTRIES["task"].get(name))]
            yield Problem("task.kind", task.kind_name(), f"{' or '.join(accepted)}, for {what}")


def _method_problems(methods, task, network, draws):
    for name, method in methods.items():
        if (method.draws or 1) > draws:
            yield Problem(f"methods.{name}.draws", method.draws, f"at most the draws of the experiment, {draws}")
        if method.needs_labels and not task.labelled:
            yield Problem("task.kind", task.kind_name(), f"a task with labels, for {name}")
        for parameter, accepted in method.needs.items():
            if not getattr(network, parameter):
                yield Problem(f"network.{parameter}", getattr(network, parameter), f"{accepted}, for {name}")


def _output_problems(task, values):
    """Methods and observables that can't take several labels for each sample."""
    outputs = task.sizes().C
    for head, sort in (("methods", "method"), ("observables", "observable")) if outputs > 1 else ():
        registry = REGISTRIES[sort]
        fitting = [name for name in registry.names() if registry.get(name).several_outputs]
        for name in (name for name in values[head] if name not in fitting):
            yield Problem(head, name, f"{' or '.join(fitting)}, since there are {outputs} labels for each sample")


def _difference(varied):
    """What is varied, in words; how long the sweep is and how many draws are made is not what a variant is about."""
    found = [
        (path, value) for path, value in leaves(varied) if path[0] in ("task", "gates", "network") and value not in (None, {})
    ]
    if found:
        return ", ".join(f"{'.'.join(path)} = {value}" for path, value in found)
    swept = [(path[1], value) for path, value in leaves(varied) if path[0] == "sweep"]
    return ", ".join(f"{axis} = {values[0]} ... {values[-1]}" for axis, values in swept)
