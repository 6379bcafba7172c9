"""Configuration files: what YAML says, with every mistake by file, line and column."""

from pathlib import Path

import yaml

from ggdln.core.errors import ConfigError
from ggdln.core.problems import short
from ggdln.core.trees import merge

MOST_LEVELS = 20
MOST_VALUES = 200_000
"""Most values in a file, each counted as often as an alias repeats it."""


def default_files(root):
    """The files that make up the configuration of the paper."""
    folder = Path(root) / "config"
    further = [*sorted((folder / "claims").glob("*.yaml")), *folder.glob("calibration.yaml")]
    return [folder / "config.yaml", folder / "figures.yaml", *further]


def load(files, extra=None):
    """The YAML `files`, each adding to those before it, and then the dictionary `extra`."""
    raw = {}
    for file in files:
        merge(raw, read_yaml(file))
    return merge(raw, extra or {})


def read_yaml(file):
    """The content of a YAML file; what is wrong with it is said with its line and column."""
    try:
        content = _parse(Path(file).read_text(encoding="utf-8"), file)
    except FileNotFoundError:
        raise ConfigError(f"There is no configuration file {file}.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"The configuration file {file} can't be read: {error}.") from None
    except yaml.YAMLError as error:
        mark, what = getattr(error, "problem_mark", None), getattr(error, "problem", None) or error
        raise ConfigError(f"{file}{_place(mark)}: not valid YAML, {what}.") from None
    except (ValueError, RecursionError) as error:  # such as a date in a month 13
        raise ConfigError(f"{file}: not valid YAML, {error}.") from None
    if content is not None and not isinstance(content, dict):
        raise ConfigError(f"{file}: {short(content)}; accepted: keys and values")
    return content or {}


def _parse(text, file):
    """What a YAML text says. A key that stands twice is refused, where YAML would take the last one."""
    _bounded(text, file)
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text)
    try:
        node = loader.get_single_node()
        repeated = _repeated_key(node)
        if repeated:
            first, again = repeated
            raise ConfigError(
                f"{file}{_place(again.start_mark)}: the key {again.value!r} stands here again, "
                f"after line {first.start_mark.line + 1}; accepted: once"
            )
        return loader.construct_document(node) if node else None
    finally:
        loader.dispose()


def _bounded(text, file):
    """Refuse a text that a few lines make endless: levels without end, and aliases that stand for very many values."""
    inside, sizes, total = [], {}, 0
    for event in yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
        if isinstance(event, yaml.CollectionStartEvent):
            inside.append((event.anchor, total))
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = inside.pop()
            sizes[anchor] = total - before
        elif isinstance(event, yaml.AliasEvent) and event.anchor in [anchor for anchor, _ in inside]:
            raise ConfigError(
                f"{file}{_place(event.start_mark)}: *{event.anchor}; accepted: no alias to a value that contains it"
            )
        total += sizes.get(event.anchor, 1) if isinstance(event, yaml.AliasEvent) else 1
        if len(inside) > MOST_LEVELS:
            raise ConfigError(f"{file}{_place(event.start_mark)}: accepted: at most {MOST_LEVELS} levels")
        if total > MOST_VALUES:
            raise ConfigError(
                f"{file}{_place(event.start_mark)}: accepted: at most {MOST_VALUES} values, with what aliases stand for"
            )


def _repeated_key(root):
    """The nodes of a key that stands twice in one mapping, None if there is no such key."""
    queue, seen = [root], set()
    while queue:
        node = queue.pop()
        if id(node) in seen or not isinstance(node, yaml.CollectionNode):
            continue
        seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            queue += node.value
            continue
        keys = {}
        for name, value in node.value:
            queue.append(value)
            if isinstance(name, yaml.ScalarNode) and name.tag != "tag:yaml.org,2002:merge":
                if (name.tag, name.value) in keys:
                    return keys[name.tag, name.value], name
                keys[name.tag, name.value] = name
    return None


def _place(mark):
    return f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
