"""NetCDF in and out: the one module that knows the file format.

A file is written whole or not at all, under a temporary name that is then renamed. It holds one dataset, or several in named
groups. Every group carries the sha256 of its content, so a truncated, damaged or foreign file is recognised when it is read.
"""

import json
import os
import shutil
import subprocess
import tempfile
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import xarray as xr

from ggdln.core.errors import FileError
from ggdln.core.identity import digest

FORMAT = "ggdln 1"
PACKAGES = ("numpy", "scipy", "xarray", "netCDF4")

FULL_DISK_BYTES = 2**20
"""Free bytes below which a disk counts as full."""


def write(content, path, *, provenance):
    """Write a dataset, or a mapping of group name to dataset, with what it was made from in the global attributes."""
    groups = content if isinstance(content, dict) else {"/": content}
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    os.close(handle)
    try:
        mode = "w"
        if "/" not in groups:
            xr.Dataset(attrs=_attributes(provenance)).to_netcdf(temporary, mode=mode)
            mode = "a"
        for name, dataset in groups.items():
            dataset = dataset.copy()
            dataset.attrs = {"content_sha256": digest(dataset)} | (_attributes(provenance) if name == "/" else {})
            encoding = {v: {"zlib": True, "complevel": 1} for v in dataset.variables if dataset[v].size > 1000}
            dataset.to_netcdf(temporary, mode=mode, group=name, encoding=encoding)
            mode = "a"
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException as error:
        free = shutil.disk_usage(path.parent).free
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        # The NetCDF library doesn't say why it can't write.
        if isinstance(error, RuntimeError) and "HDF error" in str(error):
            reason = "No space left on the disk" if free < FULL_DISK_BYTES else "the disk can't be written"
            raise FileError(f"{path}: {reason}, {free} bytes are free ({error})") from error
        raise


def read(path, group="/"):
    """The dataset in `group` of a file written by `write`, in memory."""
    try:
        with xr.open_dataset(path, engine="netcdf4") as root:
            made_by = root.attrs.get("format")
        if made_by == FORMAT:
            with xr.open_dataset(path, engine="netcdf4", group=group) as dataset:
                dataset = dataset.load()
    except FileNotFoundError as error:
        raise FileError(f"{path}: no such file") from error
    except (OSError, ValueError, RuntimeError, KeyError, UnicodeDecodeError) as error:
        raise FileError(
            f"{path}: truncated, damaged or not a NetCDF file ({error}); delete it to have it made again"
        ) from error
    if made_by != FORMAT:
        raise FileError(
            f"{path}: not a file of this version of ggdln (format {made_by!r}, expected {FORMAT!r}); "
            "delete it to have it made again"
        )
    if dataset.attrs.get("content_sha256") != digest(dataset):
        raise FileError(f"{path}: the content of group {group!r} does not match its checksum; delete it to have it made again")
    return dataset


def groups(path):
    """All groups that hold a dataset, as a mapping of name to dataset."""
    try:
        with xr.open_datatree(path, engine="netcdf4") as tree:
            names = [node.path for node in tree.subtree if node.data_vars]
    except (OSError, ValueError, RuntimeError, KeyError) as error:
        raise FileError(f"{path}: missing, truncated, damaged or not a NetCDF file ({error})") from error
    return {name.strip("/"): read(path, name) for name in names}


def code_version(folder=None):
    """Version of this package, with the git commit where the code is in a git checkout ("+changes" if modified)."""
    folder = folder or Path(__file__).parent
    command = ["git", "-C", str(folder), "describe", "--always", "--dirty=+changes", "--abbrev=12", "--exclude=*"]
    try:
        commit = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return package_version()
    return f"{package_version()} {commit}"


def package_version():
    """Version of this package, where it is installed."""
    try:
        return version("ggdln")
    except PackageNotFoundError:
        return "not installed"


def _attributes(provenance):
    packages = {}
    for name in PACKAGES:
        with suppress(PackageNotFoundError):
            packages[name] = version(name)
    attributes = {"format": FORMAT, "code_version": code_version(), "packages": packages} | provenance
    return {k: v if isinstance(v, (str, int, float)) else json.dumps(v, sort_keys=True) for k, v in attributes.items()}


def _umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask
