"""Nested dictionaries: joining them, walking over them."""

import copy


def merge(base, extra):
    """Put the values of `extra` into `base`, whose dictionaries are extended and whose other values are replaced."""
    for key, value in extra.items():
        if isinstance(value, dict) and isinstance(base.get(key), dict):
            merge(base[key], value)
        else:
            base[key] = copy.deepcopy(value)
    return base


def leaves(tree, path=()):
    """(path, value) of everything in nested dictionaries that is not itself a non-empty dictionary."""
    for key, value in tree.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, (*path, key))
        else:
            yield (*path, key), value


def has(tree, path):
    """Whether there is a value at a path."""
    for key in path:
        if not isinstance(tree, dict) or key not in tree:
            return False
        tree = tree[key]
    return True


def without_none(tree):
    """Without the keys that are set to nothing."""
    return {key: without_none(value) if isinstance(value, dict) else value for key, value in tree.items() if value is not None}
