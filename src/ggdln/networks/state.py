"""What changes from step to step, as tensors that can be saved, restored and restricted to some runs.

An integrator or a sampler is an object with its settings. It turns one `State` into the next and keeps nothing itself.
"""

from dataclasses import dataclass, fields, replace

import torch

from ggdln.networks.device import to_numpy


@dataclass(frozen=True, eq=False)
class State:
    """The weights (R, D) of R runs; subclasses add tensors whose first dimension is R."""

    weights: torch.Tensor

    def rows(self, kept):
        """The state of some runs, by a boolean tensor (R,)."""
        return replace(self, **{name: value[kept] for name, value in vars(self).items()})

    def arrays(self):
        """Arrays by name, for a checkpoint."""
        return {f"state_{name}": to_numpy(value) for name, value in vars(self).items()}

    @classmethod
    def of(cls, arrays, place):
        """The state that gave these arrays."""
        return cls(**{field.name: _tensor(arrays[f"state_{field.name}"], place) for field in fields(cls)})


@dataclass(frozen=True, eq=False)
class TrainingState(State):
    """Weights, steps taken (R,), and whether the integration broke down (R,)."""

    steps: torch.Tensor
    stuck: torch.Tensor

    @classmethod
    def begin(cls, weights, **more):
        """The state of runs that begin at weights (R, D)."""
        steps = torch.zeros(len(weights), dtype=torch.int64, device=weights.device)
        return cls(weights, steps, torch.zeros_like(steps, dtype=torch.bool), **more)


def _tensor(array, place):
    # to the precision of the place before it goes there: a device may have no float64
    tensor = torch.tensor(array)
    return (tensor.to(place.dtype) if tensor.is_floating_point() else tensor).to(place.device)
