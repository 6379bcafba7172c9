"""Gates as transformers: `fit` fixes them for training inputs without labels, `transform` gives their values (n, M) at any.

A transformer is made from a kind of `ggdln.gates`, whose parameters are those of its constructor, with a default for each,
since scikit-learn wants estimators that can be made without arguments. They are written out for editors and type checkers.
"""

import inspect
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from ggdln.core.types import GateValues, Inputs, OtherInputs
from ggdln.estimators._seed import seed_of
from ggdln.gates import FittedGates, Gates, fit_gates
from ggdln.gates.local import Local
from ggdln.gates.open import Open
from ggdln.gates.random import Random
from ggdln.gates.rectified import Rectified
from ggdln.gates.soft_kmeans import SoftKmeans

RANDOM_STATE = "Seed of the gates; None for others at every fit"


class GateTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Gates of one kind. `gates_` are the fitted ones, a `FittedGates`."""

    kind: ClassVar[type[Gates]]
    gates_: FittedGates

    def __init_subclass__(cls, kind: type[Gates]) -> None:
        super().__init_subclass__()
        cls.kind = kind
        told = {name: field.description for name, field in kind.model_fields.items()} | {"random_state": RANDOM_STATE}
        lines = [f"    {name}: {text}" for name, text in told.items()]
        cls.__doc__ = "\n".join([inspect.getdoc(kind) or "", "", *lines])

    def fit(self, X: Inputs, y: Any = None) -> Self:
        """Fix the gates for training inputs X (n, N0)."""
        X = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        parameters = self.get_params(deep=False)
        seed = seed_of(parameters.pop("random_state"))
        self.gates_ = fit_gates({"kind": self.kind.kind_name()} | parameters, X, seed=seed)
        return self

    def transform(self, X: OtherInputs) -> GateValues:
        """Gate values (n, M) of inputs X (n, N0)."""
        check_is_fitted(self)
        return self.gates_(validate_data(self, X, dtype=np.float64, reset=False))

    @property
    def _n_features_out(self) -> int:
        return len(self.gates_)


class RandomGates(GateTransformer, kind=Random):
    def __init__(self, *, M: int = 16, b: float = 0.0, random_state: Any = 0) -> None:
        self.M = M
        self.b = b
        self.random_state = random_state


class RectifiedGates(GateTransformer, kind=Rectified):
    def __init__(self, *, M: int = 16, b: float = 0.0, random_state: Any = 0) -> None:
        self.M = M
        self.b = b
        self.random_state = random_state


class LocalGates(GateTransformer, kind=Local):
    def __init__(self, *, M: int = 16, b: float = 0.0, subsets: int = 1, random_state: Any = 0) -> None:
        self.M = M
        self.b = b
        self.subsets = subsets
        self.random_state = random_state


class OpenGates(GateTransformer, kind=Open):
    def __init__(self, *, M: int = 1, random_state: Any = 0) -> None:
        self.M = M
        self.random_state = random_state


class SoftKMeansGates(GateTransformer, kind=SoftKmeans):
    def __init__(
        self,
        *,
        M: int = 4,
        stiffness: float = 3.0,
        max_iterations: int = 3000,
        tolerance: float = 1e-6,
        random_state: Any = 0,
    ) -> None:
        self.M = M
        self.stiffness = stiffness
        self.max_iterations = max_iterations
        self.tolerance = tolerance
        self.random_state = random_state
