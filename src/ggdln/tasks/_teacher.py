"""Labels from a random ReLU network, the teacher: y(x) = a_T . ReLU(W_T x / sqrt(N0)) / sqrt(N_T)."""

from typing import Annotated

import numpy as np
from pydantic import Field

TeacherWidth = Annotated[int, Field(ge=1, le=1_000_000, description="Width N_T of the teacher")]
NoiseShare = Annotated[float, Field(ge=0, le=1, description="Share of noise in corrupted or clustered inputs")]


def teacher(x, W, a):
    """a . ReLU(W x / sqrt(N0)) / sqrt(N_T) for x (p, N0), W (N_T, N0), a (N_T,): (p,)."""
    return np.maximum(x @ W.T / np.sqrt(x.shape[1]), 0.0) @ a / np.sqrt(len(a))
