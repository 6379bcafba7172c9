"""Where the arrays live: device, precision, and how many runs fit at once."""

import torch

from ggdln.core.errors import InputError

_DTYPES = {"float32": torch.float32, "float64": torch.float64}


def choose_device(name):
    """A torch device from "auto" (CUDA if there is one), "cpu" or "cuda"."""
    if name not in ("auto", "cpu", "cuda"):
        raise InputError(f"device: expected 'auto', 'cpu' or 'cuda', got {name!r}")
    if name == "cuda" and not torch.cuda.is_available():
        raise InputError("device: 'cuda' was asked for, but torch finds no CUDA device; use 'auto' or 'cpu'")
    return torch.device("cuda" if name == "auto" and torch.cuda.is_available() else name.replace("auto", "cpu"))


def choose_dtype(name):
    """A torch dtype from "float32" or "float64"."""
    try:
        return _DTYPES[str(name).removeprefix("torch.")]
    except KeyError:
        raise InputError(f"dtype: expected 'float32' or 'float64', got {name!r}") from None


def group_size(device, dtype, floats_per_run, memory_mb):
    """How many runs to advance at once within `memory_mb`.

    On the CPU always one: its matrices are large enough to fill the cores, so a batch gains nothing, and the numbers of
    a run then cannot depend on which others it was batched with.
    """
    if device.type == "cpu":
        return 1
    return max(1, int(memory_mb * 1e6 / (floats_per_run * dtype.itemsize)))


def to_numpy(tensor):
    """A float64 (or integer, or boolean) array on the host."""
    array = tensor.detach().cpu()
    return (array.double() if array.is_floating_point() else array).numpy()
