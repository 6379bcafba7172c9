"""Even against odd MNIST digits under several pixel permutations, learned together."""

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from ggdln.core import seeds
from ggdln.core.kinds import Costs, Terms, Variable
from ggdln.tasks import TaskData
from ggdln.tasks._mnist import MnistTask, digit_notes, normalize, split_classes


class MnistPermuted(MnistTask):
    """Even against odd under several pixel permutations, learned together.

    The same training and test digits are shown under each of n = `permutations` random permutations of the pixels, sorted by
    permutation, which is the sub-task. `count: each` takes P and P_t of them, so n P training samples; `count: all` takes
    P / n and P_t / n, so that P and P_t count the samples of all permutations.
    """

    has_subtasks: ClassVar[bool] = True
    costs: ClassVar[Costs] = Costs(MnistTask.costs.seconds, MnistTask.costs.megabytes | {"permuted": 5.44})
    variables: ClassVar[dict[str, Variable]] = MnistTask.variables | {"permutation": Variable("new order of the pixels")}

    permutations: int = Field(ge=1, le=1000, description="Number n of pixel permutations, each a task of its own")
    count: Literal["each", "all"] = Field(
        "each", description="Whether P and P_t count the samples of each permutation or those of all of them"
    )

    @property
    def copies(self):
        return self.permutations

    @property
    def parts(self):
        return self.permutations if self.count == "all" else 1

    def terms(self, draws):
        terms = super().terms(draws)
        # Permuted digits are made from the others and stand beside them.
        return Terms(terms.work, terms.memory | {"permuted": terms.memory["inputs"]})

    def make(self, seed, draw, digits):
        parity, n = digits.labels % 2, self.permutations
        shown, tested = self.P // self.parts, self.P_t // self.parts
        train, test = split_classes(parity, (0, 1), shown, tested, seeds.rng(seed, "mnist_permuted", "digits", draw))
        order = seeds.rng(seed, "mnist_permuted", "pixels", draw)
        pixels = normalize(digits.images, self.normalization)
        shuffles = np.stack([order.permutation(pixels.shape[1]) for _ in range(n)])
        inputs = [pixels[:, shuffle] for shuffle in shuffles]
        inputs = self.projected(inputs, seeds.rng(seed, "mnist_permuted", "projection", draw))
        return TaskData(
            x=np.concatenate([x[train] for x in inputs]),
            y=np.tile(1.0 - 2.0 * parity[train], n),
            subtask=np.arange(n).repeat(shown),
            x_test=np.concatenate([x[test] for x in inputs]),
            y_test=np.tile(1.0 - 2.0 * parity[test], n),
            subtask_test=np.arange(n).repeat(tested),
            notes=digit_notes(digits, np.tile(train, n), np.tile(test, n)) | {"permutation": (("sub_task", "pixel"), shuffles)},
        )
