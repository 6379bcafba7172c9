"""A figure from its layout: its panels, and whether what they and the claims show is measured by anything."""

from ggdln.core.kinds import REGISTRIES
from ggdln.core.problems import Problem, choices, near
from ggdln.core.trees import merge, without_none
from ggdln.study.compose import Figure
from ggdln.workflow.sections import kind_problems


def figure(name, layout, experiments):
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
        found = kind_problems("panel", spec, f"{where}.panels.{letter}")
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
        problems += _unknown_variable(
            f"{place}.{shown.places.get(variable, 'quantity')}", variable, experiment, shown.method, shown.single
        )
    if shown.single and not problems:
        left = [a for a in experiment.curve(shown.method).axes if a not in (*shown.axes.values(), *shown.select)]
        told = "a value of each axis that the panel doesn't run along"
        problems += [Problem(f"{place}.select.{axis}", None, f"one of {axes[axis]}, {told}", "missing") for axis in left]
    return problems


def unmeasured(claims, agreement, experiments):
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
