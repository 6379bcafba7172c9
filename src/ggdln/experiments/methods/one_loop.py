"""The finite-width theory with its 1/N correction."""

import math
from typing import ClassVar

from pydantic import Field

from ggdln.core.kinds import Costs, Look, Terms
from ggdln.experiments.methods.theory import Theory
from ggdln.theory.loops import MOST_COORDINATES


class OneLoop(Theory):
    """Finite-width theory, corrected to order 1/N"""

    look: ClassVar[Look] = Look("one loop", "red", linestyle="-.")
    costs: ClassVar[Costs] = Costs(Theory.costs.seconds | {"gradients": 0.04}, Theory.costs.megabytes)

    loops: int | None = Field(1, ge=1, le=1, description="1 for predictions and evidence corrected to order 1/N")

    def terms(self, sizes, M, network, *, runs, memory_mb):
        """As many gradients as coordinates for the Hessian, where it is made, and some hundred kernels for the corrections."""
        terms = super().terms(sizes, M, network, runs=runs, memory_mb=memory_mb)
        powers = [sizes.C * min(math.comb(M + depth, depth + 1), sizes.P, 2 ** min(M, 60)) for depth in range(network["L"])]
        coordinates = sum(r * (r + 1) // 2 for r in powers)
        gradients = (coordinates + 300) * sizes.pairs**3 / 1e9 if coordinates <= MOST_COORDINATES else 0.0
        return Terms(terms.work | {"gradients": gradients}, terms.memory)
