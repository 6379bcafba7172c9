"""Argument checks shared by the numerical modules: float64 arrays of the right shape, finite numbers in range."""

import math
import operator

import numpy as np

from ggdln.core.errors import InputError


def array(name, value, *ndim):
    """`value` as a finite float64 array with `ndim` dimensions, or one of several numbers of them."""
    if callable(value) and not hasattr(value, "__array__"):
        raise InputError(
            f"{name}: expected numbers, got a function ({type(value).__name__}); give its values, such as {name}(x)"
        )
    try:
        given = np.asarray(value)
        if given.dtype.kind in "SUmM":
            raise TypeError(f"entries such as {given.ravel()[0]!r}")
        # In one order, so that results don't depend on that of what was given, not even in the last bit.
        result = np.asarray(given, dtype=np.float64, order="C")
    except (TypeError, ValueError) as error:
        raise InputError(f"{name}: expected numbers, got {type(value).__name__} ({error})") from error
    if result.ndim not in ndim:
        raise InputError(f"{name}: expected {' or '.join(map(str, ndim))} dimension(s), got shape {result.shape}")
    if not np.isfinite(result).all():
        raise InputError(f"{name}: {np.count_nonzero(~np.isfinite(result))} entries are NaN or infinite")
    return result


def inputs(x, gates, prefix=""):
    """Inputs x (P, N0) and gates g (P, M) of the same P samples, none of the sizes zero."""
    x, gates = array(f"{prefix}x", x, 2), array(f"{prefix}gates", gates, 2)
    if len(x) != len(gates):
        raise InputError(f"{prefix}gates: {len(gates)} rows for {len(x)} rows of {prefix}x")
    for name, value in ((f"{prefix}x", x), (f"{prefix}gates", gates)):
        if 0 in value.shape:
            raise InputError(f"{name}: shape {value.shape} is empty")
    return x, gates


def training_set(x, gates, y):
    """Inputs, gates and labels y (P,) of the training set."""
    x, gates = inputs(x, gates)
    return x, gates, labels("y", y, len(x), 1)


def labels(name, y, count, *ndim):
    """Labels of `count` inputs: (count,) for one output, (count, C) for several; ndim restricts to one of the two."""
    y = array(name, y, *(ndim or (1, 2)))
    if len(y) != count:
        raise InputError(f"{name}: {len(y)} labels for {count} rows of x")
    if 0 in y.shape:
        raise InputError(f"{name}: shape {y.shape} is empty")
    return y


def number(name, value, low=-math.inf, high=math.inf, *, exclusive=False, infinite=False):
    """A real number in [low, high], or in (low, high) if `exclusive`; infinity only if `infinite`."""
    try:
        # Text may read like a number, but whoever passes it has made a mistake somewhere.
        result = math.nan if isinstance(value, str | bytes | bool) else float(value)
    except (TypeError, ValueError):
        result = math.nan
    inside = low < result < high if exclusive else low <= result <= high
    if not (inside or (infinite and result == math.inf)) or (math.isinf(result) and not infinite):
        edges = "()" if exclusive else "[]"
        raise InputError(f"{name}: expected a number in {edges[0]}{low}, {high}{edges[1]}, got {value!r}")
    return result


def integer(name, value, low):
    """A whole number >= low."""
    try:
        result = operator.index(value)
    except TypeError:
        result = None
    if isinstance(value, bool) or result is None or result < low:
        raise InputError(f"{name}: expected a whole number >= {low}, got {value!r}")
    return result


def one_or_each(name, value, check, accepted, count, layers):
    """A value that passes `check`, or a tuple with one for each of `count` layers; `accepted` and `layers` word the error."""
    if not (isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.ndim)):
        return check(name, value)
    try:
        values = tuple(check(name, item) for item in value)
    except InputError:
        values = ()
    if len(values) != count:
        raise InputError(f"{name}: expected {accepted} or one for each of the {count} {layers}, got {value!r}")
    return values
