"""Bias, variance and error of a predictor from a finite number of runs or chains, without the bias of that number.

The squared error of a mean over R runs overstates the bias by var/R. The product of two *independent* runs does not:
averaged over pairs of different runs, (f_r - y)(f_s - y) is (<f> - y)^2. The same holds for means over the draws of
independent Markov chains, however correlated the draws of one chain are, so one formula serves trained ensembles and
samplers.
"""

from typing import Any

import numpy as np

from ggdln.core import checks
from ggdln.core.errors import InputError
from ggdln.core.types import OtherLabels, Runs, WhichRuns
from ggdln.theory.statistics import are_classes, check_signs, error_chance


def ensemble_statistics(
    predictions: Runs, y_test: OtherLabels, *, use: WhichRuns | None = None, variances: Runs | None = None
) -> dict[str, Any]:
    """Bias, variance, generalization error and error rate over test inputs, each with its error over runs or chains.

    predictions: (run, test) of independent runs, or (chain, draw, test) of independent chains. y_test: (test,). With several
    outputs y_test is (test, output), predictions have that last dimension too, and every average over test inputs is one over
    inputs and outputs. use: which runs or chains to keep, boolean (run,). A prediction that is not finite is refused, never
    skipped, so a run that diverged must be left out by name. variances: those of the predictor, as predictions, where these are
    its means given something that was drawn.

    Returns a dict of floats: bias = <(<f> - y)^2>, variance = <var f>, generalization_error (their sum), error_rate =
    <1/2 erfc(y <f> / sqrt(2 var f))> (corrected to first order in 1/R by the jackknife), sign_error_rate (the share of
    runs and inputs with the wrong sign, no Gaussian assumed); each with `_error`, its jackknife standard error; and
    `used` and `left_out`, numbers of runs or chains. The correction may turn a bias near zero negative, within its
    error. Labels 0 and 1 are refused, since -1 and +1 are meant. If labels are classes, as in `predictor_statistics`, an
    error is that another output is the largest.
    """
    y_test = checks.array("y_test", y_test, 1, 2)
    check_signs("y_test", y_test)
    predictions = _by_draw(np.asarray(predictions), y_test)
    spread = np.zeros_like(predictions) if variances is None else _by_draw(np.asarray(variances), y_test)
    total = len(predictions)
    if use is not None:
        use = np.asarray(use)
        if use.shape != (total,) or use.dtype != bool:
            raise InputError(f"use: expected {total} booleans, got {use.dtype} of shape {use.shape}")
        predictions, spread = predictions[use], spread[use]
    predictions = checks.array("predictions", predictions, 2 + y_test.ndim)
    count = len(predictions)
    if count < 2:
        raise InputError(f"predictions: {count} run(s) or chain(s); at least 2 independent ones are needed for a variance")

    means = predictions.mean(1)
    squares = (np.square(predictions - y_test) + spread).mean(1)
    wrong = _wrong(predictions, spread, y_test)
    parts = means, np.square(means), squares, wrong
    sums = [part.sum(0) for part in parts]
    full = _statistics(sums, count, y_test)
    if count > 2:
        others = [[total - part[i] for total, part in zip(sums, parts, strict=True)] for i in range(count)]
        left = np.array([_statistics(rest, count - 1, y_test) for rest in others])
        errors = np.sqrt((count - 1) / count * np.square(left - left.mean(0)).sum(0))
        full[3] = np.clip(count * full[3] - (count - 1) * left[:, 3].mean(), 0, 1)
    else:
        errors = np.full(5, np.nan)
    names = ("bias", "variance", "generalization_error", "error_rate", "sign_error_rate")
    result = {name: float(value) for name, value in zip(names, full, strict=True)}
    result |= {f"{name}_error": float(value) for name, value in zip(names, errors, strict=True)}
    return result | {"used": count, "left_out": total - count}


def _wrong(predictions, variances, y):
    """Share of the draws of each chain that are wrong about each label or, where labels are classes, about each input."""
    if not are_classes(y):
        return error_chance(predictions, variances, y).mean(1)
    # Chances of classes take more numbers than predictions, so draws come one by one.
    chains = zip(predictions, variances, strict=True)
    return np.array([np.mean([error_chance(*draw, y) for draw in zip(*chain, strict=True)], axis=0) for chain in chains])


def _by_draw(predictions, y_test):
    """Predictions over (chain, draw, test), or (chain, draw, test, output)."""
    dims = ("test", "output")[: y_test.ndim]
    if predictions.ndim - y_test.ndim not in (1, 2):
        expected = " or ".join(f"({', '.join(first + dims)})" for first in (("run",), ("chain", "draw")))
        raise InputError(f"predictions: expected {expected} for y_test {y_test.shape}, got shape {predictions.shape}")
    if predictions.shape[-y_test.ndim :] != y_test.shape:
        raise InputError(
            f"y_test: labels {y_test.shape} for predictions {predictions.shape[-y_test.ndim :]} of ({', '.join(dims)})"
        )
    draws = predictions.shape[1 : -y_test.ndim] or (1,)
    return predictions.reshape(len(predictions), *draws, *y_test.shape)


def _statistics(sums, count, y):
    """The five statistics, from sums over chains of chain means, their squares, squared errors and wrong signs."""
    mean_sum, square_sum, error_sum, wrong_sum = sums
    mean = mean_sum / count
    of_means = np.maximum(square_sum / count - mean**2, 0) * count / (count - 1)
    bias = (mean - y) ** 2 - of_means / count
    variance = error_sum / count - bias
    rate = error_chance(mean, np.maximum(variance, 0), y)
    return np.array([bias.mean(), variance.mean(), np.mean(error_sum) / count, rate.mean(), np.mean(wrong_sum) / count])
