"""How good the predictor is at the test inputs: bias, variance and the errors that follow from them."""

from typing import ClassVar

from ggdln.core.kinds import Variable
from ggdln.observables import Observable
from ggdln.theory.statistics import predictor_statistics


class Predictor(Observable):
    """Statistics of the predictor, averaged over test inputs."""

    needs: ClassVar[tuple] = ("predict",)
    needs_labels: ClassVar[bool] = True
    several_outputs: ClassVar[bool] = True
    variables: ClassVar[dict[str, Variable]] = {
        "bias": Variable("bias", "bias", "mean over test inputs of (<f(x)> - y(x))^2"),
        "variance": Variable("variance", "variance", "mean over test inputs of <df(x)^2>"),
        "generalization_error": Variable("generalization error", "epsilon_g", "bias + variance"),
        "error_rate": Variable(
            "error rate",
            "",
            "mean over test inputs of 1/2 erfc(y <f> / sqrt(2 <df^2>)); of several classes, of p(another has the largest f)",
        ),
    }

    def of(self, solution, sample):
        mean, variance = solution.predict(sample.task.x_test, sample.g_test)
        return predictor_statistics(mean, variance, sample.task.y_test)
