"""JSON files that are written whole or not at all."""

import json
import os
from pathlib import Path


def write_json(path, content):
    """Write `content`, which holds finite numbers only, under a temporary name that is then renamed."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_text(json.dumps(content, indent=1, allow_nan=False) + "\n")
    os.replace(temporary, path)
