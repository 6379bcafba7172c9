"""Plain full-batch gradient descent, w <- w - eta J^T (f - y), with eta tied to the current largest tangent eigenvalue.

The largest eigenvalue of Theta grows during training when sigma is small, so it is followed by power iteration,
warm-started from the last estimate of its eigenvector. This is the reference that gradient flow is tested against.
"""

from dataclasses import dataclass, replace

import torch

from ggdln.networks.state import TrainingState

START_ITERATIONS, TRACK_EVERY = 30, 5


@dataclass(frozen=True, eq=False)
class DescentState(TrainingState):
    """Also the estimate of the largest eigenvalue (R,) of Theta and of its eigenvector (R, P C)."""

    vector: torch.Tensor
    largest: torch.Tensor


@dataclass(frozen=True)
class Descent:
    """Gradient descent of R runs at once. `step` is eta times the largest eigenvalue; 2 is the edge of stability."""

    step: float
    State = DescentState

    def start(self, objective, position):
        """The state of runs that begin at a position."""
        vector = start_vector(len(position.weights), objective.y)
        vector, largest = power_iteration(position.local, vector, START_ITERATIONS)
        return DescentState.begin(position.weights, vector=vector, largest=largest)

    def advance(self, objective, state, position):
        """One step of every run."""
        if state.steps[0] % TRACK_EVERY == 0:
            vector, largest = power_iteration(position.local, state.vector, 1)
            state = replace(state, vector=vector, largest=largest)
        rate = (self.step / state.largest)[:, None]
        return replace(state, weights=state.weights - rate * position.local.vjp(position.residual), steps=state.steps + 1)


def start_vector(runs, y):
    """A fixed unit vector with a component along every smooth direction, one per run: (R, P C)."""
    index = torch.arange(len(y), device=y.device, dtype=y.dtype)
    vector = 1 + torch.cos(index * index)
    return (vector / vector.norm()).expand(runs, -1).clone()


def power_iteration(local, vector, iterations):
    """Unit vectors (R, P C) and estimates (R,) of the largest eigenvalue of Theta, by iterating from `vector`."""
    for _ in range(iterations):
        image = local.jvp(local.vjp(vector))
        largest = image.norm(dim=-1)
        vector = image / largest.clamp_min(torch.finfo(image.dtype).tiny)[:, None]
    return vector, largest
