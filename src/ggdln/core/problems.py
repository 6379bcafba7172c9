"""What is wrong with values that a pydantic model refuses, in words that name the key, the value and what is accepted."""

import difflib
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
    close = difflib.get_close_matches(str(word), [str(w) for w in words], n=1, cutoff=0.6)
    return f"; did you mean {close[0]!r}?" if close else ""


def short(value):
    """A value in at most 60 characters."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def violations(model, values, where=""):
    """A `Problem` for each key of `values` that the model refuses. Keys stand after `where`."""
    try:
        model.model_validate(values)
    except ValidationError as error:
        found = [_problem(model, details, where) for details in error.errors(include_url=False)]
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
    for word, text in (("minItems", "at least"), ("maxItems", "at most"), ("minLength", "at least"), ("maxLength", "at most")):
        unit = "entries" if "Items" in word else "characters"
        parts.append(f"with {text} {node[word]} {unit}" if word in node else "")
    return " ".join(part for part in parts if part)


def _problem(model, details, where):
    path, kind = list(details["loc"]), details["type"]
    fields, node, kept = _walk(model, path)
    place = key(where, kept)
    if kind == "extra_forbidden":
        return Problem(place, details["input"], f"{', '.join(fields)}{near(path[-1], fields)}", "unknown")
    if kind == "missing":
        return Problem(place, None, accepted(node, schema(model)), "missing")
    if kind in ("value_error", "assertion_error"):
        return Problem(place, details["input"], str(details["ctx"]["error"]))
    told = accepted(node, schema(model))
    choices = _resolve(node, schema(model)).get("enum", ())
    return Problem(place, details["input"], told + (near(details["input"], choices) if choices else ""))


def _walk(model, path):
    """Names of the keys beside the last one of `path`, the schema of its value, and the path without pydantic's own marks."""
    root = schema(model)
    node, fields, kept = root, [], []
    for part in path:
        node = _resolve(node, root)
        branches = [_resolve(branch, root) for branch in node.get("anyOf", [])]
        node = next((branch for branch in branches if branch.get("type") in ("object", "array")), node)
        properties = node.get("properties", {})
        if isinstance(part, int) and node.get("type") == "array":
            node, fields = node.get("prefixItems", {part: node.get("items", {})})[part], []
        elif part in properties:
            node, fields = properties[part], list(properties)
        elif isinstance(node.get("additionalProperties"), dict) and part not in ("[key]",):
            node, fields = node["additionalProperties"], []
        elif part == path[-1] and properties:
            node, fields = {}, list(properties)
        else:  # the name of a type among several
            continue
        kept.append(part)
    return fields, node, kept


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
