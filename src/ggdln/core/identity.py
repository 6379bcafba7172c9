"""Names for things by what determines them: the same content, the same name."""

import hashlib
import json


def identifier(kind, *content):
    """`kind` with a short hash of the content."""
    text = json.dumps(content, sort_keys=True)
    return f"{kind}-{hashlib.sha256(text.encode()).hexdigest()[:10]}"


def task_id(task, seed):
    return identifier(task["kind"], seed, task)
