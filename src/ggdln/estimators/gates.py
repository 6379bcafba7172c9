"""Gates as transformers: `fit` fixes them for training inputs without labels, `transform` gives their values (n, M) at any.

A transformer is made from a kind of `ggdln.gates`, whose parameters are those of its constructor. Only defaults that the kind
leaves open are given here, since scikit-learn wants estimators that can be made without arguments.
"""

import inspect
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from ggdln.core.types import Array, GateValues
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

    def __init_subclass__(cls, kind: type[Gates], **defaults: Any) -> None:
        super().__init_subclass__()
        cls.kind, fields, keyword = kind, kind.model_fields, inspect.Parameter.KEYWORD_ONLY
        parameters = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
        for name, field in fields.items():
            default = defaults.get(name, field.default)
            parameters.append(inspect.Parameter(name, keyword, default=default, annotation=field.annotation))
        parameters.append(inspect.Parameter("random_state", keyword, default=0, annotation=Any))
        cls.__init__ = _constructor(inspect.Signature(parameters, return_annotation=None))  # type: ignore[method-assign]
        told = {name: field.description for name, field in fields.items()} | {"random_state": RANDOM_STATE}
        lines = [f"    {name}: {text}" for name, text in told.items()]
        cls.__doc__ = "\n".join([inspect.getdoc(kind) or "", "", *lines])

    def fit(self, X: Array, y: Any = None) -> Self:
        """Fix the gates for training inputs X (n, N0)."""
        X = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        parameters = self.get_params(deep=False)
        seed = seed_of(parameters.pop("random_state"))
        self.gates_ = fit_gates({"kind": self.kind.kind_name()} | parameters, X, seed=seed)
        return self

    def transform(self, X: Array) -> GateValues:
        """Gate values (n, M) of inputs X (n, N0)."""
        check_is_fitted(self)
        return self.gates_(validate_data(self, X, dtype=np.float64, reset=False))

    @property
    def _n_features_out(self) -> int:
        return len(self.gates_)


def _constructor(signature: inspect.Signature) -> Any:
    """An __init__ that keeps its arguments, as scikit-learn wants it."""

    def __init__(self: Any, *args: Any, **given: Any) -> None:
        bound = signature.bind(self, *args, **given)
        bound.apply_defaults()
        for name, value in bound.arguments.items():
            if name != "self":
                setattr(self, name, value)

    __init__.__signature__ = signature  # type: ignore[attr-defined]
    return __init__


class RandomGates(GateTransformer, kind=Random, M=16):
    pass


class RectifiedGates(GateTransformer, kind=Rectified, M=16):
    pass


class LocalGates(GateTransformer, kind=Local, M=16, subsets=1):
    pass


class OpenGates(GateTransformer, kind=Open, M=1):
    pass


class SoftKMeansGates(GateTransformer, kind=SoftKmeans, M=4, stiffness=3.0):
    pass
