"""A random teacher of clustered inputs that may prefer one subset of the input dimensions."""

from typing import ClassVar

import numpy as np
from pydantic import Field

from ggdln.core import seeds
from ggdln.core.kinds import Variable
from ggdln.core.problems import Problem
from ggdln.tasks import InputDimension, Task, TaskData, TestInputs, TrainingInputs
from ggdln.tasks._teacher import NoiseShare, TeacherWidth, teacher


class ClusteredTeacher(Task):
    """Clustered inputs in several subsets of dimensions, and a teacher that may prefer the first subset.

    Each of the m = `subsets` blocks of N0/m dimensions holds sqrt(1 - gamma) c + sqrt(gamma) eta, with a centre c out of
    n = `clusters` Gaussian ones that all blocks share, chosen independently for each block and sample. The teacher's
    input weights have variance 1 on the first block, the preferred one, and rho on the others.
    """

    notes: ClassVar[tuple] = ("cluster",)
    variables: ClassVar[dict[str, Variable]] = {
        "cluster": Variable("cluster of each training input in each subset of dimensions", "n'"),
        "cluster_test": Variable("cluster of each test input in each subset of dimensions", "n'"),
    }

    N0: InputDimension
    P: TrainingInputs
    P_t: TestInputs
    N_T: TeacherWidth
    gamma: NoiseShare
    subsets: int = Field(ge=1, le=10_000, description="Number m of subsets of input dimensions")
    clusters: int = Field(ge=1, le=100_000, description="Number n of clusters in each subset")
    rho: float = Field(
        ge=0, le=1000, description="Variance of the teacher's input weights outside the preferred subset (1 inside it)"
    )

    def problems(self, counts=None):
        return [Problem("task.N0", self.N0, f"multiples of task.subsets = {self.subsets}")] if self.N0 % self.subsets else []

    def make(self, seed, draw):
        rng = seeds.rng(seed, "clustered_teacher", draw)
        size = self.N0 // self.subsets
        centres = rng.standard_normal((self.clusters, size))
        scale = np.full(self.N0, np.sqrt(self.rho))
        scale[:size] = 1.0
        W, a = rng.standard_normal((self.N_T, self.N0)) * scale, rng.standard_normal(self.N_T)

        def inputs(n, part):
            stream = seeds.rng(seed, "clustered_teacher", part, draw)
            which = stream.integers(self.clusters, size=(n, self.subsets))
            noise = stream.standard_normal((n, self.N0))
            return np.sqrt(1 - self.gamma) * centres[which].reshape(n, self.N0) + np.sqrt(self.gamma) * noise, which

        (x, which), (x_test, which_test) = inputs(self.P, "train"), inputs(self.P_t, "test")
        return TaskData(
            x=x,
            y=teacher(x, W, a),
            x_test=x_test,
            y_test=teacher(x_test, W, a),
            notes={"cluster": (("train", "subset"), which), "cluster_test": (("test", "subset"), which_test)},
        )
