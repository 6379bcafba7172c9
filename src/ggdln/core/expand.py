"""One entry of a configuration that stands for several.

    few_{normalization}:
      for: {normalization: [pixel, image, global]}
      base: sigma_few_gates
      varied: {task: {normalization: "{normalization}"}}

Lists under `for` have one length and are read side by side: the n-th entry has the n-th value of each. Several mappings of
such lists, `for: [{...}, {...}]`, give every combination. A text that is nothing but a placeholder becomes the value itself, be
it a number, a list or a mapping; within a longer text the value is written out. Entries without `for` are left as they are.
"""

import copy
import itertools
import math
import re
from collections import Counter

from ggdln.core.problems import Problem, key, near

PLACEHOLDER = re.compile(r"\{(\w+)\}")
MOST_ENTRIES = 10_000
"""Most entries that one may stand for."""


def expand(entries, where=""):
    """What a mapping or a list of entries stands for, in the same order, and a `Problem` for each mistake in it."""
    named = isinstance(entries, dict)
    found, problems = [], []
    for name, entry in entries.items() if named else enumerate(entries):
        place = key(where, [name])
        if not isinstance(entry, dict) or "for" not in entry:
            found.append((name, entry))
            continue
        groups = entry["for"] if isinstance(entry["for"], list) and entry["for"] else [entry["for"]]
        rest = {k: v for k, v in entry.items() if k != "for"}
        wrong = [problem for group in groups for problem in _unusable(group, f"{place}.for")]
        wrong = wrong or [problem for group in groups for problem in _unused(group, f"{name} {rest}", f"{place}.for")]
        if not wrong and (count := math.prod(len(_rows(group)) for group in groups)) > MOST_ENTRIES:
            wrong = [Problem(f"{place}.for", f"{count} entries", f"at most {MOST_ENTRIES}")]
        for rows in () if wrong else itertools.product(*map(_rows, groups)):
            values = {k: v for row in rows for k, v in row.items()}
            found.append((str(_fill(name, values, place, wrong)), _fill(rest, values, place, wrong)))
        problems += {problem.key: problem for problem in wrong}.values()
    if not named:
        return [entry for _, entry in found], problems
    for name, times in Counter(name for name, _ in found).items():
        if times > 1:
            problems.append(Problem(key(where, [name]), f"{times} entries", "one; a `for` must put its values into the name"))
    return dict(found), problems


def _rows(group):
    return [dict(zip(group, row, strict=True)) for row in zip(*group.values(), strict=True)]


def _unusable(group, place):
    """Why what stands under `for` isn't lists of one length."""
    if not isinstance(group, dict) or not group:
        return [Problem(place, group, "names, each with a list of values")]
    wrong = [(name, values) for name, values in group.items() if not isinstance(values, list) or not values]
    if wrong:
        return [Problem(f"{place}.{name}", values, "a list of values") for name, values in wrong]
    lengths = {name: len(values) for name, values in group.items()}
    return [] if len(set(lengths.values())) == 1 else [Problem(place, lengths, "lists of one length")]


def _unused(group, text, place):
    """Names under `for` that no placeholder mentions."""
    used = PLACEHOLDER.findall(text)
    return [
        Problem(f"{place}.{name}", values, f'a name that stands elsewhere in quotes and braces, as "{{{name}}}"')
        for name, values in group.items()
        if name not in used
    ]


def _fill(tree, values, place, problems):
    """The tree with values for placeholders; what is wrong with it is added to `problems`."""
    if isinstance(tree, dict):
        if len(tree) == 1 and next(iter(tree.items())) in [(name, None) for name in values]:
            name = next(iter(tree))
            problems.append(Problem(place, tree, f'"{{{name}}}" in quotes, since YAML reads bare braces as a mapping'))
        return {
            _fill(name, values, place, problems): _fill(part, values, key(place, [name]), problems)
            for name, part in tree.items()
        }
    if isinstance(tree, list):
        return [_fill(part, values, key(place, [i]), problems) for i, part in enumerate(tree)]
    if not isinstance(tree, str):
        return tree
    for name in PLACEHOLDER.findall(tree):
        if name not in values:
            problems.append(Problem(place, tree, f"names under `for`, {', '.join(values)}{near(name, values)}"))
            return tree
    whole = PLACEHOLDER.fullmatch(tree)
    if whole:
        return copy.deepcopy(values[whole[1]])
    return PLACEHOLDER.sub(lambda found: str(values[found[1]]), tree)
