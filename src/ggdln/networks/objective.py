"""What a network is trained for: labels to be met up to a training error, and how far it is from them at given weights."""

from dataclasses import dataclass
from typing import Any

import torch

from ggdln.networks.state import State


@dataclass(frozen=True, eq=False)
class Objective:
    """Labels y (P,) for a network, and the mean squared training error `target` () at which a run is done."""

    network: Any
    y: torch.Tensor
    target: torch.Tensor

    def at(self, weights):
        """The `Position` at weights (R, D)."""
        local = self.network.linearize(weights)
        residual = local.f - self.y
        return Position(weights, local, residual, residual.square().mean(-1))


@dataclass(frozen=True, eq=False)
class Position:
    """Weights (R, D), the network linearized there, the residual f - y (R, P) and the training error (R,)."""

    weights: torch.Tensor
    local: Any
    residual: torch.Tensor
    mse: torch.Tensor


@dataclass(frozen=True, eq=False)
class TrainingState(State):
    """Weights, steps taken (R,), and whether the integration broke down (R,)."""

    steps: torch.Tensor
    stuck: torch.Tensor


def at_rest(weights):
    """`steps` and `stuck` of runs that begin at weights (R, D)."""
    steps = torch.zeros(len(weights), dtype=torch.int64, device=weights.device)
    return {"weights": weights, "steps": steps, "stuck": torch.zeros_like(steps, dtype=torch.bool)}
