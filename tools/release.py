"""What CHANGELOG.md says of a version, for the notes of its release: python tools/release.py v0.2.0

A tag that the changelog doesn't tell about is refused, so that no release goes out without its notes.
"""

import re
import sys
from pathlib import Path

CHANGELOG = Path(__file__).resolve().parents[1] / "CHANGELOG.md"


def sections(text):
    """Version -> what the changelog says of it, the newest first."""
    parts = re.split(r"^## \[(.+?)\].*\n", text, flags=re.M)[1:]
    told = [re.sub(r"^\[.+?\]: .*\n?", "", part, flags=re.M).strip() for part in parts[1::2]]
    return dict(zip(parts[::2], told, strict=True))


def notes(tag, text):
    """The section of a tag."""
    known = {f"v{name}": told for name, told in sections(text).items() if name != "Unreleased"}
    if tag not in known:
        sys.exit(f"{tag} is not told in CHANGELOG.md; accepted: {', '.join(known)}")
    return known[tag]


if __name__ == "__main__":
    print(notes(sys.argv[1], CHANGELOG.read_text()))
