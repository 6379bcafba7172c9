"""Choices of the calibration: each option becomes experiments of its own, variants of those that it is about."""

from ggdln.core.problems import Problem, choices
from ggdln.core.trees import leaves, merge


def add_options(calibration, experiments):
    """Add to `experiments`, as they are written, those of all options: choices by name, and a `Problem` for each mistake.

    A choice has its question, the chosen option, and for each option its values in words and experiment -> the name of the
    one that stands in for it.
    """
    found, problems = {}, []
    for name, choice in calibration.items():
        place, options = f"calibration.{name}", choice["options"]
        if choice["chosen"] not in options:
            problems.append(Problem(f"{place}.chosen", choice["chosen"], choices(choice["chosen"], options)))
        unknown = [experiment for experiment in choice["experiments"] if experiment not in experiments]
        problems += [Problem(f"{place}.experiments", wrong, choices(wrong, experiments)) for wrong in unknown]
        if problems:
            continue
        found[name] = {"question": choice["question"], "chosen": choice["chosen"], "options": {}}
        for option, values in options.items():
            own = {experiment: f"{experiment}_{name}_{option}" for experiment in choice["experiments"]}
            for experiment, variant in own.items():
                varied = merge(merge({}, choice.get("varied", {})), choice.get("each", {}).get(experiment, {}))
                experiments[variant] = {"base": experiment, "varied": merge(varied, values), "batch": choice.get("batch", {})}
            keys = [".".join(path) for path, _ in leaves(values)]
            found[name]["options"][option] = {"words": in_words(values), "keys": keys, "experiments": own}
    return found, problems


def calibrated(calibration, experiment):
    """Keys of an experiment's values that were chosen to fit the paper: key -> the choice."""
    return {
        key: name
        for name, choice in calibration.items()
        for option in [choice["options"][choice["chosen"]]]
        for key in (option["keys"] if experiment in option["experiments"] else ())
    }


def in_words(values):
    """The values of an option, as key = value."""
    told = [f"{head}.{key} = {value}" for head, part in values.items() if isinstance(part, dict) for key, value in part.items()]
    return ", ".join(told) or "as configured"
