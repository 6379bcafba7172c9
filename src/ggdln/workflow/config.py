"""Configuration: from YAML files to experiments, figures and claims, with every mistake named.

Files are read by `files`, experiments built by `sections`, figures by `layouts`. All problems are reported together in one
`ConfigError`.
"""

import math
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

from ggdln.core.errors import ConfigError
from ggdln.core.expand import expand
from ggdln.core.kinds import add_file
from ggdln.core.problems import Problem, key, violations
from ggdln.experiments.experiment import Experiment
from ggdln.study.claims import claim_problems, expand_sheets, references
from ggdln.study.compose import Figure
from ggdln.workflow.choices import add_options, where_written
from ggdln.workflow.files import MOST_LEVELS, default_files, load
from ggdln.workflow.layouts import figure, unmeasured
from ggdln.workflow.models import Digits, Machine, Root
from ggdln.workflow.sections import ExperimentBuilder, fill_variants


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
    problems += fill_variants(written, named)
    experiments, found = dict.fromkeys(named), {}
    for name, sections in written.items():
        builder = ExperimentBuilder(name, sections, root)
        experiments[name] = builder.build()
        # What is wrong in the base of a variant is told once.
        found[name] = {_told(problem).removeprefix(builder.where): problem for problem in builder.problems}
        new = [problem for place, problem in found[name].items() if place not in found.get(bases.get(name), ())]
        problems += [where_written(problem, name, raw.get("calibration", {})) for problem in new]
    figures = {}
    for name, layout in root.figures.items():
        figures[name], found = figure(name, layout, experiments)
        problems += found
    claims, agreement, found = expand_sheets(raw.get("claims", {}))
    problems += found
    if not problems:  # claims look at figures and experiments
        problems += claim_problems(claims, agreement, figures, experiments)
        problems += unmeasured(claims, agreement, experiments)
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
