"""A CUDA device without one: what tensors on it would do is decided by torch's FakeTensorMode, their numbers are computed on the CPU.

FakeTensorMode gives tensors that are on any device by name and refuses operations that mix devices, but has no numbers, so that
code which looks at a value stops there. Here every operation is done twice, by it and on the CPU, and whole simulations run as they
would on a device. A `Card` counts what a device makes expensive: tensors that go to it or come back, and looks of the host at a value.
"""

import weakref
from collections import Counter

import torch
from torch._subclasses.fake_tensor import FakeTensorMode, unset_fake_temporarily
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

aten = torch.ops.aten
LOOKS = {
    aten._local_scalar_dense.default: "looks at a value",
    aten._linalg_eigh.default: "eigh",
}
"""Operations for which the host waits; eigh looks whether it has converged."""


class OnCard(torch.Tensor):
    """A tensor that is on the device by its `fake` and has `numbers`."""

    @staticmethod
    def __new__(cls, numbers, fake):
        layout = dict(strides=fake.stride(), storage_offset=fake.storage_offset(), dtype=fake.dtype, device=fake.device)
        return torch.Tensor._make_wrapper_subclass(cls, fake.shape, **layout)

    def __init__(self, numbers, fake):
        self.numbers, self.fake = numbers, fake

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        raise AssertionError(f"{function} on a tensor of a card that is not in use")

    __torch_function__ = torch._C._disabled_torch_function_impl


class Card(TorchDispatchMode):
    """A device by name; used as a context. `counts`: transfers and looks; `peak`: most bytes that tensors took at once."""

    def __init__(self, name):
        super().__init__()
        self.device, self.fakes, self.numbered = torch.device(name), FakeTensorMode(), _Numbered()
        self.counts, self.functions, self.bytes, self.peak = Counter(), Counter(), 0, 0
        self.storages = Counter()

    def __enter__(self):
        # Where it is active, torch doesn't look for a driver.
        self.fakes.__enter__()
        self.numbered.__enter__()
        return super().__enter__()

    def __exit__(self, *error):
        super().__exit__(*error)
        self.numbered.__exit__(*error)
        self.fakes.__exit__(*error)

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        with unset_fake_temporarily():
            return self._dispatched(function, args, kwargs or {})

    def _dispatched(self, function, args, kwargs):
        there = [x for x in _tensors((args, kwargs)) if isinstance(x, OnCard)]
        target = kwargs.get("device")
        goes = target is not None and torch.device(target).type == self.device.type
        if not there and not goes:
            return function(*args, **kwargs)
        self.functions[str(function)] += 1
        reals = tree_map(lambda x: x.numbers if isinstance(x, OnCard) else x, args)
        options = tree_map(lambda x: x.numbers if isinstance(x, OnCard) else x, kwargs)
        if goes:
            options["device"] = torch.device("cpu")
            if not there and _tensors(args):
                self.counts["to the device"] += 1
        if there and target is not None and torch.device(target).type == "cpu":
            self.counts["to the host"] += 1
            return function(*reals, **options)
        if function in LOOKS:
            self.counts[LOOKS[function]] += 1
        if function is aten._local_scalar_dense.default:
            return function(*reals)
        masks = function is aten.index.Tensor and any(x.dtype == torch.bool for x in _tensors(args[1]))
        result = function(*reals, **options)
        if masks:
            # how many are chosen is only known to the device
            self.counts["looks at a value"] += 1
            self._one_device(there, args)
            with self.fakes:
                return self._wrapped(result, torch.empty(result.shape, dtype=result.dtype, device=there[0].device))
        with self.fakes:
            mirrored = function(*tree_map(self._fake, args), **tree_map(self._fake, kwargs))
        return self._joined(result, mirrored, args)

    def _one_device(self, there, args):
        assert all(isinstance(x, OnCard) or not x.dim() for x in _tensors(args)), "a mask or its tensor is on another device"
        assert len({x.device for x in there}) == 1

    def _fake(self, value):
        if isinstance(value, OnCard):
            return value.fake
        return self.fakes.from_tensor(value) if isinstance(value, torch.Tensor) else value

    def _joined(self, result, mirrored, args):
        if isinstance(result, tuple | list):
            return type(result)(self._joined(r, m, args) for r, m in zip(result, mirrored, strict=True))
        if not isinstance(result, torch.Tensor):
            return result
        # an operation in place gives what it was given
        same = [x for x in _tensors(args) if isinstance(x, OnCard) and x.numbers is result]
        return same[0] if same else self._wrapped(result, mirrored)

    def _wrapped(self, result, fake):
        assert result.shape == fake.shape
        assert result.dtype == fake.dtype
        assert fake.device.type == self.device.type
        assert fake.device.type != "mps" or fake.dtype != torch.float64, "mps has no float64"
        tensor = OnCard(result, fake)
        storage = result.untyped_storage()
        place, size = storage.data_ptr(), storage.nbytes()
        if not self.storages[place]:
            self.bytes += size
            self.peak = max(self.peak, self.bytes)
        self.storages[place] += 1
        weakref.finalize(tensor, self._release, place, size)
        return tensor

    def _release(self, place, size):
        self.storages[place] -= 1
        if not self.storages[place]:
            self.bytes -= size


class _Numbered(TorchFunctionMode):
    """What torch would ask the driver about: "cuda" means the first such device; x[...] and ~x are what they stand for."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function is torch.Tensor.__getitem__:
            return _part(*args)
        if function is torch.Tensor.__invert__:
            return aten.bitwise_not(*args)
        return function(*tree_map(self._first, args), **tree_map(self._first, kwargs or {}))

    def _first(self, value):
        unnumbered = isinstance(value, torch.device) and value.type != "cpu" and value.index is None
        return torch.device(value.type, 0) if unnumbered else value


def _part(tensor, index):
    """tensor[index], for whole numbers, slices, None, ... and masks."""
    dimension, index = 0, index if isinstance(index, tuple) else (index,)
    for place, item in enumerate(index):
        if item is None:
            tensor = aten.unsqueeze(tensor, dimension)
        elif item is Ellipsis:
            dimension = tensor.dim() - sum(later is not None for later in index[place + 1 :])
            continue
        elif isinstance(item, torch.Tensor):
            tensor = aten.index(tensor, [*[None] * dimension, item])
        elif isinstance(item, slice):
            tensor = aten.slice(tensor, dimension, item.start, item.stop, item.step or 1)
        else:
            tensor = aten.select(tensor, dimension, int(item))
            continue
        dimension += 1
    return tensor


def _tensors(tree):
    found = []
    tree_map(lambda x: found.append(x) if isinstance(x, torch.Tensor) else None, tree)
    return found
