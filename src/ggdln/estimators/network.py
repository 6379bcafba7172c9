"""A globally gated deep linear network as an estimator: what regression and classification share.

The network has no bias of its own, and gates are hyperplanes through the origin or distances between inputs. So inputs are
standardized before the gates see them, and the network has a constant input beside them, unless told otherwise.
"""

import inspect
import math
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted, validate_data

from ggdln.core.errors import InputError
from ggdln.core.problems import choices
from ggdln.core.types import Gatings, OtherGatings, OtherInputs
from ggdln.estimators._seed import seed_of
from ggdln.estimators.gates import RandomGates
from ggdln.gates import fit_gates
from ggdln.theory.exact import solve_exact
from ggdln.theory.gp import gp_limit
from ggdln.theory.predictor import Predictor
from ggdln.theory.select import select
from ggdln.theory.solution import solve

EVIDENCE = "evidence"
METHODS = ("theory", "gp", "exact")


class GatedNetwork:
    """Parameters and inputs of both estimators.

    gates           a transformer such as `RandomGates(M=16)`, which is the default; a mapping as for `ggdln.fit_gates`; or a
                    function that gives gates (n, M) for inputs (n, N0). They are fitted to the inputs as the network sees
                    them. Or a matrix (P, M), a row for each training input; `predict` then needs one for each new input,
                    and what splits the inputs, such as cross-validation, needs a transformer or a function instead
    width           N, or one for each hidden layer
    depth           L, number of gated layers
    sigma           prior standard deviation of the weights, or one for each of the L + 1 layers
    temperature     T, variance of the noise of labels; at 0 they are interpolated
    method          "theory" at finite width; "gp", its limit of infinite width; "exact", sampled without approximation (T > 0)
    standardize     inputs, and labels of a regression, with mean 0 and standard deviation 1 on the training set; sigma and
                    temperature are then in units of these
    bias            a constant input 1 beside the others, which the gates don't see
    method_params   further arguments of `ggdln.solve`, `gp_limit` or `solve_exact`
    random_state    seed of the default gates and of the method "exact"; None for another one at every fit

    width, sigma and temperature may be "evidence": they are then those with the largest evidence, found by `ggdln.select`.

    Fitted: `solution_`, what the method returned; `gates_`; `width_`, `sigma_`, `temperature_`, as used; `log_evidence_`, which
    with the method "exact" is sampled when it is asked for, and takes some times as long as the fit.
    """

    solution_: Predictor

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        _, _, parameters = inspect.cleandoc(GatedNetwork.__doc__ or "").partition("\n\n")
        cls.__doc__ = f"{inspect.cleandoc(cls.__doc__ or '')}\n\n{parameters}"

    def __init__(
        self,
        gates: Any = None,
        *,
        width: Any = 100,
        depth: int = 1,
        sigma: Any = 1.0,
        temperature: Any = 0.1,
        method: str = "theory",
        standardize: bool = True,
        bias: bool = True,
        method_params: dict[str, Any] | None = None,
        random_state: Any = 0,
    ) -> None:
        self.gates = gates
        self.width = width
        self.depth = depth
        self.sigma = sigma
        self.temperature = temperature
        self.method = method
        self.standardize = standardize
        self.bias = bias
        self.method_params = method_params
        self.random_state = random_state

    @property
    def log_evidence_(self) -> float:
        """log p(y) of the labels as the network sees them."""
        check_is_fitted(self)
        return float(self.solution_.log_evidence)

    def _learn(self, X: np.ndarray, y: np.ndarray, gates: Gatings | None) -> Self:
        """Fit inputs X (P, N0) and labels y (P,) or (P, C), both already checked."""
        if self.method not in METHODS:
            raise InputError(f"method: got {self.method!r}, accepted: {choices(self.method, METHODS)}")
        seed = seed_of(self.random_state)
        if self.standardize:
            self.mean_, deviation = X.mean(axis=0), X.std(axis=0)
            self.scale_ = np.where(np.ptp(X, axis=0) > 0, deviation, np.inf)  # constant inputs become 0
        gates = self._given(len(X)) if gates is None else gates
        self.gates_ = None if gates is not None else self._fitted_gates(self._standardized(X), seed)
        x, g = self._seen(X, gates)
        self.width_, self.sigma_, self.temperature_ = self.width, self.sigma, self.temperature
        network = {"depth": self.depth, **self._chosen(x, g, y)}
        more = self.method_params or {}
        if self.method == "gp":
            del network["width"]
            self.solution_ = gp_limit(x, g, y, **network, **more)
        elif self.method == "theory":
            self.solution_ = solve(x, g, y, **network, **more)
        else:
            self.solution_ = solve_exact(x, g, y, **network, **({"seed": seed} | more))
        return self

    def _chosen(self, x, g, y) -> dict[str, Any]:
        """Width, sigma and temperature, where they are to be chosen those with the largest evidence."""
        given = {name: getattr(self, name) for name in ("width", "sigma", "temperature")}
        if self.method == "gp":
            given["width"] = math.inf
        wrong = [name for name, value in given.items() if isinstance(value, str) and value != EVIDENCE]
        if wrong:
            raise InputError(f"{wrong[0]}: got {given[wrong[0]]!r}, accepted: a number, or {EVIDENCE!r}")
        free = [name for name, value in given.items() if isinstance(value, str)]
        several = [name for name, value in given.items() if np.ndim(value)]
        if free and several:
            told = f"one number beside {free[0]} = {EVIDENCE!r}"
            raise InputError(f"{several[0]}: got {given[several[0]]!r}, accepted: {told}")
        if free:
            found = select(x, g, y, depth=self.depth, **{n: None if n in free else v for n, v in given.items()})
            given |= {name: found.best[name] for name in free}
            if self.method == "exact" and math.isinf(given["width"]):
                given["width"] = int(found.curve.width.values[-2])  # the widest that is finite
        self.width_, self.sigma_, self.temperature_ = given.values()
        return given

    def _given(self, count):
        """The matrix of gates of so many training inputs, if that is what the estimator was made with."""
        if not (hasattr(self.gates, "__array__") or isinstance(self.gates, list | tuple)):
            return None
        if len(self.gates) != count:
            raise InputError(
                f"gates: a matrix with {len(self.gates)} rows for {count} training inputs; accepted: a row for each, and where "
                "inputs are split, as in cross-validation, a transformer or a function in place of the matrix"
            )
        return self.gates

    def _fitted_gates(self, x, seed):
        """Gates that were fitted to inputs x (P, N0), as a function of inputs."""
        gates = RandomGates(random_state=seed) if self.gates is None else self.gates
        if isinstance(gates, Mapping):
            return fit_gates(gates, x, seed=seed)
        if hasattr(gates, "fit") and hasattr(gates, "transform"):
            return clone(gates).fit(x)
        if callable(gates):
            return gates
        told = "a transformer such as RandomGates(M=16), a mapping with 'kind', a function of inputs, or a matrix"
        raise InputError(f"gates: got {gates!r}, accepted: {told}")

    def _standardized(self, X):
        return (X - self.mean_) / self.scale_ if self.standardize else X

    def _seen(self, X, gates):
        """Inputs as the network sees them (n, N0 + 1), without the constant one if there is no bias, and gates (n, M)."""
        x = self._standardized(X)
        if gates is not None:
            g = gates
        elif self.gates_ is None:
            raise InputError(
                "gates: missing; accepted: a row of gates for each input, since those of the training set were given"
            )
        else:
            g = self.gates_.transform(x) if hasattr(self.gates_, "transform") else self.gates_(x)
        return np.column_stack([x, np.ones(len(x))]) if self.bias else x, np.asarray(g, dtype=np.float64)

    def _new(self, X: OtherInputs, gates: OtherGatings | None):
        """New inputs and gates, as the network sees them."""
        check_is_fitted(self)
        return self._seen(validate_data(self, X, dtype=np.float64, reset=False), gates)
