"""Names for things by what determines them: the same content, the same name."""

import hashlib
import json

import numpy as np


def identifier(kind, *content):
    """`kind` with a short hash of the content."""
    text = json.dumps(content, sort_keys=True)
    return f"{kind}-{hashlib.sha256(text.encode()).hexdigest()[:10]}"


def task_id(task, seed):
    return identifier(task["kind"], seed, task)


def digest(dataset):
    """sha256 over names, dimensions, types and values of all variables of a dataset."""
    total = hashlib.sha256()
    for name in sorted(dataset.variables, key=str):
        variable = dataset.variables[name]
        values = np.ascontiguousarray(variable.values)
        if values.dtype.kind in "OUT":
            values = np.char.encode(values.astype(str), "utf-8")
            kind = "text"
            content = b"\0".join(values.ravel().tolist())
        else:
            kind = values.dtype.newbyteorder("=").str
            content = values
        total.update(json.dumps([str(name), list(map(str, variable.dims)), kind, values.shape]).encode())
        total.update(content)
    return total.hexdigest()
