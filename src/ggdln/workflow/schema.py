"""The JSON schema of the configuration, generated from the models and the kinds, for editors and for the curious.

`python -m ggdln.workflow.schema` writes workflow/schemas/config.schema.json.
"""

import copy
import json
import sys
from pathlib import Path

from ggdln.core.expand import PLACEHOLDER
from ggdln.core.kinds import REGISTRIES
from ggdln.workflow.models import ExperimentValues, Root

FOR = "Values for names in braces: lists that are read side by side, or several mappings of such lists"
PLACED = f"^{PLACEHOLDER.pattern}$"
NAMED = {"$ref": "#/$defs/placeholder"}
"""A value that a name under `for` stands for."""

PATH = Path("workflow/schemas/config.schema.json")


def schema():
    """The schema, as nested dictionaries. Sections of an experiment may leave out what others give."""
    root = _schema(Root)
    definitions = root.pop("$defs")
    values = _schema(ExperimentValues)
    definitions |= values.pop("$defs")
    for sort in ("task", "gates", "panel"):
        kinds = REGISTRIES[sort].own()
        for name in kinds:
            definitions |= {f"{sort}_{name}": _of_kind(sort, name, definitions)}
        definitions[sort] = {"anyOf": [{"$ref": f"#/$defs/{sort}_{name}"} for name in kinds]}
    definitions["panel"] = {
        "type": "object",
        "required": ["kind"],
        "properties": {"kind": {"enum": REGISTRIES["panel"].own(), "description": "Kind of panel"}},
        "allOf": [
            {"if": {"properties": {"kind": {"const": name}}}, "then": {"$ref": f"#/$defs/panel_{name}"}}
            for name in REGISTRIES["panel"].own()
        ],
    }
    references = {name: {"$ref": f"#/$defs/panel_{name}"} for name in REGISTRIES["panel"].own()}
    definitions["defaults"] = {"type": "object", "additionalProperties": False, "properties": references}
    definitions["Series"] = {"anyOf": [definitions["Series"], {"type": "string", "pattern": r"^\w+/\w+$"}]}
    methods = {}
    for name in REGISTRIES["method"].own():
        method = _of_kind("method", name, definitions)
        del method["properties"]["kind"]
        methods[name] = {"anyOf": [method, {"type": "null"}, NAMED], "description": REGISTRIES["method"].get(name).__doc__}
    definitions["methods"] = {"type": "object", "additionalProperties": False, "properties": methods}
    definitions["values"] = _partial(values) | {"additionalProperties": False, "patternProperties": {PLACED: {}}}
    sweep = definitions["values"]["properties"]["sweep"]["anyOf"][0]
    # A variant may take an axis away by setting it to nothing, and name another one.
    sweep.pop("maxProperties")
    axes = sweep["patternProperties"].items()
    sweep["patternProperties"] = {axis: {"anyOf": [points, {"type": "null"}, NAMED]} for axis, points in axes}
    sweep["additionalProperties"] = False
    names = REGISTRIES["observable"].own()
    definitions["values"]["properties"]["observables"]["anyOf"][0]["items"] = {"enum": names}
    definitions["Network"] = _partial(definitions["Network"])
    definitions["placeholder"] = {"type": "string", "pattern": PLACED, "description": "A name under `for`, in braces"}
    definitions["Sections"]["properties"] |= {"for": {"type": ["object", "array"], "description": FOR}}
    document = {"$schema": "https://json-schema.org/draft/2020-12/schema"} | root | {"$defs": dict(sorted(definitions.items()))}
    # A file may hold a part of the configuration only.
    document.pop("required", None)
    return _referring(document)


def text():
    """The schema as it is written to its file."""
    return json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"


def _referring(node):
    """The schema with references in the place of named definitions."""
    if isinstance(node, list):
        return [_referring(part) for part in node]
    if not isinstance(node, dict):
        return node
    if isinstance(node.get("definition"), str):
        node = {"$ref": f"#/$defs/{node['definition']}"} | {k: v for k, v in node.items() if k not in ("definition", "type")}
    return {key: _referring(part) for key, part in node.items()}


def _schema(model):
    return copy.deepcopy(model.model_json_schema(ref_template="#/$defs/{model}"))


def _of_kind(sort, name, definitions):
    found = _schema(REGISTRIES[sort].get(name))
    definitions |= found.pop("$defs", {})
    found = _partial(found)
    kind = {"const": name, "description": f"Kind of {sort}"}
    found["properties"] = {"kind": kind} | found["properties"]
    return found


def _partial(node):
    """The schema of an object of which any key may be missing, a placeholder, or set to nothing to take it away."""
    node = copy.deepcopy(node) | {"additionalProperties": {"type": "null"}}
    node.pop("required", None)
    for name, child in node["properties"].items():
        told = {key: child.pop(key) for key in ("description", "default", "title") if key in child}
        node["properties"][name] = {"anyOf": [child, {"type": "null"}, NAMED]} | told
    return node


if __name__ == "__main__":
    PATH.parent.mkdir(parents=True, exist_ok=True)
    PATH.write_text(text())
    sys.stdout.write(f"{PATH}\n")
