"""Classification with a globally gated deep linear network."""

from typing import Any, Self

import numpy as np
from scipy.special import ndtr
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from ggdln.core.errors import InputError
from ggdln.core.types import Chances, Classes, Gatings, Inputs, OtherGatings, OtherInputs, Predicted, Values
from ggdln.estimators.network import GatedNetwork
from ggdln.theory.statistics import class_chances

LEAST_VARIANCE = 1e-12
"""Of labels, which at T = 0 have none at inputs of the training set."""


class GGDLNClassifier(GatedNetwork, ClassifierMixin, BaseEstimator):
    """Learns classes y (P,) of any kind from inputs X (P, N0).

    Two classes are -1 and +1, in the order of `classes_`; of more, each has an output of its own, which is +1 for its inputs
    and -1 for others. The class with the largest mean output is predicted. Outputs share one network; for a network of each,
    use `sklearn.multiclass.OneVsRestClassifier`. A matrix y (P, C) of 0 and 1 stands for C properties that are predicted one
    by one.
    """

    classes_: np.ndarray

    def fit(self, X: Inputs, y: Classes, gates: Gatings | None = None) -> Self:
        """Learn. `gates` (P, M) may be given as a matrix; those of new inputs must then be given too."""
        X, y = validate_data(self, X, y, dtype=np.float64, multi_output=True, ensure_min_samples=2)
        check_classification_targets(y)
        self._properties = type_of_target(y) == "multilabel-indicator"
        if self._properties:
            self.classes_ = np.arange(y.shape[1])
            return self._learn(X, 2.0 * y - 1, gates)
        y = column_or_1d(y, warn=True)
        self.classes_, of = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise InputError(f"y: got one class, {str(self.classes_[0])!r}; accepted: at least two classes")
        signs = 2.0 * (of[:, None] == np.arange(len(self.classes_))) - 1
        return self._learn(X, signs[:, 1] if len(self.classes_) == 2 else signs, gates)

    def decision_function(self, X: OtherInputs, gates: OtherGatings | None = None) -> Values:
        """What the prediction follows from, at X (n, N0).

        For two classes, and for properties, the mean output in units of the standard deviation of a label, which is the output
        with its noise of variance T: (n,), or (n, C). For several classes the mean outputs (n, C).
        """
        mean, variance = self._label(X, gates)
        return mean if self._exclusive else mean / np.sqrt(np.maximum(variance, LEAST_VARIANCE))

    def predict(self, X: OtherInputs, gates: OtherGatings | None = None) -> Predicted:
        """The class of each input (n,), or its properties (n, C)."""
        found = self.decision_function(X, gates)
        if self._properties:
            return (found > 0).astype(int)
        return self.classes_[found.argmax(axis=1) if self._exclusive else (found > 0).astype(int)]

    def predict_proba(self, X: OtherInputs, gates: OtherGatings | None = None) -> Chances:
        """Chance of each class (n, C), or of each property.

        It is the chance that a label is positive; of several classes, that the label of the class is the largest, with outputs
        taken as independent.
        """
        if self._exclusive:
            return class_chances(*self._label(X, gates))
        chance = ndtr(self.decision_function(X, gates))
        return chance if self._properties else np.column_stack([1 - chance, chance])

    @property
    def _exclusive(self) -> bool:
        """Whether there are several classes with an output each."""
        check_is_fitted(self)
        return len(self.classes_) > 2 and not self._properties

    def _label(self, X, gates):
        """Mean and variance of labels, (n,) or (n, C)."""
        x, g = self._new(X, gates)
        mean, variance = self.solution_.predict(x, g)
        return mean, variance + self.temperature_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags
