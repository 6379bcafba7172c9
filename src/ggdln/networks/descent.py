"""Plain full-batch gradient descent, w <- w - eta J^T (f - y), with eta tied to the current largest tangent eigenvalue.

The largest eigenvalue of Theta grows during training when sigma is small, so it is followed by power iteration,
warm-started from the last estimate of its eigenvector. This is the reference that gradient flow is tested against.
"""

import torch

START_ITERATIONS, TRACK_EVERY = 30, 5


class Descent:
    """Gradient descent of R runs at once. `step` is eta times the largest eigenvalue; 2 is the edge of stability.

    network: has `linearize`. y: labels (P,). weights: (R, D). target: (R,) training error at which a run is done.
    """

    state_names = ("weights", "target", "steps", "stuck", "vector", "largest")

    def __init__(self, network, y, weights, target, *, step):
        self.network, self.y, self.weights, self.target, self.step = network, y, weights, target, step
        self.steps = torch.zeros(len(weights), dtype=torch.int64, device=weights.device)
        self.stuck = torch.zeros_like(self.steps, dtype=torch.bool)
        self.measure()
        self.vector = start_vector(len(weights), y)
        self.vector, self.largest = power_iteration(self.local, self.vector, START_ITERATIONS)

    def measure(self):
        """Recompute what follows from the weights."""
        self.local = self.network.linearize(self.weights)
        self.residual = self.local.f - self.y
        self.mse = self.residual.square().mean(-1)

    def advance(self):
        """One step of every run."""
        if self.steps[0] % TRACK_EVERY == 0:
            self.vector, self.largest = power_iteration(self.local, self.vector, 1)
        self.weights = self.weights - (self.step / self.largest)[:, None] * self.local.vjp(self.residual)
        self.steps += 1
        self.measure()


def start_vector(runs, y):
    """A fixed unit vector with a component along every smooth direction, one per run: (R, P)."""
    index = torch.arange(len(y), device=y.device, dtype=y.dtype)
    vector = 1 + torch.cos(index * index)
    return (vector / vector.norm()).expand(runs, -1).clone()


def power_iteration(local, vector, iterations):
    """Unit vectors (R, P) and estimates (R,) of the largest eigenvalue of Theta, by iterating from `vector`."""
    for _ in range(iterations):
        image = local.jvp(local.vjp(vector))
        largest = image.norm(dim=-1)
        vector = image / largest.clamp_min(torch.finfo(image.dtype).tiny)[:, None]
    return vector, largest
