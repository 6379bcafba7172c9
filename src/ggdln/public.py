"""The public names, as `__init__.pyi` lists them: the module that has each, and what it is."""

import re
from pathlib import Path

_ENTRIES = re.findall(r"^from (\S+) import (\w+) as \2  # (.*)$", Path(__file__).with_name("__init__.pyi").read_text(), re.M)

NAMES = {name: module for module, name, _ in sorted(_ENTRIES, key=lambda entry: entry[1].lower())}
"""Name -> module."""
LINES = {name: line for _, name, line in _ENTRIES}
"""Name -> what it is, in a line."""
