"""A random teacher whose labels are noisy, tested on corrupted copies of the training inputs."""

import numpy as np
from pydantic import Field

from ggdln.core import seeds
from ggdln.core.problems import Problem
from ggdln.tasks import InputDimension, Task, TaskData, TestInputs, TrainingInputs
from ggdln.tasks._teacher import NoiseShare, TeacherWidth, teacher


class NoisyTeacher(Task):
    """Gaussian inputs, labels with noise of standard deviation epsilon.

    The test inputs are corrupted copies of the first P_t training inputs, sqrt(1 - gamma) x + sqrt(gamma) eta, labelled
    by the same teacher, with fresh noise if `test_noise`.
    """

    N0: InputDimension
    P: TrainingInputs
    P_t: TestInputs
    N_T: TeacherWidth
    gamma: NoiseShare
    epsilon: float = Field(ge=0, le=1000, description="Standard deviation of the label noise")
    test_noise: bool = Field(True, description="Test labels carry label noise too")

    def problems(self, counts=None):
        return [Problem("task.P_t", self.P_t, f"at most task.P = {self.P}")] if self.P_t > self.P else []

    def make(self, seed, draw):
        rng = seeds.rng(seed, "noisy_teacher", draw)
        a, W = rng.standard_normal(self.N_T), rng.standard_normal((self.N_T, self.N0))
        x = rng.standard_normal((self.P, self.N0))
        y = teacher(x, W, a) + self.epsilon * rng.standard_normal(self.P)
        noise = rng.standard_normal((self.P_t, self.N0))
        x_test = np.sqrt(1 - self.gamma) * x[: self.P_t] + np.sqrt(self.gamma) * noise
        y_test = teacher(x_test, W, a) + (self.epsilon * rng.standard_normal(self.P_t) if self.test_noise else 0.0)
        return TaskData(x=x, y=y, x_test=x_test, y_test=y_test)
