"""Arrays by their shapes, for annotations: P training and n other inputs of dimension N0, M gates, C outputs."""

from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Float, Real

Array: TypeAlias = Any
"""Whatever numpy makes an array of: lists, arrays, data frames."""

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
