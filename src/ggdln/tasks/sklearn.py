"""Samples that come with scikit-learn."""

import hashlib
from functools import lru_cache
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from ggdln.tasks._samples import FromSamples, Samples

NAMES = ("breast_cancer", "diabetes", "digits", "iris", "linnerud", "wine")


class Sklearn(FromSamples):
    """A set of samples that scikit-learn carries, without a download: classes, a number (diabetes) or three (linnerud)."""

    place: ClassVar[str] = "name"

    name: Literal[NAMES] = Field(description="Name of the set")

    def load(self):
        return _samples(self.name)


@lru_cache(maxsize=4)
def _samples(name):
    from sklearn import datasets

    found = getattr(datasets, f"load_{name}")()
    x, y = np.ascontiguousarray(found.data, dtype=np.float64), found.target
    names = np.asarray(found.get("target_names", ()))
    classes = bool(names.size) and y.ndim == 1
    y = names[y] if classes else np.asarray(y, dtype=np.float64)
    checksum = hashlib.sha256(x.tobytes() + "\n".join(map(str, y.tolist())).encode()).hexdigest()
    return Samples(
        x, y, source=f"{name} of scikit-learn", sha256=checksum, classes=classes, outputs=() if classes else tuple(names)
    )
