"""Configuration: from YAML files to experiments, figures and claims, with every mistake named.

The sections of an experiment (paper, assumed, varied, reduced) are joined; each of its parts is checked by its model or by the
class of its kind, a swept parameter at each of its values; and what bounds can't say is asked of the kinds themselves. All
problems are reported together in one `ConfigError`.
"""

import itertools
import math
import re
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import NoneType

import yaml

from ggdln.core.errors import ConfigError, FileError
from ggdln.core.expand import expand
from ggdln.core.kinds import REGISTRIES, add_file
from ggdln.core.problems import Problem, choices, key, near, short, violations
from ggdln.core.trees import has, leaves, merge, without_none
from ggdln.experiments.experiment import Experiment
from ggdln.study.claims import claim_problems, expand_sheets, references
from ggdln.study.compose import Figure
from ggdln.workflow.choices import add_options, where_written
from ggdln.workflow.models import Digits, ExperimentValues, Machine, Network, Root

SECTIONS = ("paper", "assumed", "varied", "reduced")
MOST_LEVELS = 20
MOST_VALUES = 200_000
"""Most values in a file, each counted as often as an alias repeats it."""
KINDS = {"task": "task", "gates": "gates"}


@dataclass(frozen=True)
class Config:
    """A valid configuration.

    chosen: the figures that are made and reported if none is named; written: the sections of each experiment as they were
    written, variants filled in.
    """

    run: str
    seed: int
    kinds: list
    digits: Digits
    machine: Machine
    experiments: dict[str, Experiment]
    figures: dict[str, Figure]
    claims: dict
    agreement: list
    calibration: dict
    chosen: list
    written: dict = field(default_factory=dict)

    def curves_of(self, figure):
        """The curves that a figure shows, as (experiment, method), in the order of its panels."""
        return list(dict.fromkeys((shown.experiment, shown.method) for shown in self.figures[figure].shown()))

    def curves_of_claim(self, name):
        """The curves that a claim looks at, as (experiment, method)."""
        return references(self.claims[name])


def default_files(root):
    """The files that make up the configuration of the paper."""
    folder = Path(root) / "config"
    further = [*sorted((folder / "claims").glob("*.yaml")), *folder.glob("calibration.yaml")]
    return [folder / "config.yaml", folder / "figures.yaml", *further]


def load(files, extra=None):
    """The YAML `files`, each adding to those before it, and then the dictionary `extra`."""
    raw = {}
    for file in files:
        merge(raw, read_yaml(file))
    return merge(raw, extra or {})


def read_yaml(file):
    """The content of a YAML file; what is wrong with it is said with its line and column."""
    try:
        content = _parse(Path(file).read_text(encoding="utf-8"), file)
    except FileNotFoundError:
        raise ConfigError(f"There is no configuration file {file}.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"The configuration file {file} can't be read: {error}.") from None
    except yaml.YAMLError as error:
        mark, what = getattr(error, "problem_mark", None), getattr(error, "problem", None) or error
        raise ConfigError(f"{file}{_place(mark)}: not valid YAML, {what}.") from None
    except (ValueError, RecursionError) as error:  # such as a date in a month 13
        raise ConfigError(f"{file}: not valid YAML, {error}.") from None
    if content is not None and not isinstance(content, dict):
        raise ConfigError(f"{file}: {short(content)}; accepted: keys and values")
    return content or {}


def _parse(text, file):
    """What a YAML text says. A key that stands twice is refused, where YAML would take the last one."""
    _bounded(text, file)
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text)
    try:
        node = loader.get_single_node()
        repeated = _repeated_key(node)
        if repeated:
            first, again = repeated
            raise ConfigError(
                f"{file}{_place(again.start_mark)}: the key {again.value!r} stands here again, "
                f"after line {first.start_mark.line + 1}; accepted: once"
            )
        return loader.construct_document(node) if node else None
    finally:
        loader.dispose()


def _bounded(text, file):
    """Refuse a text that a few lines make endless: levels without end, and aliases that stand for very many values."""
    inside, sizes, total = [], {}, 0
    for event in yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
        if isinstance(event, yaml.CollectionStartEvent):
            inside.append((event.anchor, total))
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = inside.pop()
            sizes[anchor] = total - before
        elif isinstance(event, yaml.AliasEvent) and event.anchor in [anchor for anchor, _ in inside]:
            raise ConfigError(
                f"{file}{_place(event.start_mark)}: *{event.anchor}; accepted: no alias to a value that contains it"
            )
        total += sizes.get(event.anchor, 1) if isinstance(event, yaml.AliasEvent) else 1
        if len(inside) > MOST_LEVELS:
            raise ConfigError(f"{file}{_place(event.start_mark)}: accepted: at most {MOST_LEVELS} levels")
        if total > MOST_VALUES:
            raise ConfigError(
                f"{file}{_place(event.start_mark)}: accepted: at most {MOST_VALUES} values, with what aliases stand for"
            )


def _repeated_key(root):
    """The nodes of a key that stands twice in one mapping, None if there is no such key."""
    queue, seen = [root], set()
    while queue:
        node = queue.pop()
        if id(node) in seen or not isinstance(node, yaml.CollectionNode):
            continue
        seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            queue += node.value
            continue
        keys = {}
        for name, value in node.value:
            queue.append(value)
            if isinstance(name, yaml.ScalarNode) and name.tag != "tag:yaml.org,2002:merge":
                if (name.tag, name.value) in keys:
                    return keys[name.tag, name.value], name
                keys[name.tag, name.value] = name
    return None


def _place(mark):
    return f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""


def read_config(raw, own=()):
    """Check the configuration `raw` and give it as a `Config`.

    own: names of figures that the user's files add or change. Those are chosen, or all figures if there are none.
    """
    raise_for(_not_finite(raw))
    raise_for(_add_kinds(raw.get("kinds")))
    raw, problems = dict(raw), []
    if isinstance(raw.get("experiments"), dict):
        raw["experiments"], problems = expand(raw["experiments"], "experiments")
    named = list(raw["experiments"]) if isinstance(raw.get("experiments"), dict) else []
    found = violations(Root, raw)
    if found:
        # What follows from these problems isn't reported, but problems elsewhere are.
        problems += found
        raise_for(problems if not named else ())
        raw = _sound(raw, found)
    root = Root.model_validate(raw)
    written = {name: dict(sections) for name, sections in raw["experiments"].items()}
    calibration, found = add_options(raw.get("calibration", {}), written, named)
    problems += found
    bases = {name: sections.get("base") for name, sections in written.items()}
    problems += _fill_variants(written, named)
    experiments, found = dict.fromkeys(named), {}
    for name, sections in written.items():
        builder = _ExperimentBuilder(name, sections, root)
        experiments[name] = builder.build()
        # What is wrong in the base of a variant is told once.
        found[name] = {_told(problem).removeprefix(builder.where): problem for problem in builder.problems}
        new = [problem for place, problem in found[name].items() if place not in found.get(bases.get(name), ())]
        problems += [where_written(problem, name, raw.get("calibration", {})) for problem in new]
    figures = {}
    for name, layout in root.figures.items():
        figures[name], found = _figure(name, layout, experiments)
        problems += found
    claims, agreement, found = expand_sheets(raw.get("claims", {}))
    problems += found
    if not problems:  # claims look at figures and experiments
        problems += claim_problems(claims, agreement, figures, experiments)
        problems += _unmeasured(claims, agreement, experiments)
    raise_for(problems)
    kept = {name: getattr(root, name) for name in ("run", "seed", "kinds", "digits", "machine")}
    chosen = [name for name in figures if not own or name in own]
    made = {"experiments": experiments, "figures": figures, "claims": claims, "agreement": agreement}
    made["calibration"] = calibration
    return Config(**made, chosen=chosen, written=written, **kept)


def _add_kinds(files):
    """Make the kinds in the user's files known; what is wrong with them, since all that needs them would be wrong too."""
    found = violations(Root, {"kinds": [] if files is None else files, "experiments": {}, "figures": {}})
    for i, file in enumerate(() if found or not files else files):
        if not file.endswith(".py"):
            found.append(Problem(f"kinds[{i}]", file, "Python files (.py), whose code is run"))
            continue
        try:
            add_file(file)
        except ConfigError as error:
            found.append(f"{error} (the code of files under kinds is run)")
    return found


def _told(problem):
    """The place of a problem, or what it says."""
    return getattr(problem, "key", problem)


def _sound(raw, problems):
    """Those parts of the configuration that have no problems."""
    empty = {"experiments": {}, "figures": {}}
    wrong = {re.split(r"[.\[]", str(problem.key))[0] for problem in problems}
    kept = {name: value for name, value in raw.items() if name in Root.model_fields and name not in wrong}
    for part in empty:
        entries = raw[part] if isinstance(raw.get(part), dict) else {}
        kept[part] = {name: entry for name, entry in entries.items() if not violations(Root, empty | {part: {name: entry}})}
    return kept


def raise_for(problems):
    """One error for all problems, if there are any."""
    lines = list(dict.fromkeys(str(problem) for problem in problems))
    if lines:
        count = f"{len(lines)} problem" + ("s" if len(lines) > 1 else "")
        raise ConfigError("\n".join([f"The configuration has {count}:", *(f"  {line}" for line in lines)]))


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


class _ExperimentBuilder:
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
            found += _kind_problems(sort, first[head], f"{self.where}.{head}")
        for name, settings in first["methods"].items():
            found += _kind_problems("method", {"kind": name} | settings, f"{self.where}.methods.{name}", named=True)
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


def _kind_problems(sort, spec, where, named=False):
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


def _fill_variants(experiments, named):
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


def _difference(varied):
    """What is varied, in words; how long the sweep is and how many draws are made is not what a variant is about."""
    found = [
        (path, value) for path, value in leaves(varied) if path[0] in ("task", "gates", "network") and value not in (None, {})
    ]
    if found:
        return ", ".join(f"{'.'.join(path)} = {value}" for path, value in found)
    swept = [(path[1], value) for path, value in leaves(varied) if path[0] == "sweep"]
    return ", ".join(f"{axis} = {values[0]} ... {values[-1]}" for axis, values in swept)


def _figure(name, layout, experiments):
    """A figure from its layout, and what is wrong with it."""
    where, problems, panels = f"figures.{name}", [], {}
    letters = set("".join(layout.mosaic)) - {"."}
    if letters != set(layout.panels):
        accepted = f"those of panels, {sorted(layout.panels)}"
        problems.append(f"{where}.mosaic has panels {sorted(letters)}; accepted: {accepted}")
    if len({len(row) for row in layout.mosaic}) > 1:
        problems.append(Problem(f"{where}.mosaic", layout.mosaic, "rows of one length"))
    kinds = [spec.get("kind") for spec in layout.panels.values()]
    unused = [kind for kind in layout.defaults if kind not in kinds]
    problems += [Problem(f"{where}.defaults", kind, f"kinds of its panels{near(kind, kinds)}") for kind in unused]
    for letter, spec in layout.panels.items():
        spec = _filled_panel(spec, layout.defaults)
        found = _kind_problems("panel", spec, f"{where}.panels.{letter}")
        problems += found
        if not found:
            panel = panels[letter] = REGISTRIES["panel"].make(spec)
            place, wrong = f"{where}.panels.{letter}", []
            for shown in panel.shown():
                wrong += _shown_problems(place, shown, experiments)
            if not wrong and all(experiments[shown.experiment] for shown in panel.shown()):
                wrong = [p._replace(key=f"{place}.{p.key}") for p in panel.problems(experiments)]
            problems += wrong
    if problems:
        return None, problems
    return Figure(**{name: getattr(layout, name) for name in Figure.model_fields} | {"panels": panels}), []


def _filled_panel(spec, defaults):
    """A panel with the defaults of its kind under it, each series in full."""
    filled = without_none(merge(merge({}, defaults.get(str(spec.get("kind")), {})), spec))
    if isinstance(filled.get("series"), list):
        names = ("experiment", "method")
        filled["series"] = [
            dict(zip(names, one.split("/", 1), strict=False)) if isinstance(one, str) else one for one in filled["series"]
        ]
    return filled


def _shown_problems(place, shown, experiments):
    if shown.experiment not in experiments:
        return [Problem(f"{place}.experiment", shown.experiment, choices(shown.experiment, experiments))]
    experiment, problems = experiments[shown.experiment], []
    if experiment is None:  # what is wrong with it is told elsewhere
        return []
    axes = {axis.split(".")[1]: values for axis, values in experiment.sweep.items()}
    for role, axis in shown.axes.items():
        if axis is not None and axis not in axes:
            accepted = f"an axis of the sweep of {shown.experiment}, {', '.join(axes) or 'none'}"
            problems.append(Problem(f"{place}.{role}", axis, accepted))
    for axis, value in shown.select.items():
        if value not in axes.get(axis, ()):
            problems.append(Problem(f"{place}.select.{axis}", value, axes.get(axis) or "an axis of the sweep"))
    if shown.method not in experiment.methods:
        accepted = f"a method of {shown.experiment}, {', '.join(experiment.methods)}"
        return [*problems, Problem(f"{place}.method", shown.method, accepted)]
    for variable in shown.variables:
        problems += _unknown_variable(f"{place}.quantity", variable, experiment, shown.method, shown.single)
    if shown.single and not problems:
        left = [a for a in experiment.curve(shown.method).axes if a not in (*shown.axes.values(), *shown.select)]
        told = "a value of each axis that the panel doesn't run along"
        problems += [Problem(f"{place}.select.{axis}", None, f"one of {axes[axis]}, {told}", "missing") for axis in left]
    return problems


def _unknown_variable(place, variable, experiment, method, single=False):
    """A problem if a method of an experiment doesn't measure a variable, or not as a single number at each point."""
    kind = REGISTRIES["method"].get(method)
    measured = dict(kind.variables)
    for observable in (REGISTRIES["observable"].get(name) for name in experiment.observables):
        if kind.offers is None or set(observable.needs) <= set(kind.offers):
            measured |= observable.variables
    fitting = [name for name, found in measured.items() if found.single or not single]
    if variable in fitting:
        return []
    return [Problem(place, variable, choices(variable, fitting))]


def _unmeasured(claims, agreement, experiments):
    """Claims about variables that nobody measures."""
    problems = []
    looks = [(f"claims.{entry['figure']}.agreement.variable", entry) for entry in agreement]
    for name, claim in claims.items():
        place = f"claims.{claim['figure']}.statements.{name}"
        looks.append((f"{place}.measured.variable", claim["measured"]))
        if "variable" in claim.get("control", {}):
            looks.append((f"{place}.control.variable", claim["measured"] | claim["control"]))
    for place, entry in looks:
        if entry.get("variable") and entry["experiment"] in experiments:
            problems += _unknown_variable(place, entry["variable"], experiments[entry["experiment"]], entry["method"])
    return problems


def _not_finite(tree, path=()):
    """Numbers that are none, and trees that contain themselves."""
    if len(path) > MOST_LEVELS:
        return [f"{key('', path[:3])} ... : accepted: at most {MOST_LEVELS} levels, and no alias to a value that contains it"]
    problems = []
    for name, value in tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ():
        if isinstance(value, float) and not math.isfinite(value):
            problems.append(Problem(key("", [*path, name]), value, "a finite number"))
        problems += _not_finite(value, (*path, name))
    return problems


if __name__ == "__main__":
    try:
        read_config(load([*default_files(Path(__file__).resolve().parents[3]), *sys.argv[1:]]))
    except ConfigError as error:
        sys.exit(str(error))
