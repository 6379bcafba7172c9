"""Arrays by their shapes, for annotations: P training and n other inputs of dimension N0, M gates, and C outputs.

An argument may be a list, an array or a data frame, whatever numpy makes an array of: to a type checker it is anything, and its
annotation tells a reader, and a test, the shape. A result is an array of the shape that stands here. The dimension *C is there
if labels are (P, C), and not if they are (P,).
"""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Required, TypeAlias, TypedDict

import numpy as np
from jaxtyping import Bool, Float, Integer, Real, Shaped

PerLayer: TypeAlias = float | Sequence[float] | np.ndarray
"""One number, or one for each layer."""
Several: TypeAlias = float | Sequence[float] | np.ndarray
"""One number, or several that are tried."""
Told: TypeAlias = bool | Callable[[int, int, float, float], object]
"""Progress: whether it is printed, or a function (done, total, rate, seconds_left)."""


class NetworkKeywords(TypedDict, total=False):
    """A network as keywords: width, depth=1 and sigma=1.0; width and sigma also one for each layer."""

    width: Required[PerLayer]
    depth: int
    sigma: PerLayer


# Samples that were made or read.
InputArray: TypeAlias = Real[np.ndarray, "P N0"]
LabelArray: TypeAlias = Real[np.ndarray, "P *C"]
SubtaskArray: TypeAlias = Integer[np.ndarray, " P"]
OtherInputArray: TypeAlias = Real[np.ndarray, "n N0"]
OtherLabelArray: TypeAlias = Real[np.ndarray, "n *C"]
OtherSubtaskArray: TypeAlias = Integer[np.ndarray, " n"]

# Arguments.
Inputs: TypeAlias = Annotated[Any, InputArray]
Gatings: TypeAlias = Annotated[Any, Shaped[np.ndarray, "P M"]]
Labels: TypeAlias = Annotated[Any, LabelArray]
Classes: TypeAlias = Annotated[Any, Shaped[np.ndarray, "P *C"]]
Subtasks: TypeAlias = Annotated[Any, SubtaskArray]
OtherInputs: TypeAlias = Annotated[Any, OtherInputArray]
OtherGatings: TypeAlias = Annotated[Any, Shaped[np.ndarray, "n M"]]
OtherLabels: TypeAlias = Annotated[Any, OtherLabelArray]
"""A number for each input, and output: labels, or what is predicted of them."""
OtherSubtasks: TypeAlias = Annotated[Any, OtherSubtaskArray]
SecondInputs: TypeAlias = Annotated[Any, Real[np.ndarray, "n2 N0"]]
SecondGatings: TypeAlias = Annotated[Any, Shaped[np.ndarray, "n2 M"]]
Runs: TypeAlias = Annotated[Any, Real[np.ndarray, "run ..."]]
"""Numbers of independent runs or chains, for each draw, input and output."""
WhichRuns: TypeAlias = Annotated[Any, Bool[np.ndarray, " run"]]

# Results.
GateValues: TypeAlias = Float[np.ndarray, "n M"]
Fitted: TypeAlias = Float[np.ndarray, "P *C"]
Values: TypeAlias = Float[np.ndarray, "n *C"]
"""A number for each input, and output if there are several."""
Covariance: TypeAlias = Float[np.ndarray, "n n"] | Float[np.ndarray, "n C n C"]
"""Between inputs, and outputs if there are several."""
CovarianceOfEach: TypeAlias = Float[np.ndarray, "n n"] | Float[np.ndarray, "n n C"]
"""Between inputs, of each output if there are several."""
Kernel: TypeAlias = Float[np.ndarray, "n n2"] | Float[np.ndarray, "n C n2 C"]
Functions: TypeAlias = Float[np.ndarray, "count n *C"]
FunctionsLast: TypeAlias = Float[np.ndarray, "n *C count"]
GivenDraw: TypeAlias = Float[np.ndarray, "chain draw n *C"]
OrderParameter: TypeAlias = Float[np.ndarray, "_ _"]
"""Of one layer: a side of it counts features, and outputs if there are several."""
Eigenvalues: TypeAlias = Float[np.ndarray, " _"]
Chances: TypeAlias = Float[np.ndarray, "n classes"]
Predicted: TypeAlias = Shaped[np.ndarray, "n *C"]
"""Classes, of any type."""
