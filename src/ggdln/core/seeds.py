"""Random streams named by what they are for.

A stream is derived from the root seed and a path such as ("task", "mnist_parity", "digits", draw). Streams of different
paths are independent, and none depends on how many others exist, on their order, or on the number of cores.
"""

import hashlib
import json

import numpy as np

from ggdln.core import checks


def rng(seed, *path):
    """The generator for `path` under root seed `seed`."""
    return np.random.default_rng(entropy(seed, *path))


def entropy(seed, *path):
    """A 128-bit integer that identifies the stream; use it to seed other libraries."""
    text = json.dumps([seed, *path])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:16], "little")


def checked(seed, draw):
    """A root seed and the number of a draw that streams can be named by."""
    return checks.integer("seed", seed, 0), checks.integer("draw", draw, 0)
