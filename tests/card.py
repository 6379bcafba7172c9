"""A CUDA device without one: what tensors on it would do is decided by torch's FakeTensorMode, their numbers are computed on the CPU.

FakeTensorMode gives tensors that are on any device by name and refuses operations that mix devices, but has no numbers, so that
code which looks at a value stops there. Here it is asked once about each operation on tensors of given shapes, types and devices,
the operation is done on the CPU, and whole simulations run as they would on a device. A `Card` counts what a device makes
expensive: tensors that go to it or come back, and looks of the host at a value.
"""

import weakref
from collections import Counter
from typing import NamedTuple

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


SAID: dict = {}
"""What FakeTensorMode said of the results of operations, by what they were done on."""


class Like(NamedTuple):
    """What FakeTensorMode says of a tensor."""

    shape: torch.Size
    strides: tuple
    offset: int
    dtype: torch.dtype
    device: torch.device

    @classmethod
    def of(cls, tensor):
        return cls(tensor.shape, tensor.stride(), tensor.storage_offset(), tensor.dtype, tensor.device)

    def fake(self):
        """Such a tensor, where FakeTensorMode is active."""
        size = self.offset + 1 + sum((n - 1) * step for n, step in zip(self.shape, self.strides, strict=True))
        storage = torch.empty(max(size, 0), dtype=self.dtype, device=self.device)
        return storage.as_strided(self.shape, self.strides, self.offset)


class OnCard(torch.Tensor):
    """A tensor that is on the device by what is said of it, and has `numbers`."""

    @staticmethod
    def __new__(cls, numbers, like):
        layout = dict(strides=like.strides, storage_offset=like.offset, dtype=like.dtype, device=like.device)
        return torch.Tensor._make_wrapper_subclass(cls, like.shape, **layout)

    def __init__(self, numbers, like):
        self.numbers, self.like = numbers, like

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
        tensors = _tensors([args, kwargs])
        there = [x for x in tensors if isinstance(x, OnCard)]
        target = kwargs.get("device")
        goes = target is not None and torch.device(target).type == self.device.type
        if not there and not goes:
            return function(*args, **kwargs)
        self.functions[str(function)] += 1
        reals, options = _each(_numbers, args), _each(_numbers, kwargs)
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
        if function is aten.index.Tensor and any(x.dtype == torch.bool for x in _tensors(args[1])):
            # how many are chosen is only known to the device
            self.counts["looks at a value"] += 1
            assert all(isinstance(x, OnCard) or not x.dim() for x in tensors), "a mask or its tensor is on another device"
            assert len({x.device for x in there}) == 1
            result = function(*reals, **options)
            return self._wrapped(result, Like.of(result)._replace(device=there[0].device))
        said = self._said(function, args, kwargs)
        return self._joined(function(*reals, **options), said, there)

    def _said(self, function, args, kwargs):
        """What FakeTensorMode says of the results: a Like for each tensor. Numbers that aren't whole can't matter to it."""
        key = (function, _signature(args), _signature(tuple(kwargs.items())))
        if key not in SAID:
            with self.fakes:
                result = function(*_each(self._fake, args), **_each(self._fake, kwargs))
                SAID[key] = _each(lambda x: Like.of(x) if isinstance(x, torch.Tensor) else x, result)
        return SAID[key]

    def _fake(self, value):
        if isinstance(value, OnCard):
            return value.like.fake()
        return self.fakes.from_tensor(value) if isinstance(value, torch.Tensor) else value

    def _joined(self, result, said, there):
        if isinstance(result, tuple | list):
            return type(result)(self._joined(r, s, there) for r, s in zip(result, said, strict=True))
        if not isinstance(result, torch.Tensor):
            return result
        # an operation in place gives what it was given
        same = [x for x in there if x.numbers is result]
        return same[0] if same else self._wrapped(result, said)

    def _wrapped(self, result, like):
        assert result.shape == like.shape
        assert result.dtype == like.dtype
        assert like.device.type == self.device.type
        assert like.device.type != "mps" or like.dtype != torch.float64, "mps has no float64"
        tensor = OnCard(result, like)
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
    _each(lambda x: found.append(x) if isinstance(x, torch.Tensor) else None, tree)
    return found


def _each(change, tree):
    """The arguments or results of an operation, with each tensor or other value changed."""
    if isinstance(tree, list | tuple) and not isinstance(tree, torch.Size):
        return type(tree)(_each(change, value) for value in tree)
    return {name: _each(change, value) for name, value in tree.items()} if isinstance(tree, dict) else change(tree)


def _numbers(value):
    return value.numbers if isinstance(value, OnCard) else value


def _signature(value):
    if isinstance(value, OnCard):
        return value.like
    if isinstance(value, torch.Tensor):
        return Like.of(value)
    if isinstance(value, list | tuple):
        return tuple(map(_signature, value))
    return float if isinstance(value, float) else value
