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
        name, dtype, found = runtime.device, runtime.dtype or dtype, devices()
        if name == "auto":
            name = "cuda" if "cuda" in found else "cpu"
        if name not in found:
            raise InputError(f"device: {name!r} was asked for, but torch finds only {', '.join(map(repr, found))} here")
        if name == "mps" and dtype == "float64":
            raise InputError("dtype: 'float64' doesn't exist on the device 'mps'; use dtype 'float32' or device 'cpu'")
        return cls(torch.device(name), getattr(torch, dtype))

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
        # made on the host: half the bytes to send, and no float64 on a device that has none
        return torch.tensor(values, dtype=self.dtype).to(self.device)


def devices():
    """Names of the devices that torch finds; "cuda" is the current one of "cuda:0", "cuda:1", ..."""
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    graphics = ["cuda", *(f"cuda:{i}" for i in range(count))] if count else []
    return ["cpu", *graphics, *(["mps"] if torch.backends.mps.is_available() else [])]


def hosted(function, *tensors):
    """What a function of linear algebra gives, computed on the CPU where the device of the tensors lacks it: on "mps"."""
    device = tensors[0].device
    if device.type != "mps":
        return function(*tensors)
    result = function(*(tensor.cpu() for tensor in tensors))
    return result.to(device) if isinstance(result, torch.Tensor) else [part.to(device) for part in result]


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
