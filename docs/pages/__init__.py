"""Pages of the site that follow from code, configuration and results: each module here writes some of them.

They are made anew whenever the site is built, are not kept in git, and are never edited. `PAGES` has them all, by their path under
docs; each is a function that gives Markdown.
"""

from pathlib import Path

DOCS = Path(__file__).resolve().parents[1]
ROOT = DOCS.parent
REPOSITORY = "https://github.com/ggdln/ggdln/blob/main"

from pages import api, configuration, copied, gallery, kinds, running, trust

PAGES = {
    "gallery.md": gallery.page,
    "trust.md": trust.page,
    "contributing.md": copied.contributing,
    "changelog.md": copied.changelog,
    "reference/index.md": running.index,
    "reference/api.md": api.page,
    "reference/configuration.md": configuration.page,
    "reference/commands.md": running.commands,
    "reference/files.md": running.files,
    **{f"reference/{sort}.md": page for sort, page in kinds.pages().items()},
}


def write():
    """Write all pages and the pictures that they show."""
    (DOCS / "reference/pictures").mkdir(parents=True, exist_ok=True)
    for path, page in PAGES.items():
        text = page()
        file = DOCS / path
        # A page that stays as it is isn't read again by Sphinx.
        if not file.exists() or file.read_text() != text:
            file.write_text(text)
