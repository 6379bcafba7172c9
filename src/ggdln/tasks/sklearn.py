"""Samples that come with scikit-learn."""

import hashlib
from functools import lru_cache
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from ggdln.tasks._samples import FromSamples, Samples

NAMES = ("breast_cancer", "diabetes", "digits", "iris", "wine")


class Sklearn(FromSamples):
    """A set of samples that scikit-learn carries, without a download; all but diabetes have classes."""

    place: ClassVar[str] = "name"

    name: Literal[NAMES] = Field(description="Name of the set")

    def load(self):
        return _samples(self.name)


@lru_cache(maxsize=4)
def _samples(name):
    from sklearn import datasets

    found = getattr(datasets, f"load_{name}")()
    x, y = np.ascontiguousarray(found.data, dtype=np.float64), found.target
    classes = "target_names" in found
    y = np.asarray(found.target_names)[y] if classes else np.asarray(y, dtype=np.float64)
    checksum = hashlib.sha256(x.tobytes() + "\n".join(map(str, y.tolist())).encode()).hexdigest()
    return Samples(x, y, source=f"{name} of scikit-learn", sha256=checksum, classes=classes)
