"""Text of the page: prose with indices, and findings in Markdown."""

import re
from html import escape

from markdown_it import MarkdownIt
from markupsafe import Markup


def prose(text):
    """Plain text in which symbols such as N_0 have their index."""
    return Markup(re.sub(r"\b([A-Z])_([0-9a-zA-Z])\b", r"\1<sub>\2</sub>", escape(str(text), quote=False)))


def markdown(text):
    """Markdown as HTML, without raw HTML. Only links within the page stay links: the page must stand alone."""
    tokens = _MARKDOWN.parse(text or "")
    for token in tokens:
        if token.children:
            token.children = _own_links(token.children)
        # The page has its own order of headings.
        if token.type in ("heading_open", "heading_close"):
            token.tag = "p"
            token.attrs["class"] = "heading"
    return Markup(_MARKDOWN.renderer.render(tokens, _MARKDOWN.options, {}))


_MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")


def _own_links(tokens):
    kept, keep = [], True
    for token in tokens:
        if token.type == "link_open":
            keep = token.attrs["href"].startswith("#")
        if not token.type.startswith("link_") or keep:
            kept.append(token)
    return kept
