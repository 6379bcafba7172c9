"""What tasks made from MNIST digits share: which digits are taken, and how their pixels become inputs.

Classes are balanced in the training and in the test set, and no digit is in both. Training sets of the same draw are
nested in P, test sets in P_t.
"""

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from ggdln.core.kinds import Costs, Terms, Variable
from ggdln.core.problems import Problem
from ggdln.tasks import Sizes, Task, TestInputs, TrainingInputs
from ggdln.tasks._digits import COUNTS, PIXELS

Normalization = Literal["pixel_mean", "pixel", "image", "global"]


class MnistTask(Task):
    """Two equally large classes of digits; each digit may be shown in several forms, and all of that as several sub-tasks."""

    from_digits: ClassVar[bool] = True
    notes: ClassVar[tuple] = ("digit",)
    forms: ClassVar[int] = 1
    """In how many forms a digit is among the P inputs."""
    costs: ClassVar[Costs] = Costs(Task.costs.seconds | {"digits": 0.889}, Task.costs.megabytes | {"digits": 68.4})
    variables: ClassVar[dict[str, Variable]] = {
        "digit": Variable("digit shown by each training input"),
        "digit_test": Variable("digit shown by each test input"),
        "index": Variable("position of each training digit in the source"),
        "index_test": Variable("position of each test digit in the source"),
    }

    P: TrainingInputs
    P_t: TestInputs
    digits: Literal["embedded", "full"] = Field(
        "embedded", description="Source of the digits; that of the configuration if not given"
    )
    N0: int | None = Field(None, ge=1, le=100_000, description="Dimension N_0 of the random ReLU projection; none if left out")
    normalization: Normalization = Field(
        "pixel_mean",
        description="How pixels are centred and scaled; "
        "pixel_mean subtracts each pixel's mean and divides by one standard deviation",
    )

    @property
    def copies(self):
        """Number of sub-tasks, each of which has all P training and P_t test inputs."""
        return 1

    @property
    def parts(self):
        """Into how many equal parts P and P_t are divided, one for each sub-task."""
        return 1

    @staticmethod
    def classes(counts):
        """Numbers of digits in the two classes, from those of the ten digits."""
        return sum(counts[0::2]), sum(counts[1::2])

    def problems(self, counts=None):
        step, available = 2 * self.forms * self.parts, min(self.classes(counts or COUNTS[self.digits]))
        found = [
            Problem(f"task.{key}", getattr(self, key), f"multiples of {step}, for equal classes")
            for key in ("P", "P_t")
            if getattr(self, key) % step
        ]
        if (self.P + self.P_t) // step > available:
            accepted = f"at most {step * available}, since the digits source {self.digits!r} has {available} digits of a class"
            found.append(Problem("task.P + P_t", self.P + self.P_t, accepted))
        return found

    def sizes(self):
        copies = self.copies // self.parts
        return Sizes(copies * self.P, copies * self.P_t, self.N0 or PIXELS)

    def terms(self, draws):
        amounts = super().terms(draws).work | {"digits": 1}
        return Terms(amounts, amounts)

    def projected(self, inputs, rng):
        """Each of several `inputs` (n, 784) as it is or, with N0, through one random ReLU projection, normalized again."""
        if self.N0 is None:
            return inputs
        weights = rng.standard_normal((self.N0, PIXELS))
        return [normalize(relu_projection(x, weights), self.normalization) for x in inputs]


def split_classes(labels, classes, n_train, n_test, rng):
    """Indices of a balanced training and a balanced test set, disjoint, in random order: (n_train,), (n_test,)."""
    k = len(classes)
    train, test = [], []
    for label in classes:
        members = rng.permutation(np.flatnonzero(labels == label))
        # The test set comes from the far end, so that it stays the same when P grows.
        train.append(members[: n_train // k])
        test.append(members[::-1][: n_test // k])
    # Interleaved, so that the first samples are balanced too.
    return np.stack(train, axis=1).ravel(), np.stack(test, axis=1).ravel()


def relu_projection(x, weights):
    """ReLU(W_0 x / sqrt(n)) for x (p, n) and W_0 (N0, n): (p, N0)."""
    return np.maximum(x @ weights.T / np.sqrt(x.shape[1]), 0.0)


def normalize(x, variant):
    """Centred and scaled inputs (p, n) -> (p, n); statistics are taken over all the rows given.

    pixel_mean: minus the mean of each pixel, over one standard deviation for all;
    pixel: each pixel to mean 0 and standard deviation 1 (constant pixels become 0);
    image: each row to mean 0 and standard deviation 1; global: one mean and one standard deviation for all.
    """
    x = np.asarray(x, dtype=np.float64)
    if variant == "global":
        return (x - x.mean()) / x.std()
    axis = 1 if variant == "image" else 0
    centred = x - x.mean(axis=axis, keepdims=True)
    if variant == "pixel_mean":
        return centred / centred.std()
    std = x.std(axis=axis, keepdims=True)
    return np.divide(centred, std, out=np.zeros_like(centred), where=std > 0)


def digit_notes(digits, train, test):
    """Notes on which digits are shown, for their indices train (P,) and test (P_t,)."""
    return {
        "digit": (("train",), digits.labels[train]),
        "digit_test": (("test",), digits.labels[test]),
        "index": (("train",), train),
        "index_test": (("test",), test),
    }
