"""Arrays by their shapes, for annotations: P training and n other inputs of dimension N0, M gates, C outputs."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Float, Real

Array: TypeAlias = Any
"""Whatever numpy makes an array of: lists, arrays, data frames."""
PerLayer: TypeAlias = float | Sequence[float] | np.ndarray
"""One number, or one for each layer."""
Several: TypeAlias = float | Sequence[float] | np.ndarray
"""One number, or several that are tried."""
Told: TypeAlias = bool | Callable[[int, int, float, float], object]
"""Progress: whether it is printed, or a function (done, total, rate, seconds_left)."""

Inputs: TypeAlias = Real[np.ndarray, "P N0"]
Gatings: TypeAlias = Real[np.ndarray, "P M"]
Labels: TypeAlias = Real[np.ndarray, " P"] | Real[np.ndarray, "P C"]

NewInputs: TypeAlias = Real[np.ndarray, "n N0"]
NewGatings: TypeAlias = Real[np.ndarray, "n M"]
Values: TypeAlias = Float[np.ndarray, " n"] | Float[np.ndarray, "n C"]
"""A number for each input, and output if there are several."""
Covariance: TypeAlias = Float[np.ndarray, "n n"] | Float[np.ndarray, "n C n C"]
"""Between inputs, and outputs if there are several."""
Kernel: TypeAlias = Float[np.ndarray, "n n2"] | Float[np.ndarray, "n C n2 C"]

GateValues: TypeAlias = Float[np.ndarray, "n M"]
