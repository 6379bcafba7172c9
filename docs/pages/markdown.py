"""Markdown from plain text: docstrings, tables, and what must be escaped."""

import inspect
import re

SPECIAL = re.compile(r"([\\*_<>\[\]$|#~^{}])")
ENTRY = re.compile(r"^(\w[\w., ]*?)  +(\S.*)$")


def escape(text):
    """Plain text with `code` in it, such that Markdown shows what stands there."""
    parts = re.split(r"(`[^`]+`)", str(text))
    return "".join(part if part.startswith("`") and len(part) > 2 else SPECIAL.sub(r"\\\1", part) for part in parts)


def code(text):
    """A value as code, also in a table."""
    text = str(text).replace("|", "\\|").replace("\n", " ")
    return f"`{text}`" if text else ""


def table(head, rows, widths=None):
    """A table of Markdown cells; nothing if there are no rows."""
    if not rows:
        return ""
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    lines += [f"| {' | '.join(str(cell).replace(chr(10), ' ') for cell in row)} |" for row in rows]
    return "\n".join(lines) + "\n"


def docstring(thing, references=None):
    """The docstring of something as Markdown.

    Paragraphs stay, lists stay, blocks that are set in further stay as they are, and lines of a name and its meaning, two blanks
    apart, become a definition list. `references` gives a link for names in backquotes.
    """
    text = inspect.cleandoc(thing if isinstance(thing, str) else inspect.getdoc(thing) or "")
    return "\n\n".join(filter(None, (_block(block, references) for block in re.split(r"\n\s*\n", text))))


def _block(block, references):
    lines = block.split("\n")
    if all(line.startswith("    ") for line in lines if line):
        return "```text\n" + inspect.cleandoc(block) + "\n```"
    if ENTRY.match(lines[0]) and not lines[0].startswith("- "):
        return _definitions(lines, references)
    if lines[0].startswith("- "):
        items = re.split(r"\n(?=- )", block)
        return "\n".join(f"- {_inline(' '.join(item[2:].split()), references)}" for item in items)
    return _inline(" ".join(line.strip() for line in lines), references)


def _definitions(lines, references):
    """Lines such as `width   N, a positive number`, whose continuations are set in."""
    entries = []
    for line in lines:
        found = ENTRY.match(line)
        if found and not line.startswith(" "):
            entries.append([found[1], found[2]])
        elif entries:
            entries[-1][1] += " " + line.strip()
    told = (f"{', '.join(code(n.strip()) for n in name.split(','))}\n: {_inline(text, references)}" for name, text in entries)
    return "\n\n".join(told)


def _inline(text, references):
    text = escape(text)
    if references:
        text = re.sub(r"`([\w.]+)`", lambda found: references(found[1]) or found[0], text)
    return text


def definitions(pairs):
    """A definition list of Markdown."""
    return "\n\n".join(f"{name}\n: {text or '–'}" for name, text in pairs)
