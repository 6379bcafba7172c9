"""Two tasks that give the same inputs different labels: which digit is shown, and whether its pixels are permuted."""

from typing import ClassVar

import numpy as np

from ggdln.core import seeds
from ggdln.core.kinds import Variable
from ggdln.tasks import TaskData
from ggdln.tasks._mnist import MnistTask, digit_notes, normalize, split_classes


class MnistConflicting(MnistTask):
    """Two tasks that give the same inputs different labels.

    The inputs are equally many zeros and ones, unpermuted and under one random permutation of the pixels: P/2 digits,
    each in both forms. Task 0 tells zero (+1) from one (-1); task 1 tells unpermuted (+1) from permuted (-1). All P
    inputs come once with each task: 2 P training samples, sorted by task.
    """

    has_subtasks: ClassVar[bool] = True
    notes: ClassVar[tuple] = ("digit", "permuted")
    forms: ClassVar[int] = 2
    variables: ClassVar[dict[str, Variable]] = MnistTask.variables | {
        "permuted": Variable("training inputs with permuted pixels"),
        "permuted_test": Variable("test inputs with permuted pixels"),
        "permutation": Variable("new order of the pixels"),
    }

    @property
    def copies(self):
        return 2

    @staticmethod
    def classes(counts):
        return counts[:2]

    def make(self, seed, draw, digits):
        rng = seeds.rng(seed, "mnist_conflicting", "digits", draw)
        train, test = split_classes(digits.labels, (0, 1), self.P // 2, self.P_t // 2, rng)
        used = np.isin(digits.labels, (0, 1))
        pixels = normalize(digits.images[used], self.normalization)
        where = np.cumsum(used) - 1
        shuffle = seeds.rng(seed, "mnist_conflicting", "pixels", draw).permutation(pixels.shape[1])
        both = np.concatenate([pixels, pixels[:, shuffle]])
        (both,) = self.projected([both], seeds.rng(seed, "mnist_conflicting", "projection", draw))

        def samples(chosen):
            rows = np.concatenate([where[chosen], where[chosen] + len(pixels)])
            digit = np.tile(1.0 - 2.0 * digits.labels[chosen], 2)
            form = np.repeat([1.0, -1.0], len(chosen))
            return np.tile(both[rows], (2, 1)), np.concatenate([digit, form]), np.repeat([0, 1], 2 * len(chosen))

        (x, y, subtask), (x_test, y_test, subtask_test) = samples(train), samples(test)
        permuted = {
            "permuted": (("train",), np.tile(np.repeat([0, 1], len(train)), 2)),
            "permuted_test": (("test",), np.tile(np.repeat([0, 1], len(test)), 2)),
            "permutation": (("pixel",), shuffle),
        }
        notes = digit_notes(digits, np.tile(train, 4), np.tile(test, 4)) | permuted
        return TaskData(x, y, x_test, y_test, subtask, subtask_test, notes)
