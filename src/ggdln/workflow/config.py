"""Configuration: from YAML files to experiments, figures and claims, with every mistake named.

The sections of an experiment (paper, assumed, varied, reduced) are joined; each of its parts is checked by its model or by the
class of its kind, a swept parameter at each of its values; and what bounds can't say is asked of the kinds themselves. All
problems are reported together in one `ConfigError`.
"""

import itertools
import math
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from ggdln.core.errors import ConfigError
from ggdln.core.expand import expand
from ggdln.core.kinds import REGISTRIES, add_file
from ggdln.core.problems import Problem, key, near, short, violations
from ggdln.core.trees import has, leaves, merge, without_none
from ggdln.experiments.experiment import Experiment
from ggdln.study.claims import claim_problems, expand_sheets, references
from ggdln.study.compose import Figure
from ggdln.workflow.models import Digits, ExperimentValues, Machine, Network, Root

SECTIONS = ("paper", "assumed", "varied", "reduced")
MOST_LEVELS = 20
KINDS = {"task": "task", "gates": "gates"}


@dataclass(frozen=True)
class Config:
    """A valid configuration. `written` has the sections of each experiment as they were written, variants filled in."""

    run: str
    seed: int
    kinds: list
    digits: Digits
    machine: Machine
    experiments: dict[str, Experiment]
    figures: dict[str, Figure]
    claims: dict
    agreement: list
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
    return [folder / "config.yaml", folder / "figures.yaml", *sorted((folder / "claims").glob("*.yaml"))]


def load(files, extra=None):
    """The YAML `files`, each adding to those before it, and then the dictionary `extra`."""
    raw = {}
    for file in files:
        merge(raw, read_yaml(file))
    return merge(raw, extra or {})


def read_yaml(file):
    """The content of a YAML file; what is wrong with it is said with its line and column."""
    try:
        content = yaml.safe_load(Path(file).read_text())
    except FileNotFoundError:
        raise ConfigError(f"There is no configuration file {file}.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"The configuration file {file} can't be read: {error}.") from None
    except yaml.YAMLError as error:
        mark, what = getattr(error, "problem_mark", None), getattr(error, "problem", None) or error
        where = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise ConfigError(f"{file}{where}: not valid YAML, {what}.") from None
    if content is not None and not isinstance(content, dict):
        raise ConfigError(f"{file}: {short(content)}; accepted: keys and values")
    return content or {}


def read_config(raw):
    """Check the configuration `raw` and give it as a `Config`."""
    raise_for(_not_finite(raw))
    problems = []
    for file in raw.get("kinds") or ():
        try:
            add_file(file)
        except ConfigError as error:
            raise ConfigError(f"The configuration has 1 problem:\n  {error}") from error
    raw = dict(raw)
    if isinstance(raw.get("experiments"), dict):
        raw["experiments"], problems = expand(raw["experiments"], "experiments")
    raise_for(problems + violations(Root, raw))
    root = Root.model_validate(raw)
    written = {name: dict(sections) for name, sections in raw["experiments"].items()}
    raise_for(_fill_variants(written))
    experiments, problems = {}, []
    for name, sections in written.items():
        builder = _ExperimentBuilder(name, sections, root)
        experiments[name] = builder.build()
        problems += builder.problems
    raise_for(problems)
    figures, problems = {}, []
    for name, layout in root.figures.items():
        figures[name], found = _figure(name, layout, experiments)
        problems += found
    claims, agreement, found = expand_sheets(raw.get("claims", {}))
    problems += found
    if not problems:
        problems += claim_problems(claims, agreement, figures, experiments)
        problems += _unmeasured(claims, agreement, experiments)
    raise_for(problems)
    kept = {name: getattr(root, name) for name in ("run", "seed", "kinds", "digits", "machine")}
    return Config(experiments=experiments, figures=figures, claims=claims, agreement=agreement, written=written, **kept)


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
        for path, _ in leaves(self.sections.get("paper", {})):
            if has(self.sections.get("assumed", {}), path):
                self._add(".".join(path), "stands under both paper and assumed", "one of them")
        self.sweep = self.values.get("sweep", {})
        first = self._at_first_point()
        if self.problems or first is None or not self._check(first):
            return None
        if "varied" in self.sections:
            # A variant on fewer draws than its base has fewer simulated ones too.
            for settings in first["methods"].values():
                if "draws" in settings:
                    settings["draws"] = min(settings["draws"], first["draws"])
        self.first = first
        self.axes = {axis: self._axis(axis, points) for axis, points in self.sweep.items()}
        if self.problems:
            return None
        self._check_points()
        return None if self.problems else self._experiment()

    def _at_first_point(self):
        """The values with each swept parameter at the first of its values, in the place where it acts."""
        self.problems += self._marked(violations(ExperimentValues, self.values | {"sweep": self.sweep}, self.where))
        self.problems = [p for p in self.problems if not self._is_swept(p)]
        if self.problems:
            return None
        first = {head: dict(value) if isinstance(value, dict) else value for head, value in self.values.items()}
        first["methods"] = {name: dict(settings or {}) for name, settings in first["methods"].items()}
        for axis, points in self.sweep.items():
            head, name = axis.split(".")
            if name in first[head]:
                self._add(axis, "is given and swept", "one of them")
            first[head][name] = points[0]
            if len(set(map(repr, points))) < len(points):
                self.problems.append(Problem(f"{self.where}.sweep.{axis}", points, "values that differ"))
        return first

    def _is_swept(self, problem):
        """Whether a value is said to be missing that the sweep gives."""
        return problem.fault == "missing" and problem.key.removeprefix(f"{self.where}.") in self.sweep

    def _check(self, first):
        """Whether the parts of the experiment fit their kinds, at the first point of the sweep."""
        found = violations(Network, first["network"], f"{self.where}.network")
        for head, sort in KINDS.items():
            found += _kind_problems(sort, first[head], f"{self.where}.{head}")
        for name, settings in first["methods"].items():
            found += _kind_problems("method", {"kind": name} | settings, f"{self.where}.methods.{name}", named=True)
        known = REGISTRIES["observable"].names()
        for i, name in enumerate(first.get("observables", [])):
            if name not in known:
                accepted = f"{', '.join(known)}{near(name, known)}"
                found.append(Problem(f"{self.where}.observables[{i}]", name, accepted))
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
            self.problems += [Problem(f"{self.where}.sweep.{axis}[{i}]", value, p.accepted) for p in found]
            if not found:
                taken.append(getattr(model(**rest | {name: value}), name))
        return taken

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

        self.methods = {
            name: REGISTRIES["method"].get(name)(**settings) for name, settings in self.first["methods"].items()
        }
        observables = [REGISTRIES["observable"].get(name)() for name in self.first.get("observables", ["predictor"])]
        found = []
        for point in itertools.product(*self.axes.values()):
            swept = dict(zip(self.axes, point, strict=True))
            task, gates, network = (make(head, swept) for head in ("task", "gates", "network"))
            found += [*task.problems(), *gates.problems(task), *_demands(task, gates, observables)]
            found += _method_problems(self.methods, task, network, self.first["draws"])
        self.parts = {head: make(head, dict.fromkeys(()) | {a: v[0] for a, v in self.axes.items()}) for head in ("task", "gates", "network")}
        self.problems += [problem._replace(key=f"{self.where}.{problem.key}") for problem in dict.fromkeys(found)]

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
            observables=tuple(self.first.get("observables", ["predictor"])),
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
    accepted = f"{', '.join(registry.names())}{near(name, registry.names())}"
    if named:
        return [Problem(where, values, accepted, "unknown")]
    return [Problem(f"{where}.kind", name, accepted, "" if name else "missing")]


def _demands(task, gates, observables):
    """What gates and observables ask of the kind of task."""
    asked = [(gates, f"{gates.name()} gates")] + [(o, f"the observable {o.name()}") for o in observables]
    for kind, what in asked:
        notes, labels = getattr(kind, "needs_notes", ()), getattr(kind, "needs_labels", False)

        def fits(candidate, kind=kind, notes=notes, labels=labels):
            return (
                (candidate.has_subtasks or not kind.needs_subtasks)
                and (candidate.labelled or not labels)
                and set(notes) <= set(candidate.notes)
            )

        if not fits(task):
            accepted = [name for name in REGISTRIES["task"].names() if fits(REGISTRIES["task"].get(name))]
            yield Problem("task.kind", task.name(), f"{' or '.join(accepted)}, for {what}")


def _method_problems(methods, task, network, draws):
    for name, method in methods.items():
        if (method.draws or 1) > draws:
            yield Problem(f"methods.{name}.draws", method.draws, f"at most the draws of the experiment, {draws}")
        if method.needs_labels and not task.labelled:
            yield Problem("task.kind", task.name(), f"a task with labels, for {name}")
        for parameter, accepted in method.needs.items():
            if not getattr(network, parameter):
                yield Problem(f"network.{parameter}", getattr(network, parameter), f"{accepted}, for {name}")


def _fill_variants(experiments):
    """Give each variant the sections of the experiment that it varies."""
    problems, plain = [], [name for name, found in experiments.items() if not found.get("base")]
    for name, sections in experiments.items():
        base = sections.pop("base", None)
        if base is None:
            continue
        if base not in plain:
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
            panels[letter] = REGISTRIES["panel"].make(spec)
            for shown in panels[letter].shown():
                problems += _shown_problems(f"{where}.panels.{letter}", shown, experiments)
    if problems:
        return None, problems
    return Figure(caption=layout.caption, size=layout.size, mosaic=layout.mosaic, panels=panels), []


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
        accepted = f"{', '.join(experiments)}{near(shown.experiment, experiments)}"
        return [Problem(f"{place}.experiment", shown.experiment, accepted)]
    experiment, problems = experiments[shown.experiment], []
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
        problems += _unknown_variable(f"{place}.quantity", variable, experiment, shown.method)
    return problems


def _unknown_variable(place, variable, experiment, method):
    """A problem if a method of an experiment doesn't measure a variable."""
    measured = list(REGISTRIES["method"].get(method).variables)
    for name in experiment.observables:
        measured += REGISTRIES["observable"].get(name).variables
    if variable in measured:
        return []
    return [Problem(place, variable, f"{', '.join(dict.fromkeys(measured))}{near(variable, measured)}")]


def _unmeasured(claims, agreement, experiments):
    """Claims about variables that nobody measures."""
    problems = []
    for place, entry in [
        *((f"claims.{name}.measured.variable", claim["measured"]) for name, claim in claims.items()),
        *((f"agreement[{i}].variable", entry) for i, entry in enumerate(agreement)),
    ]:
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
