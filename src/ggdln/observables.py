"""What is measured on a solution beyond its predictor statistics: order parameters, shapes of kernels, task correlations.

A solution is anything with the methods `predict` and `kernel`, such as those of `ggdln.theory`.
"""

import numpy as np
import xarray as xr
from scipy.linalg import cho_factor, cho_solve

from ggdln.errors import InputError
from ggdln.statistics import predictor_statistics

FLAT = 0.05
"""A normalized kernel element up to this counts as flattened."""
BINS = np.linspace(-1, 1, 101)
PICTURE = 120
"""Side of the picture of a kernel, in squares of samples."""


def observe(names, solution, task, g, g_test):
    """The observables `names` of a solution, for a `Task` with gates g (P, M) and g_test (P_t, M)."""
    found = {}
    for name in names:
        if name not in OBSERVABLES:
            raise InputError(f"observable: got {name!r}, accepted: {', '.join(OBSERVABLES)}")
        found |= OBSERVABLES[name](solution, task, g, g_test)
    return found


def predictor(solution, task, g, g_test):
    mean, variance = solution.predict(task.x_test, g_test)
    return predictor_statistics(mean, variance, task.y_test)


def kernel_shape(solution, task, g, g_test):
    """Density of the normalized kernel between different training inputs that show the same digit."""
    return shape_of(solution.kernel(task.x, g), task.notes["digit"][1])


def shape_of(kernel, digit):
    """Density and flat share of the normalized elements of `kernel` (P, P) for pairs of equal `digit` (P,)."""
    scale = np.sqrt(kernel.diagonal())
    live = np.flatnonzero(scale > 0)
    normalized = kernel[np.ix_(live, live)] / np.outer(scale[live], scale[live])
    digit = digit[live]
    elements = normalized[np.triu(digit[:, None] == digit, 1)]
    # Rounding may put an element a hair outside [-1, 1].
    density, _ = np.histogram(np.clip(elements, -1, 1), BINS, density=True)
    centres = (BINS[:-1] + BINS[1:]) / 2
    return {
        "kernel_histogram": xr.DataArray(density, coords={"kernel_element": centres}, dims="kernel_element"),
        "flat_fraction": np.mean(elements <= FLAT),
    }


def order_parameter(solution, task, g, g_test):
    """U_1 in the basis of the gates."""
    return {"order_parameter": xr.DataArray(solution.order_parameters[0], dims=("gate", "gate2"))}


def block_ratio(U, subsets):
    """Mean |U| on the first diagonal block relative to the mean over the other diagonal blocks."""
    blocks = np.abs(U).reshape(subsets, len(U) // subsets, subsets, -1)
    means = np.einsum("iaib->i", blocks) / (len(U) // subsets) ** 2
    return means[0] / means[1:].mean()


def task_correlation(solution, task, g, g_test):
    """C_pq = sum over test inputs of task p and training inputs of task q of |k~^T K~^-1|."""
    influence = np.abs(influences(solution, task, g, g_test))
    n = int(task.task.max()) + 1
    C = np.array([[influence[task.task_test == p][:, task.task == q].sum() for q in range(n)] for p in range(n)])
    same = np.eye(n, dtype=bool)
    return {
        "task_correlation": xr.DataArray(C, dims=("tested", "trained")),
        "correlation_ratio": C[same].mean() / C[~same].mean(),
    }


def influences(solution, task, g, g_test):
    """k~^T K~^-1: the weight of each training label in each mean prediction, 0 for dead training inputs: (P_t, P)."""
    live = solution.kernel_diagonal(task.x, g) > 0
    K = solution.kernel(task.x[live], g[live])
    K[np.diag_indices_from(K)] += solution.temperature
    k = solution.kernel(task.x[live], g[live], task.x_test, g_test)
    factor = cho_factor(K, lower=True, overwrite_a=True, check_finite=False)
    result = np.zeros((len(g_test), len(g)))
    result[:, live] = cho_solve(factor, k, overwrite_b=True, check_finite=False).T
    return result


def kernel_blocks(solution, task, g, g_test):
    """The kernel of several tasks as a picture, and how much larger it is within tasks than between them."""
    return blocks_of(solution.kernel(task.x, g), task)


def blocks_of(kernel, task):
    """Picture and ratio of a kernel (P, P): samples sorted by task, then by form and digit; averages over squares."""
    order = np.lexsort((task.notes["digit"][1], task.notes["permuted"][1], task.task))
    squares = np.array_split(order, min(PICTURE, len(order)))
    rows = np.stack([kernel[square].mean(axis=0) for square in squares])
    picture = np.stack([rows[:, square].mean(axis=1) for square in squares], axis=1)
    same = task.task[:, None] == task.task
    amplitude = np.abs(kernel)
    return {
        "kernel_picture": xr.DataArray(picture, dims=("row", "column")),
        "kernel_ratio": amplitude[same].mean() / amplitude[~same].mean(),
    }


OBSERVABLES = {
    "predictor": predictor,
    "kernel_shape": kernel_shape,
    "order_parameter": order_parameter,
    "task_correlation": task_correlation,
    "kernel_blocks": kernel_blocks,
}
