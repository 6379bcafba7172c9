"""NetCDF in and out: the one module that knows the file format.

A file is written whole or not at all, under a temporary name that is then renamed. It holds one dataset, or several in named
groups. Every group carries the sha256 of its content, so a truncated, damaged or foreign file is recognised when it is read.
"""

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
import xarray as xr

from ggdln import __version__
from ggdln.core.errors import FileError

FORMAT = "ggdln 1"
PACKAGES = ("numpy", "scipy", "xarray", "netCDF4")

DESCRIPTIONS = {
    # name: (long_name, symbol, equation)
    "x": ("training inputs", "x", ""),
    "y": ("training labels", "Y", ""),
    "task": ("sub-task of each training sample", "p", ""),
    "x_test": ("test inputs", "x_t", ""),
    "y_test": ("test labels", "y(x_t)", ""),
    "task_test": ("sub-task of each test sample", "p", ""),
    "digit": ("digit shown by each training input", "", ""),
    "digit_test": ("digit shown by each test input", "", ""),
    "index": ("position of each training digit in the source", "", ""),
    "index_test": ("position of each test digit in the source", "", ""),
    "permutation": ("new order of the pixels", "", ""),
    "permuted": ("training inputs with permuted pixels", "", ""),
    "permuted_test": ("test inputs with permuted pixels", "", ""),
    "cluster": ("cluster of each training input in each subset of dimensions", "n'", ""),
    "cluster_test": ("cluster of each test input in each subset of dimensions", "n'", ""),
    "theta": ("angle between an input and the reference input", "theta", ""),
    "weights": ("gate weights or cluster centres", "V", "g_m(x) = Theta(V_m.x / sqrt(N0) - b), or centres c_m"),
    "permitted": ("gates that each sub-task permits", "", "g^p(x) = permitted_p g(x)"),
    "gate_count": ("number of gates", "M", ""),
    "b": ("threshold of the gates", "b", ""),
    "stiffness": ("stiffness of soft k-means", "beta", "g_m(x) ~ exp(-beta |x - c_m|^2 / N0)"),
    "fit_iterations": ("iterations of soft k-means", "", ""),
    "fit_shift": ("last relative move of a cluster centre", "", ""),
    "fit_converged": ("soft k-means met its tolerance", "", ""),
    "fit_moved_clusters": ("empty clusters that were moved", "", ""),
    "training_error": ("training error", "epsilon_t", "mean over training inputs of (<f(x)> - Y)^2"),
    "bias": ("bias", "bias", "mean over test inputs of (<f(x)> - y(x))^2"),
    "variance": ("variance", "variance", "mean over test inputs of <df(x)^2>"),
    "generalization_error": ("generalization error", "epsilon_g", "bias + variance"),
    "error_rate": ("error rate", "", "mean over test inputs of 1/2 erfc(y <f> / sqrt(2 <df^2>))"),
    "rank": ("rank of the kernel matrix", "", "rank K_GP"),
    "dead": ("training inputs without an active gate", "", "g(x) = 0"),
    "kernel_profile": ("normalized GP kernel", "K_L(theta)", "cos(g(x(0)), g(x(theta)))^L cos(x(0), x(theta))"),
    "hamiltonian": ("effective Hamiltonian at the saddle point, measured from the prior", "H_L", ""),
    "residual": ("residual of the saddle-point equation relative to its terms", "", ""),
    "evaluations": ("factorizations of the kernel that the solve took", "", ""),
    "order_parameter": ("order parameter of the first layer", "U_1", "U_1^mn = <sum_i a_mi a_ni> / N"),
    "block_ratio": (
        "amplitude of the first diagonal block of U_1 relative to the others",
        "",
        "mean |U_1| on the first block / mean |U_1| on the other diagonal blocks",
    ),
    "kernel_histogram": ("density of normalized kernel elements of equal digits", "", "density of K_L(x, y)"),
    "flat_fraction": ("share of normalized kernel elements of equal digits up to 0.05", "", ""),
    "kernel_element": ("normalized kernel element", "K_L(x, y)", "K~(x, y) / sqrt(K~(x, x) K~(y, y))"),
    "task_correlation": (
        "influence of the training data of one task on the predictions for another",
        "C_pq",
        "sum over test inputs of p and training inputs of q of |k~^T K~^-1|",
    ),
    "correlation_ratio": ("ratio of diagonal to off-diagonal task correlations", "", "mean C_pp / mean C_pq"),
    "kernel_picture": ("renormalized kernel, averaged over squares of samples", "K~", ""),
    "kernel_ratio": ("ratio of same-task to cross-task kernel amplitudes", "", "mean |K~_pp| / mean |K~_pq|"),
    "prediction": ("predictions of trained networks at the test inputs", "f(x_t)", ""),
    "train_mse": ("training error of each network", "", "mean over training inputs of (f(x) - Y)^2"),
    "steps": ("steps of the integrator", "", ""),
    "status": ("how each run ended: 0 converged, 1 at its floor, 2 diverged, 3 unfinished", "", ""),
    "U": ("readout statistics of each network", "U", "sum_i a_mi a_ni / N"),
    "runs_used": ("runs or chains in the averages", "", ""),
    "runs_failed": ("runs or chains left out because they diverged or didn't finish", "", ""),
    "runs_at_floor": ("runs that can't reach the stop rule and end at their least training error", "", ""),
    "largest_rhat": ("largest R-hat of test predictions and of tr U", "", ""),
    "least_ess": ("smallest effective sample size of test predictions and of tr U", "", ""),
    "mixed": ("chains have mixed: R-hat at most 1.05 and effective sample size at least 100", "", ""),
    "bias_error": ("standard error of the bias over runs", "", ""),
    "variance_error": ("standard error of the variance over runs", "", ""),
    "generalization_error_error": ("standard error of the generalization error over runs", "", ""),
    "error_rate_error": ("standard error of the error rate over runs", "", ""),
    "run": ("number of the run", "", ""),
    "draw": ("independent draw of data and gates", "", ""),
    "point": ("index of the sweep point", "", ""),
    "M": ("number of gates", "M", ""),
    "L": ("depth", "L", ""),
    "N": ("width of the hidden layers", "N", ""),
    "sigma": ("standard deviation of the weight prior", "sigma", ""),
}


LITTLE = 2**20
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
            dataset = _described(dataset)
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
            reason = "No space left on the disk" if free < LITTLE else "the disk can't be written"
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


def digest(dataset):
    """sha256 over names, dimensions, types and values of all variables of a dataset."""
    total = hashlib.sha256()
    for name in sorted(dataset.variables, key=str):
        variable = dataset.variables[name]
        values = np.ascontiguousarray(variable.values)
        if values.dtype.kind in "OUT":
            values = np.char.encode(values.astype(str), "utf-8")
            kind = "text"
            content = b"\0".join(values.ravel().tolist())
        else:
            kind = values.dtype.newbyteorder("=").str
            content = values
        total.update(json.dumps([str(name), list(map(str, variable.dims)), kind, values.shape]).encode())
        total.update(content)
    return total.hexdigest()


def code_version(folder=None):
    """Version of this package, with the git commit where the code is in a git checkout ("+changes" if modified)."""
    folder = folder or Path(__file__).parent
    command = ["git", "-C", str(folder), "describe", "--always", "--dirty=+changes", "--abbrev=12", "--exclude=*"]
    try:
        commit = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return __version__
    return f"{__version__} {commit}"


def _attributes(provenance):
    packages = {}
    for name in PACKAGES:
        with suppress(PackageNotFoundError):
            packages[name] = version(name)
    attributes = {"format": FORMAT, "code_version": code_version(), "packages": packages} | provenance
    return {k: v if isinstance(v, (str, int, float)) else json.dumps(v, sort_keys=True) for k, v in attributes.items()}


def _described(dataset):
    dataset = dataset.copy()
    for name in dataset.variables:
        if name in DESCRIPTIONS:
            described = zip(("long_name", "symbol", "equation"), DESCRIPTIONS[name], strict=True)
            dataset[name].attrs.update({key: text for key, text in described if text})
    return dataset


def _umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask
