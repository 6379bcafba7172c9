"""Arrays in a file of the user's, by name: .npz without pickle, .csv by its columns, .nc by its variables.

What is wrong with a file is a `FileError` whose text says what would be accepted, so that a configuration can name the key
before it and a job the file.
"""

import hashlib
import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ggdln.core.errors import FileError
from ggdln.core.problems import choices, near

NUMBERS = "biuf"
"""Types of arrays of numbers, as numpy abbreviates them."""


@dataclass(frozen=True)
class Arrays:
    """The arrays of a file by name, and the sha256 of the file. None stands for one that can't be read without pickle."""

    values: dict
    sha256: str

    def __getitem__(self, name):
        if name not in self.values:
            raise FileError(f"a file with {name}; this one has {choices(name, self.values) or 'nothing'}")
        if self.values[name] is None:
            raise FileError(f"arrays of numbers or text; {name} holds Python objects, which are not unpickled, or is damaged")
        return self.values[name]


def version(path):
    """What tells one state of a file from another without reading it: time and size. The file must be there."""
    path = Path(path)
    if path.suffix not in READERS:
        raise FileError(f"a file whose name ends in {', '.join(READERS)}")
    if not path.is_file():
        others = sorted(str(other) for other in path.parent.glob("*") if other.suffix in READERS)
        raise FileError(f"a file that is there{near(str(path), others)}")
    return path.stat().st_mtime_ns, path.stat().st_size


def read(path):
    """The `Arrays` of a file."""
    version(path)
    try:
        content = Path(path).read_bytes()
        values = READERS[Path(path).suffix](content)
    except Exception as error:  # the libraries that read them raise all sorts for a damaged file
        raise FileError(f"a {Path(path).suffix} file; this one can't be read ({str(error).strip() or 'it is empty'})") from None
    return Arrays(values, hashlib.sha256(content).hexdigest())


def counted(row):
    """A row of an array in words."""
    return f"row {row}"


def below_header(row):
    """A row of a table in words, as one who looks into the file counts them."""
    return f"row {row + 1} below the header"


def numbers(name, array, *ndim, row=counted):
    """An array of finite numbers with so many dimensions, in the type that it has. row: how a row is named."""
    array = np.asarray(array)
    if array.ndim not in ndim:
        raise FileError(f"{name} with {' or '.join(map(str, ndim))} dimension(s); its shape is {array.shape}")
    if 0 in array.shape:
        raise FileError(f"{name} with entries; its shape is {array.shape}")
    if array.dtype.kind not in NUMBERS:
        at, odd = _odd(array)
        if odd is not None:
            raise FileError(f"numbers; {name} has entries such as {odd!r}, the first in {row(at)}")
        array = np.where(array == "", "nan", array).astype(np.float64)  # texts such as nan
    wrong = ~np.isfinite(array)
    if wrong.any():
        first = int(np.flatnonzero(wrong.reshape(len(array), -1).any(axis=1))[0])
        told = f"{wrong.sum()} that are missing, NaN or infinite, the first in {row(first)}"
        raise FileError(f"finite numbers; {name} has {told}")
    return array


def _odd(array):
    """Row and value of the first entry that isn't a number; None if there is no such."""
    if array.dtype.kind not in "OU":
        return 0, str(array.ravel()[0])
    for i, entry in enumerate(array.ravel().tolist()):
        try:
            float(entry or "nan")
        except (TypeError, ValueError):
            return i // (array.size // len(array)), entry
    return 0, None


def _npz(content):
    if not content.startswith(b"PK"):
        raise ValueError("it is no archive of arrays with names, as numpy.savez writes it")
    found = np.load(io.BytesIO(content), allow_pickle=False)
    values = {}
    for name in found.files:
        try:
            values[name] = found[name]
        except ValueError:
            values[name] = None
    return values


def _csv(content):
    import pandas as pd

    # Only an empty field is missing: a class may well be called NA.
    table = pd.read_csv(io.BytesIO(content), keep_default_na=False, na_values=[""], skipinitialspace=True)
    return {str(name): _plain(column.to_numpy()) for name, column in table.items()}


def _nc(content):
    import netCDF4
    import xarray as xr

    # On damaged files of the classic format the NetCDF library crashes; scipy, in Python, raises an error.
    classic = content.startswith(b"CDF")
    opened = io.BytesIO(content) if classic else xr.backends.NetCDF4DataStore(netCDF4.Dataset("content", memory=content))
    with xr.open_dataset(opened, engine="scipy" if classic else None) as dataset:
        return {str(name): _plain(variable.values) for name, variable in dataset.variables.items()}


READERS = {".npz": _npz, ".csv": _csv, ".nc": _nc}


def _plain(array):
    """Text as an array of text, where it comes as objects; what is missing there is an empty one."""
    if array.dtype.kind != "O":
        return array
    whole = ["" if entry is None or entry != entry else entry for entry in array.ravel()]
    return np.array(whole).reshape(array.shape) if all(isinstance(entry, str) for entry in whole) else array
