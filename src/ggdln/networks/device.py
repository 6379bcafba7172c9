"""Where the arrays live: device, precision, and how many runs fit at once."""

from typing import NamedTuple

import numpy as np
import torch

from ggdln.core.errors import InputError


class Place(NamedTuple):
    """A device and a precision."""

    device: torch.device
    dtype: torch.dtype

    @classmethod
    def of(cls, runtime, dtype):
        """The place that a `Runtime` asks for, with the precision `dtype` if it has none of its own."""
        name = runtime.device
        if name == "cuda" and not torch.cuda.is_available():
            raise InputError("device: 'cuda' was asked for, but torch finds no CUDA device; use 'auto' or 'cpu'")
        if name == "auto":
            name = "cuda" if torch.cuda.is_available() else "cpu"
        return cls(torch.device(name), getattr(torch, runtime.dtype or dtype))

    @property
    def names(self):
        """Device and precision in words."""
        return {"device": self.device.type, "dtype": str(self.dtype)}

    @property
    def host(self):
        """The same precision in numpy."""
        return np.float32 if self.dtype == torch.float32 else np.float64

    def tensor(self, values):
        """Numbers in this precision, on this device."""
        return torch.tensor(values, device=self.device, dtype=self.dtype)


def group_size(place, floats_per_run, memory_mb):
    """How many runs to train at once.

    On the CPU always one: its matrices are large enough to fill the cores, so a batch gains nothing, and the numbers of
    a run then cannot depend on which others it was batched with.
    """
    return 1 if place.device.type == "cpu" else runs_within(place, floats_per_run, memory_mb)


def runs_within(place, floats_per_run, memory_mb):
    """How many runs fit into `memory_mb`, at least one."""
    return max(1, int(memory_mb * 1e6 / (floats_per_run * place.dtype.itemsize)))


def to_numpy(tensor):
    """A float64 (or integer, or boolean) array on the host."""
    array = tensor.detach().cpu()
    return (array.double() if array.is_floating_point() else array).numpy()
