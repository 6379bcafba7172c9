"""Tasks labelled by a random ReLU network, y(x) = a_T . ReLU(W_T x / sqrt(N0)) / sqrt(N_T)."""

import numpy as np

from ggdln.core import seeds
from ggdln.core.errors import InputError
from ggdln.tasks import Task


def noisy_teacher(*, N0, P, P_t, N_T, gamma, epsilon, test_noise=True, seed, draw):
    """Gaussian inputs, labels with noise of standard deviation epsilon.

    The test inputs are corrupted copies of the first P_t training inputs, sqrt(1 - gamma) x + sqrt(gamma) eta, labelled
    by the same teacher, with fresh noise if `test_noise`.
    """
    if P_t > P:
        raise InputError(f"P_t: got {P_t}, accepted: at most P = {P}, since test inputs are copies of training inputs")
    rng = seeds.rng(seed, "noisy_teacher", draw)
    a, W = rng.standard_normal(N_T), rng.standard_normal((N_T, N0))
    x = rng.standard_normal((P, N0))
    y = teacher(x, W, a) + epsilon * rng.standard_normal(P)
    x_test = np.sqrt(1 - gamma) * x[:P_t] + np.sqrt(gamma) * rng.standard_normal((P_t, N0))
    y_test = teacher(x_test, W, a) + (epsilon * rng.standard_normal(P_t) if test_noise else 0.0)
    return Task(x=x, y=y, x_test=x_test, y_test=y_test)


def clustered_teacher(*, N0, P, P_t, N_T, gamma, subsets, clusters, rho, seed, draw):
    """Clustered inputs in several subsets of dimensions, and a teacher that may prefer the first subset.

    Each of the m = `subsets` blocks of N0/m dimensions holds sqrt(1 - gamma) c + sqrt(gamma) eta, with a centre c out of
    n = `clusters` Gaussian ones that all blocks share, chosen independently for each block and sample. The teacher's
    input weights have variance 1 on the first block, the preferred one, and rho on the others.
    """
    if N0 % subsets:
        raise InputError(f"N0: got {N0}, accepted: multiples of subsets = {subsets}")
    rng = seeds.rng(seed, "clustered_teacher", draw)
    size = N0 // subsets
    centres = rng.standard_normal((clusters, size))
    scale = np.full(N0, np.sqrt(rho))
    scale[:size] = 1.0
    W, a = rng.standard_normal((N_T, N0)) * scale, rng.standard_normal(N_T)

    def inputs(n, stream):
        which = stream.integers(clusters, size=(n, subsets))
        noise = stream.standard_normal((n, N0))
        return np.sqrt(1 - gamma) * centres[which].reshape(n, N0) + np.sqrt(gamma) * noise, which

    x, which = inputs(P, seeds.rng(seed, "clustered_teacher", "train", draw))
    x_test, which_test = inputs(P_t, seeds.rng(seed, "clustered_teacher", "test", draw))
    return Task(
        x=x,
        y=teacher(x, W, a),
        x_test=x_test,
        y_test=teacher(x_test, W, a),
        notes={"cluster": (("train", "subset"), which), "cluster_test": (("test", "subset"), which_test)},
    )


def teacher(x, W, a):
    """a . ReLU(W x / sqrt(N0)) / sqrt(N_T) for x (p, N0), W (N_T, N0), a (N_T,): (p,)."""
    return np.maximum(x @ W.T / np.sqrt(x.shape[1]), 0.0) @ a / np.sqrt(len(a))
