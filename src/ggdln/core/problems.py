"""What is wrong with values that a pydantic model refuses, in words that name the key, the value and what is accepted."""

import difflib
import re
from functools import cache
from typing import Any, NamedTuple

from pydantic import BaseModel, ValidationError

TYPES = {
    "integer": "a whole number",
    "number": "a number",
    "object": "keys and values",
    "array": "a list",
    "string": "text",
    "boolean": "true or false",
    "null": "nothing",
}

ELSEWHERE = {"temperature": "T", "width": "N", "depth": "L"}
"""Names that something has in the library, or in another place, for those in the configuration."""

MOST_CHOICES = 30
"""Most words that a message lists."""


class Problem(NamedTuple):
    """A value that can't be accepted: where it stands, what it is, and what would be accepted."""

    key: str
    value: Any
    accepted: str
    fault: str = ""  # "unknown" for a key that isn't known, "missing" for one that isn't there

    def __str__(self):
        if self.fault == "missing":
            return f"{self.key} is missing; accepted: {self.accepted}"
        if self.fault == "unknown":
            return f"{self.key} = {short(self.value)} is not a known key; accepted here: {self.accepted}"
        return f"{self.key} = {short(self.value)}; accepted: {self.accepted}"


def near(word, words):
    """A suggestion for a misspelt word, or nothing."""
    spelt = {str(w).lower(): str(w) for w in words}
    if ELSEWHERE.get(str(word)) in spelt.values():
        return f"; did you mean {ELSEWHERE[str(word)]!r}?"
    close = difflib.get_close_matches(str(word).lower(), spelt, n=1, cutoff=0.6)
    return f"; did you mean {spelt[close[0]]!r}?" if close else ""


def choices(word, words):
    """What is accepted instead of an unknown word: the others, of many of them the closest, and a suggestion."""
    words = list(dict.fromkeys(map(str, words)))
    if len(words) <= MOST_CHOICES:
        return f"{', '.join(words)}{near(word, words)}"
    close = difflib.get_close_matches(str(word), words, n=5, cutoff=0.4)
    return f"one of {len(words)}" + (f", such as {', '.join(close)}" if close else "") + near(word, words)


def short(value):
    """A value in at most 60 characters."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def violations(model, values, where=""):
    """A `Problem` for each key of `values` that the model refuses. Keys stand after `where`."""
    try:
        model.model_validate(values)
    except ValidationError as error:
        errors = error.errors(include_url=False)
        misnamed = [details["loc"][:-1] for details in errors if details["loc"][-1:] == ("[key]",)]
        found = [
            _problem(model, details, where)
            for details in errors
            # What stands under a name that isn't accepted doesn't matter.
            if details["loc"][-1:] == ("[key]",) or not any(details["loc"][: len(path)] == path for path in misnamed)
        ]
        # A value that fits none of several types is one problem, not one for each type.
        return list({problem.key: problem for problem in reversed(found)}.values())[::-1]
    return []


def key(where, path):
    """The place of a value, as experiments.mine.sweep[2]."""
    text = where
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text or "the configuration"


def accepted(node, root=None):
    """What a node of a JSON schema accepts, in words."""
    node = _resolve(node, root or node)
    if "enum" in node or "const" in node:
        return ", ".join(map(str, node.get("enum", [node.get("const")])))
    if "anyOf" in node:
        return " or ".join(dict.fromkeys(accepted(part, root) for part in node["anyOf"] if part.get("type") != "null"))
    low = f">= {node['minimum']:g}" if "minimum" in node else ""
    low = f"> {node['exclusiveMinimum']:g}" if "exclusiveMinimum" in node else low
    high = f"<= {node['maximum']:g}" if "maximum" in node else ""
    parts = [TYPES.get(node.get("type"), "a value"), " and ".join(part for part in (low, high) if part)]
    parts.append(f"that matches {node['pattern']}" if "pattern" in node else "")
    parts.append(_count(node.get("minItems"), node.get("maxItems"), "entry", "entries"))
    parts.append(_count(node.get("minLength"), node.get("maxLength"), "character", "characters"))
    return " ".join(part for part in parts if part)


def _count(least, most, one, many):
    """How many entries or characters are accepted, in words."""
    texts = [f"{text} {count}" for text, count in (("at least", least), ("at most", most)) if count is not None]
    if least == most and texts:
        texts = [str(least)]
    return f"with {' and '.join(texts)} {one if texts[-1].split()[-1] == '1' else many}" if texts else ""


def _problem(model, details, where):
    path, kind = list(details["loc"]), details["type"]
    if path[-1:] == ["[key]"]:  # of a dictionary whose keys have a pattern
        _, node, kept = _walk(model, path[:-2])
        patterns = " or ".join(_object(node, schema(model)).get("patternProperties", ["any text"]))
        return Problem(key(where, kept), path[-2], f"names that match {patterns}")
    fields, node, kept = _walk(model, path)
    place = key(where, kept)
    if kind == "extra_forbidden":
        return Problem(place, details["input"], choices(path[-1], fields), "unknown")
    if kind == "missing":
        return Problem(place, None, accepted(node, schema(model)), "missing")
    if kind in ("value_error", "assertion_error"):
        return Problem(place, details["input"], str(details["ctx"]["error"]))
    told, value = accepted(node, schema(model)), details["input"]
    words = _resolve(node, schema(model)).get("enum", ())
    return Problem(place, value, told + (near(value, words) if words else _read_as_text(value, told)))


def _read_as_text(value, told):
    """How to write a number that YAML reads as text, such as 1e-5."""
    if "a number" in told and isinstance(value, str) and re.fullmatch(r"[-+]?[0-9.]+[eE][-+]?[0-9]+", value):
        mantissa, exponent = value.lower().split("e")
        point, sign = "" if "." in mantissa else ".0", "" if exponent[0] in "+-" else "+"
        return f"; YAML reads this as text, write {mantissa}{point}e{sign}{exponent}"
    return ""


def _walk(model, path):
    """Names of the keys beside the last one of `path`, the schema of its value, and the path without pydantic's own marks."""
    root = schema(model)
    node, fields, kept, chosen = root, [], [], False
    for part in path:
        if not chosen and _is_one_of_several(node, root):  # the name of a type
            chosen = True
            continue
        node, chosen = _object(node, root), False
        properties, patterns = node.get("properties", {}), node.get("patternProperties")
        if isinstance(part, int) and node.get("type") == "array":
            node, fields = node.get("prefixItems", {part: node.get("items", {})})[part], []
        elif part in properties:
            node, fields = properties[part], list(properties)
        elif patterns:
            node, fields = next(iter(patterns.values())), []
        elif isinstance(node.get("additionalProperties"), dict):
            node, fields = node["additionalProperties"], []
        elif part == path[-1] and properties:
            node, fields = {}, list(properties)
        else:
            continue
        kept.append(part)
    return fields, node, kept


def _is_one_of_several(node, root):
    """Whether a value may have several types besides being nothing; pydantic then names the one that it tried."""
    return sum(branch.get("type") != "null" for branch in _resolve(node, root).get("anyOf", [])) > 1


def _object(node, root):
    """The schema of an object or a list, where a value may also be something else."""
    node = _resolve(node, root)
    branches = [_resolve(branch, root) for branch in node.get("anyOf", [])]
    return next((branch for branch in branches if branch.get("type") in ("object", "array")), node)


@cache
def schema(model):
    """The JSON schema of a model."""
    return model.model_json_schema() if issubclass(model, BaseModel) else {}


def _resolve(node, root):
    seen = node
    while "$ref" in seen:
        target = root["$defs"][seen["$ref"].removeprefix("#/$defs/")]
        seen = target | {k: v for k, v in seen.items() if k != "$ref"}
    if len(seen.get("allOf", [])) == 1:
        return _resolve(seen["allOf"][0], root) | {k: v for k, v in seen.items() if k != "allOf"}
    return seen
