"""Sets of images in the files of torchvision that have the format of MNIST."""

import hashlib
from functools import lru_cache
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field

from ggdln.core.errors import FileError
from ggdln.core.problems import Problem
from ggdln.tasks._digits import PIXELS, SHA256, fetch, read_idx
from ggdln.tasks._samples import FromSamples, Samples

NAMES = ("FashionMNIST", "KMNIST", "MNIST")


class Torchvision(FromSamples):
    """Images of 28 x 28 pixels from 0 to 255 in ten classes, with 60,000 for training and 10,000 for testing.

    They are read from the unpacked IDX files in FOLDER/NAME/raw.
    """

    place: ClassVar[str] = "name"

    name: Literal[NAMES] = Field(description="Name of the set, as torchvision has it")
    folder: str = Field("data", min_length=1, description="Folder of the sets; the unpacked IDX files are in FOLDER/NAME/raw")
    download: bool = Field(
        False, description="Download the set into the folder, when the configuration is read, if it is not there"
    )

    def problems(self, counts=None):
        missing = [path for path in self._files() if not path.is_file()]
        if missing and not self.download:
            told = f"a folder with the unpacked IDX files, or download: true; {missing[0]} is missing"
            return [Problem("task.folder", self.folder, told)]
        return super().problems(counts)

    def _files(self):
        return [Path(self.folder) / self.name / "raw" / file for file in SHA256]

    def load(self):
        files = self._files()
        if self.download and not all(path.is_file() for path in files):
            fetch(self.name, self.folder)
        try:
            return _samples(self.name, tuple((path, path.stat().st_mtime_ns, path.stat().st_size) for path in files))
        except FileNotFoundError as error:
            raise FileError(f"a set whose files are there; {error.filename} is missing") from None


@lru_cache(maxsize=2)
def _samples(name, states):
    paths = [path for path, *_ in states]
    total = hashlib.sha256()
    for path in paths:
        total.update(path.read_bytes())
    x, y, x_test, y_test = (read_idx(path, 3 if "images" in path.name else 1) for path in paths)
    x, x_test = x.reshape(-1, PIXELS), x_test.reshape(-1, PIXELS)
    source = f"{name}, {len(x) + len(x_test):,} images in four IDX files"
    return Samples(x, y, source, total.hexdigest(), x_test, y_test, classes=True)
