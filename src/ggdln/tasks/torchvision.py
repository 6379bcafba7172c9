"""Sets of images that torchvision knows."""

import hashlib
from functools import lru_cache
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from ggdln.core.errors import FileError
from ggdln.core.problems import Problem
from ggdln.tasks._digits import SHA256, fetch, read_idx, torchvision_sets
from ggdln.tasks._samples import FromSamples, Samples

IDX = ("FashionMNIST", "KMNIST", "MNIST")
"""Sets in the format of MNIST, which are read without torch."""
PARTS = {
    "CIFAR10": ({"train": True}, {"train": False}),
    "CIFAR100": ({"train": True}, {"train": False}),
    "STL10": ({"split": "train"}, {"split": "test"}),
    "SVHN": ({"split": "train"}, {"split": "test"}),
    "USPS": ({"train": True}, {"train": False}),
}
"""Sets that torchvision reads, and how it is asked for training and test images."""


class Torchvision(FromSamples):
    """Images in classes, with a training and a test set; each image is laid out in one row of numbers from 0 to 255.

    Those in the format of MNIST are read from the unpacked IDX files in FOLDER/NAME/raw, all others by torchvision, which looks
    for them in FOLDER and, but for USPS, compares their checksums with those it knows before it reads them.
    """

    place: ClassVar[str] = "name"

    name: Literal[(*IDX, *PARTS)] = Field(description="Name of the set, as torchvision has it")
    folder: str = Field(
        "data", min_length=1, description="Folder of the sets, where torchvision puts them: its argument `root`"
    )
    download: bool = Field(
        False, description="Download the set into the folder, when the configuration is read, if it is not there"
    )

    def problems(self, counts=None):
        if not (self.download or self._is_there()):
            told = (
                f"a folder with the unpacked IDX files, or download: true; {self._missing()[0]} is missing"
                if self.name in IDX
                else f"a folder in which torchvision finds {self.name}, or download: true"
            )
            return [Problem("task.folder", self.folder, told)]
        return super().problems(counts)

    def _missing(self):
        return [path for path in _idx_files(self.name, self.folder) if not path.is_file()]

    def _is_there(self):
        if self.name in IDX:
            return not self._missing()
        try:
            for part in PARTS[self.name]:
                getattr(torchvision_sets(), self.name)(self.folder, **part)
        except (OSError, RuntimeError):
            return False
        return True

    def load(self):
        if self.download and not self._is_there():
            fetch(self.name, self.folder, PARTS.get(self.name, ({},)))
        files = _idx_files(self.name, self.folder) if self.name in IDX else sorted(Path(self.folder).glob("*"))
        files += [inner for path in files if path.is_dir() for inner in sorted(path.glob("*"))]
        try:
            return _samples(self.name, self.folder, tuple((path, *_state(path)) for path in files if not path.is_dir()))
        except FileNotFoundError as error:
            raise FileError(f"a set whose files are there; {error.filename} is missing") from None
        except (RuntimeError, ValueError, OSError) as error:
            raise FileError(f"files of {self.name} as torchvision leaves them; it said: {error}") from None


def _idx_files(name, folder):
    return [Path(folder) / name / "raw" / file for file in SHA256]


def _state(path):
    found = path.stat()
    return found.st_mtime_ns, found.st_size


@lru_cache(maxsize=2)
def _samples(name, folder, states):
    """The `Samples` of a set, by the states of its files."""
    if name in IDX:
        paths = [path for path, *_ in states]
        arrays = [read_idx(path, 3 if "images" in path.name else 1) for path in paths]
        contents, told = [path.read_bytes() for path in paths], "in four IDX files"
    else:
        parts = [getattr(torchvision_sets(), name)(folder, **part) for part in PARTS[name]]
        arrays = [array for part in parts for array in (np.asarray(part.data), _labels(part))]
        contents, told = [array.tobytes() for array in arrays], "read by torchvision"
    x, y, x_test, y_test = (array.reshape(len(array), -1) if array.ndim > 1 else array for array in arrays)
    total = hashlib.sha256()
    for content in contents:
        total.update(content)
    source = f"{name}, {len(x) + len(x_test):,} images {told}"
    return Samples(x, y, source, total.hexdigest(), x_test, y_test, classes=True)


def _labels(part):
    """Numbers of classes: sets of torchvision call them targets or labels."""
    return np.asarray(part.targets if hasattr(part, "targets") else part.labels)
