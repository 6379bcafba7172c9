"""Arguments and results of the public functions have the shapes that their annotations say, for one output and for several.

Dimensions that are named alike are of one length in all calls of a `with` block: P, n, N0, M and the outputs. Datasets have names
for their dimensions, and their variables say what they are.
"""

import inspect
import typing
from functools import cached_property
from importlib import import_module

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from beartype.door import die_if_unbearable
from beartype.roar import BeartypeDoorHintViolation
from jaxtyping import AbstractArray, jaxtyped

import ggdln
from ggdln.core.types import Kernel, OtherGatings, OtherInputs, Values
from ggdln.core.variables import LABELS, NUMBER, SQUARES
from ggdln.gates import FittedGates
from ggdln.public import NAMES
from ggdln.tasks import TaskData
from ggdln.theory.exact import ExactSolution
from ggdln.theory.gp import GPSolution
from ggdln.theory.loops import LoopSolution
from ggdln.theory.select import Selection
from ggdln.theory.solution import Solution, Sweep

P, N, N2, N0, M = 14, 5, 4, 6, 3
RETURNED = (TaskData, FittedGates, Solution, LoopSolution, ExactSolution, GPSolution, Selection, Sweep)
INTERNAL = {"moments", "between", "diagonal", "components", "conditional", "live", "dataset", "data", "coexisting"}
"""What solutions offer to their own modules."""
DIMENSIONS = {"input", "test", "output", "output2", "m", "n", "run", "chain", "draw", "width"}
NETWORK = dict(width=12, temperature=0.1)
WITHIN = dict(sampling=ggdln.Sampling(chains=2, draws=4, warmup=2, thin=1), seed=0, **NETWORK)


def hints(thing):
    return typing.get_type_hints(thing, localns={"LoopSolution": LoopSolution}, include_extras=True)


def shapes(hint):
    """The shapes in the annotation of an argument."""
    if typing.get_origin(hint) is typing.Annotated:
        return list(hint.__metadata__)
    return [shape for part in typing.get_args(hint) for shape in shapes(part)]


def has_shapes(hint):
    own = inspect.isclass(hint) and issubclass(hint, (AbstractArray, xr.Dataset))
    return own or bool(shapes(hint)) or any(map(has_shapes, typing.get_args(hint)))


class Follower:
    """Calls functions, and holds what they get and give against their annotations."""

    def __init__(self):
        self.seen = set()

    def __call__(self, function, *arguments, **keywords):
        found = hints(function.__call__ if isinstance(function, FittedGates) else function)
        self.seen.add(getattr(function, "__qualname__", f"{type(function).__name__}.__call__"))
        for name, value in inspect.signature(function).bind(*arguments, **keywords).arguments.items():
            for shape in shapes(found.get(name)) if value is not None else ():
                die_if_unbearable(np.asarray(value), shape)
        result = function(*arguments, **keywords)
        if found["return"] is not typing.Self:
            self.hold(result, found["return"])
        return result

    def hold(self, result, hint):
        die_if_unbearable(result, hint)
        if isinstance(result, xr.Dataset):
            assert set(result.dims) <= DIMENSIONS
            assert {result.sizes[name] for name in ("input", "test") if name in result.dims} <= {N}
            assert {variable.attrs.get("units", NUMBER) for variable in result.variables.values()} <= {LABELS, SQUARES, NUMBER}
            assert [name for name, variable in result.variables.items() if not variable.attrs.get("long_name")] == []

    def attribute(self, owner, name):
        """The same for a property or a field."""
        member = inspect.getattr_static(type(owner), name, None)
        getter = member.func if isinstance(member, cached_property) else getattr(member, "fget", None)
        self.hold(getattr(owner, name), hints(getter)["return"] if getter else hints(type(owner))[name])
        self.seen.add(f"{next(cls for cls in type(owner).__mro__ if name in self._own(cls)).__name__}.{name}")

    @staticmethod
    def _own(cls):
        return {**vars(cls), **inspect.get_annotations(cls)}


THINGS = [*(getattr(import_module(module), name) for name, module in NAMES.items()), *RETURNED]
CLASSES = {cls for thing in THINGS if inspect.isclass(thing) for cls in thing.__mro__ if cls.__module__.startswith("ggdln")}


def functions():
    """All that is public and can be called or is computed: functions, methods and properties."""
    yield from (thing for thing in THINGS if not inspect.isclass(thing))
    for cls in CLASSES:
        for name, member in vars(cls).items():
            function = getattr(member, "__func__", getattr(member, "func", getattr(member, "fget", member)))
            public = name == "__call__" or not (name.startswith("_") or name in INTERNAL)
            if public and inspect.isfunction(function):
                yield function


def shaped():
    """Qualified names of all that is public and has shapes in its annotations."""
    found = {function.__qualname__ for function in functions() if any(map(has_shapes, hints(function).values()))}
    fields = ((cls, name, hint) for cls in CLASSES for name, hint in hints(cls).items() if name in inspect.get_annotations(cls))
    return found | {f"{cls.__name__}.{name}" for cls, name, hint in fields if has_shapes(hint)}


def test_everything_public_is_annotated():
    for function in functions():
        assert set(hints(function)) == {*inspect.signature(function).parameters, "return"} - {"self", "cls"}, function


@pytest.fixture(params=[(), (1,), (2,)], ids=["one output", "one in a matrix", "two"])
def sample(request):
    """Inputs, gates and labels of the training set, inputs and gates of two other sets."""
    rng = np.random.default_rng(0)
    x, other, second = (rng.standard_normal((count, N0)) for count in (P, N, N2))
    gates = ggdln.fit_gates({"kind": "random", "M": M, "b": -0.5}, x, seed=1)
    return x, gates(x), rng.standard_normal((P, *request.param)), other, gates(other), second, gates(second)


def follow_solutions(follow, sample, path):
    x, g, y, other, g_other, second, g_second = sample
    frame = pd.DataFrame(x)
    selection = follow(ggdln.select, x, g, y, width=[10, 20], sigma=1.0, loops=1)
    follow.attribute(selection, "curve")
    sweep = follow(ggdln.solve_sweep, x, g, y, widths=[10, 20], temperature=0.1)
    follow(sweep.table)
    solution = follow(ggdln.solve, frame, g.tolist(), y, depth=2, **NETWORK)
    solution.save(path / "solution.nc")
    found = [
        solution,
        follow(ggdln.solve, x, g > 0, y.tolist(), loops=1, **NETWORK),
        follow(ggdln.solve_exact, frame, g, y, draws=4, chains=2, **NETWORK),
        follow(ggdln.gp_limit, frame, g, y, temperature=0.1),
        *sweep,
        selection.solution,
        ggdln.load(path / "solution.nc"),
    ]
    for solution in found:
        mean, variance = follow(solution.predict, other.tolist(), g_other)
        follow(solution.predict, other, g_other, covariance=True)
        prediction = follow(solution.prediction, other, g_other)
        np.testing.assert_allclose(prediction["mean"], mean, rtol=1e-9, atol=1e-12)
        if isinstance(solution, (Solution, GPSolution)):  # the others estimate it together with its error
            assert np.array_equal(prediction["variance"], variance)
        follow(solution.sample, other, g_other, 2)
        follow(solution.kernel, other, g_other, pd.DataFrame(second), g_second)
        follow(solution.kernel_diagonal, other, g_other)
        follow(ggdln.predictor_statistics, mean, variance, mean)
        for name in ("order_parameters", "eigenvalues", "fitted", "traces"):
            if hasattr(type(solution), name) or name in hints(type(solution)):
                follow.attribute(solution, name)
        if isinstance(solution, LoopSolution):
            follow(solution.trusted, other, g_other)
        if isinstance(solution, ExactSolution):
            draws = follow(solution.conditional_everywhere, other, g_other)
            follow(ggdln.ensemble_statistics, draws[0], mean, use=np.array([True, True]), variances=draws[1])


def follow_simulations(follow, sample):
    x, g, y, other, g_other, *_ = sample
    training = ggdln.Training(max_steps=2)
    follow(ggdln.train_ensemble, pd.DataFrame(x), g, y, other.tolist(), g_other, runs=2, seed=0, width=12, training=training)
    follow(ggdln.train_relu, x, y, other, width=12, runs=2, seed=0, training=training)
    follow(ggdln.sample_posterior, x, g, y.tolist(), other, g_other, **WITHIN)
    follow(ggdln.langevin, x, g, y, other, g_other, **WITHIN)


def follow_estimators(follow, sample):
    x, g, y, other, g_other, *_ = sample
    for name in NAMES:
        if name.endswith("Gates"):
            with jaxtyped("context"):
                transformer = follow(getattr(ggdln, name)(M=2).fit, x)
                follow(transformer.transform, pd.DataFrame(other))
    with jaxtyped("context"):
        regressor = ggdln.GGDLNRegressor(width=12)
        follow(regressor.fit, pd.DataFrame(x), y)
        follow(regressor.predict, other)
        follow(regressor.predict, other, return_std=True)
        follow(regressor.predict, other, return_cov=True)
        follow(regressor.sample_y, other, 2)
    with jaxtyped("context"):
        follow(regressor.fit, x, y, gates=g)
        follow(regressor.predict, other, gates=g_other)
    # Classes in a list have an output each, so what they are and what is computed differ in shape.
    classes = np.array(["a", "b", "c"])[np.arange(P) % 3] if y.ndim == 1 else (np.stack([y[:, 0], -y[:, 0]], 1) > 0).astype(int)
    classifier = ggdln.GGDLNClassifier(width=12)
    for call, *arguments in ((classifier.fit, x, classes), *((getattr(classifier, name), other) for name in CLASSIFIED)):
        with jaxtyped("context"):
            follow(call, *arguments)


CLASSIFIED = ("decision_function", "predict", "predict_proba")


def follow_data(follow):
    task = follow(
        ggdln.make_task, {"kind": "noisy_teacher", "N0": N0, "P": P, "P_t": N, "N_T": 3, "gamma": 0.1, "epsilon": 0.1}, seed=0
    )
    for name in ("x", "y", "x_test", "y_test", "subtask", "subtask_test"):
        follow.attribute(task, name)
    for kind in ("random", "rectified", "open"):
        with jaxtyped("context"):
            gates = follow(ggdln.fit_gates, {"kind": kind, "M": M}, task.x, seed=0, subtask=task.subtask)
            follow(gates, task.x_test, task.subtask_test)


@pytest.mark.filterwarnings("ignore:loops")
def test_everything_public_has_the_shapes_that_it_says(sample, tmp_path):
    follow = Follower()
    with jaxtyped("context"):
        follow_solutions(follow, sample, tmp_path)
        follow_simulations(follow, sample)
    with jaxtyped("context"):
        follow_data(follow)
    follow_estimators(follow, sample)
    assert shaped() - follow.seen == set()


WRONG = {
    "an output too many": (Values, lambda mean, kernel: mean[..., None]),
    "an input too few": (Values, lambda mean, kernel: mean[1:]),
    "whole numbers": (Values, lambda mean, kernel: mean.astype(int)),
    "the other way round": (Kernel, lambda mean, kernel: kernel.T),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_result_is_found(case, sample):
    x, g, y, other, g_other, second, g_second = sample
    said, change = WRONG[case]
    follow = Follower()

    def changed(x: OtherInputs, gates: OtherGatings) -> said:
        return change(limit.predict(x, gates)[0], limit.kernel(x, gates, second, g_second))

    with jaxtyped("context"):
        limit = follow(ggdln.gp_limit, x, g, y, temperature=0.1)
        follow(limit.kernel, other, g_other, second, g_second)
        with pytest.raises(BeartypeDoorHintViolation):
            follow(changed, other, g_other)


def test_arguments_that_do_not_agree_are_found(sample):
    x, g, y, *_ = sample
    for arguments in ((x, g[1:], y), (x, g, y[1:]), (x[0], g, y)):
        with jaxtyped("context"), pytest.raises(BeartypeDoorHintViolation):
            Follower()(ggdln.gp_limit, *arguments, temperature=0.1)
