"""Gates learned without labels: soft k-means, whose clusters share out each input among them."""

from typing import ClassVar

import numpy as np
from pydantic import Field
from scipy.special import softmax

from ggdln.core import seeds
from ggdln.core.errors import InputError
from ggdln.core.kinds import Costs, Terms, Variable
from ggdln.core.problems import Problem
from ggdln.gates import Gates

LEAST_WEIGHT = 1e-8
"""A cluster whose share of the inputs falls below this is empty."""


class SoftKmeans(Gates):
    """g(x) = softmax(-stiffness |x - c_m|^2 / N0) with centres c (M, N0) from a k-means++ start.

    Centres are the means of the inputs weighted by their responsibilities. The fit ends when no centre moves by more than
    `tolerance` times the spread of the inputs (`converged` says whether it did). A cluster that loses its weight is moved
    to the input farthest from its nearest centre, and counted.
    """

    dims: ClassVar[dict[str, tuple]] = {"centres": ("gate", "feature")}
    costs: ClassVar[Costs] = Costs(Gates.costs.seconds | {"clusters": 89.7}, Gates.costs.megabytes)
    variables: ClassVar[dict[str, Variable]] = {
        "centres": Variable("cluster centres", "c"),
        "stiffness": Variable("stiffness of soft k-means", "beta", "g_m(x) ~ exp(-beta |x - c_m|^2 / N0)"),
        "fit_iterations": Variable("iterations of soft k-means"),
        "fit_shift": Variable("last relative move of a cluster centre"),
        "fit_converged": Variable("soft k-means met its tolerance"),
        "fit_moved_clusters": Variable("empty clusters that were moved"),
    }

    stiffness: float = Field(gt=0, le=1e6, description="Stiffness beta of soft k-means, g_m(x) ~ exp(-beta |x - c_m|^2 / N_0)")
    max_iterations: int = Field(3000, ge=1, le=1_000_000, description="Most iterations of soft k-means")
    tolerance: float = Field(
        1e-6,
        gt=0,
        le=1,
        description="Soft k-means ends when no centre moves by more than this, relative to the spread of the inputs",
    )

    def problems(self, task):
        n = task.sizes().P
        return [Problem("gates.M", self.M, f"at most the {n} training inputs, for soft_kmeans gates")] if n < self.M else []

    def terms(self, sizes):
        return Terms({"clusters": sizes.P * self.M * sizes.N0 / 1e9})

    def fit(self, x, *, subtask, seed, draw):
        from sklearn.cluster import kmeans_plusplus

        if len(x) < self.M:
            raise InputError(
                f"M: got {self.M}, accepted: at most the number of training inputs, {len(x)}, for soft_kmeans gates"
            )
        state = seeds.entropy(seed, "soft_kmeans", "gates", draw, self.M) % 2**32
        centres, _ = kmeans_plusplus(x, self.M, random_state=state)
        spread = np.sqrt(((x - x.mean(axis=0)) ** 2).sum(axis=1).mean()) or 1.0
        moved_clusters = 0
        for iteration in range(1, self.max_iterations + 1):  # noqa: B007
            r = self.values(x, None, centres=centres)
            weight = r.sum(axis=0)
            new = np.divide(r.T @ x, weight[:, None], out=centres.copy(), where=weight[:, None] > 0)
            empty = np.flatnonzero(weight < LEAST_WEIGHT * len(x))
            if len(empty):
                farthest = np.argsort(-squared_distances(x, new).min(axis=1), kind="stable")
                new[empty] = x[farthest[: len(empty)]]
                moved_clusters += len(empty)
            shift = np.sqrt(((new - centres) ** 2).sum(axis=1).max()) / spread
            centres = new
            if shift <= self.tolerance:
                break
        report = {
            "iterations": iteration,
            "shift": shift,
            "converged": bool(shift <= self.tolerance),
            "moved_clusters": moved_clusters,
        }
        return {"centres": centres}, report

    def values(self, x, subtask, *, centres):
        return softmax(-self.stiffness / x.shape[1] * squared_distances(x, centres), axis=1)


def squared_distances(x, centres):
    """|x - c|^2 for every input and centre, >= 0: (P, M)."""
    cross = (x**2).sum(axis=1)[:, None] + (centres**2).sum(axis=1) - 2 * x @ centres.T
    return np.maximum(cross, 0.0)
