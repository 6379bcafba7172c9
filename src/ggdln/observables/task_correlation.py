"""How much what is learned for one sub-task influences the predictions for another."""

from typing import ClassVar

import numpy as np
import xarray as xr
from scipy.linalg import cho_factor, cho_solve

from ggdln.core.kinds import Variable
from ggdln.observables import Observable


class TaskCorrelation(Observable):
    """C_pq = sum over test inputs of sub-task p and training inputs of sub-task q of |k~^T K~^-1|."""

    needs: ClassVar[tuple] = ("predict", "kernel")
    needs_subtasks: ClassVar[bool] = True
    variables: ClassVar[dict[str, Variable]] = {
        "task_correlation": Variable(
            "influence of the training data of one task on the predictions for another",
            "C_pq",
            "sum over test inputs of p and training inputs of q of |k~^T K~^-1|",
            "influence between tasks $C$",
            axes=("tested permutation $p$", "trained permutation $q$"),
            single=False,
        ),
        "correlation_ratio": Variable(
            "ratio of diagonal to off-diagonal task correlations",
            "",
            "mean C_pp / mean C_pq",
            "diagonal / off-diagonal of $C$",
        ),
    }

    def of(self, solution, sample):
        influence = np.abs(influences(solution, sample))
        trained, tested = sample.task.subtask, sample.task.subtask_test
        n = int(trained.max()) + 1
        C = np.array([[influence[tested == p][:, trained == q].sum() for q in range(n)] for p in range(n)])
        same = np.eye(n, dtype=bool)
        return {
            "task_correlation": xr.DataArray(C, dims=("tested", "trained")),
            "correlation_ratio": C[same].mean() / C[~same].mean(),
        }


def influences(solution, sample):
    """k~^T K~^-1: the weight of each training label in each mean prediction, 0 for dead training inputs: (P_t, P)."""
    x, g = sample.task.x, sample.g
    live = solution.kernel_diagonal(x, g) > 0
    K = solution.kernel(x[live], g[live])
    K[np.diag_indices_from(K)] += solution.temperature
    k = solution.kernel(x[live], g[live], sample.task.x_test, sample.g_test)
    factor = cho_factor(K, lower=True, overwrite_a=True, check_finite=False)
    result = np.zeros((len(sample.g_test), len(g)))
    result[:, live] = cho_solve(factor, k, overwrite_b=True, check_finite=False).T
    return result
