"""Even against odd MNIST digits."""

from ggdln.core import seeds
from ggdln.tasks import TaskData
from ggdln.tasks._mnist import MnistTask, digit_notes, normalize, split_classes


class MnistParity(MnistTask):
    """Even digits y = +1 against odd digits y = -1; with N0, after a random ReLU projection to N0 dimensions."""

    def make(self, seed, draw, digits):
        parity = digits.labels % 2
        train, test = split_classes(parity, (0, 1), self.P, self.P_t, seeds.rng(seed, "mnist_parity", "digits", draw))
        pixels = normalize(digits.images, self.normalization)
        (x,) = self.projected([pixels], seeds.rng(seed, "mnist_parity", "projection", draw))
        return TaskData(
            x=x[train],
            y=1.0 - 2.0 * parity[train],
            x_test=x[test],
            y_test=1.0 - 2.0 * parity[test],
            notes=digit_notes(digits, train, test),
        )
