"""Documents at the root of the repository that the site shows too."""

import re

from pages import REPOSITORY, ROOT


def copy(name):
    """A document with its links to files made ones to the repository."""
    text = (ROOT / name).read_text()
    return re.sub(r"\]\((?!https?:|#)([^)]+)\)", rf"]({REPOSITORY}/\1)", text)


def contributing():
    return copy("CONTRIBUTING.md")


def changelog():
    return copy("CHANGELOG.md")
