"""Digits: the embedded subset, and IDX files with their sums checked."""

import hashlib
import struct

import numpy as np
import pytest

from ggdln.core.errors import FileError, InputError
from ggdln.tasks._digits import COUNTS, SHA256, load_digits

LENGTHS = {"train": 30, "t10k": 10}


@pytest.fixture
def idx(tmp_path):
    """A folder with four small IDX files; gives the folder, the raw folder and their sums."""
    raw = tmp_path / "MNIST" / "raw"
    raw.mkdir(parents=True)
    rng = np.random.default_rng(0)
    for part, n in LENGTHS.items():
        images, labels = rng.integers(256, size=(n, 28, 28), dtype=np.uint8), np.arange(n, dtype=np.uint8) % 10
        (raw / f"{part}-images-idx3-ubyte").write_bytes(struct.pack(">IIII", 2051, n, 28, 28) + images.tobytes())
        (raw / f"{part}-labels-idx1-ubyte").write_bytes(struct.pack(">II", 2049, n) + labels.tobytes())
    return tmp_path, raw


def sums(raw):
    return {name: hashlib.sha256((raw / name).read_bytes()).hexdigest() for name in SHA256}


def test_embedded_digits_are_500_of_each_class():
    digits = load_digits()
    assert digits.images.shape == (5000, 784)
    assert tuple(np.bincount(digits.labels)) == digits.counts == COUNTS["embedded"]
    assert digits.images.dtype == np.uint8
    assert digits.images.max() == 255
    # A zero has an empty centre, a one a full one: the pixels are in their places.
    centre = digits.images.reshape(-1, 28, 28)[:, 12:16, 13:15].mean(axis=(1, 2))
    assert centre[digits.labels == 1].mean() > 4 * centre[digits.labels == 0].mean()
    assert "embedded" in digits.source


def test_full_digits_are_read_from_idx_files(idx):
    folder, raw = idx
    digits = load_digits("full", folder=folder, sha256=sums(raw))
    assert digits.images.shape == (40, 784)
    assert np.array_equal(digits.labels, np.concatenate([np.arange(30) % 10, np.arange(10)]))
    stored = (raw / "train-images-idx3-ubyte").read_bytes()[16:]
    assert digits.images[:30].tobytes() == stored
    assert "40 digits" in digits.source


def test_files_that_are_not_mnist_are_refused(idx):
    folder, _ = idx
    with pytest.raises(FileError, match="train-images-idx3-ubyte is damaged or not MNIST: sha256"):
        load_digits("full", folder=folder)


@pytest.mark.parametrize("name", SHA256)
def test_one_flipped_bit_is_named(idx, name):
    folder, raw = idx
    good = sums(raw)
    content = bytearray((raw / name).read_bytes())
    content[-1] ^= 1
    (raw / name).write_bytes(content)
    with pytest.raises(FileError, match=name):
        load_digits("full", folder=folder, sha256=good)


@pytest.mark.parametrize("name", SHA256)
@pytest.mark.parametrize("keep", [0, 3, 17, 35])
def test_truncated_files_are_refused_even_with_matching_sums(idx, name, keep):
    folder, raw = idx
    (raw / name).write_bytes((raw / name).read_bytes()[: min(keep, len((raw / name).read_bytes()) - 1)])
    with pytest.raises(FileError, match="raw"):
        load_digits("full", folder=folder, sha256=sums(raw))


def test_as_many_labels_as_images(idx):
    folder, raw = idx
    labels = np.arange(20, dtype=np.uint8) % 10
    (raw / "train-labels-idx1-ubyte").write_bytes(struct.pack(">II", 2049, 20) + labels.tobytes())
    with pytest.raises(FileError, match="raw: 30 images but 20 labels"):
        load_digits("full", folder=folder, sha256=sums(raw))


def test_missing_files_are_never_replaced_by_another_source(tmp_path):
    with pytest.raises(FileError, match="train-images-idx3-ubyte is missing"):
        load_digits("full", folder=tmp_path)


def test_unknown_source():
    with pytest.raises(InputError, match="'fashion', accepted: embedded, full"):
        load_digits("fashion")
