"""Choices of the calibration: each option becomes experiments of its own, variants of those that it is about."""

from ggdln.core.problems import Problem, choices
from ggdln.core.trees import has, leaves, merge


def add_options(calibration, experiments, named):
    """Add to `experiments`, as they are written, those of all options: choices by name, and a `Problem` for each mistake.

    A choice has its question, the chosen option, and for each option its values in words, their keys, and experiment -> the
    name of the one that stands in for it. named: all names of experiments, readable or not; what is wrong with one is told
    elsewhere, and choices about it are left out.
    """
    found, problems = {}, []
    plain = [name for name, sections in experiments.items() if not sections.get("base")]
    for name, choice in calibration.items():
        wrong = _problems(f"calibration.{name}", name, choice, plain, named)
        problems += wrong
        if wrong or not set(choice["experiments"]) <= set(plain):
            continue
        found[name] = {"question": choice["question"], "chosen": choice["chosen"], "options": {}}
        for option, values in choice["options"].items():
            own = {experiment: stand_in(experiment, name, option) for experiment in choice["experiments"]}
            for experiment, variant in own.items():
                varied = merge(merge({}, choice.get("varied", {})), choice.get("each", {}).get(experiment, {}))
                experiments[variant] = {"base": experiment, "varied": merge(varied, values), "batch": choice.get("batch", {})}
            keys = [".".join(path) for path, _ in leaves(values)]
            found[name]["options"][option] = {"words": in_words(values), "keys": keys, "experiments": own}
    return found, problems


def _problems(place, name, choice, plain, named):
    """What is wrong with the names in a choice."""
    options, about = choice["options"], choice["experiments"]
    found = []
    if choice["chosen"] not in options:
        found.append(Problem(f"{place}.chosen", choice["chosen"], choices(choice["chosen"], options)))
    for experiment in about:
        if experiment not in named:
            found.append(Problem(f"{place}.experiments", experiment, choices(experiment, plain)))
        taken = [option for option in options if stand_in(experiment, name, option) in named]
        found += [Problem(f"{place}.options", option, "a name that gives no experiment that there is") for option in taken]
    others = [experiment for experiment in choice.get("each", {}) if experiment not in about]
    return found + [Problem(f"{place}.each", other, choices(other, about)) for other in others]


def stand_in(experiment, choice, option):
    """The name of the experiment that has the values of an option."""
    return f"{experiment}_{choice}_{option}"


def where_written(problem, variant, calibration):
    """A problem of an option's experiment, by the place in the calibration where the value stands."""
    head, mark = f"experiments.{variant}.", " (under varied)"
    for name, choice in calibration.items():
        for option, values in choice["options"].items():
            for experiment in choice["experiments"]:
                if stand_in(experiment, name, option) != variant or not str(getattr(problem, "key", "")).startswith(head):
                    continue
                rest = problem.key.removeprefix(head).removesuffix(mark)
                parts = {f"options.{option}": values, f"each.{experiment}": choice.get("each", {}).get(experiment, {})}
                parts["varied"] = choice.get("varied", {})
                place = next((place for place, part in parts.items() if has(part, tuple(rest.split(".")))), None)
                return problem._replace(key=f"calibration.{name}.{place}.{rest}") if place else problem
    return problem


def calibrated(calibration, experiment):
    """Keys of an experiment's values that were tried against others: key -> the choice."""
    return {
        key: name
        for name, choice in calibration.items()
        for option in [choice["options"][choice["chosen"]]]
        for key in (option["keys"] if experiment in option["experiments"] else ())
    }


def in_words(values):
    """The values of an option, as key = value."""
    return ", ".join(f"{'.'.join(path)} = {value}" for path, value in leaves(values)) or "as configured"
