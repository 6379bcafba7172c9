"""Kernels of gated networks in the limit of infinite width.

With gates g(x) and depth L the prior covariance of the network's output is

    K_GP(x, x') = (sigma^2 g(x).g(x') / M)^L  K_0(x, x'),    K_0(x, x') = sigma^2 x.x' / N0.
"""

import numpy as np

from ggdln.core.blas import outer


def input_kernel(x, x2=None, *, sigma=1.0):
    """K_0 between the rows of x (P, N0) and of x2 (P2, N0), default x itself: (P, P2)."""
    return sigma**2 / x.shape[1] * outer(x, x if x2 is None else x2)


def gate_overlap(g, g2=None):
    """g(x).g(x') / M between the rows of g (P, M) and of g2 (P2, M), default g itself: (P, P2)."""
    return outer(g, g if g2 is None else g2) / g.shape[1]


def gp_kernel(x, g, x2=None, g2=None, *, depth=1, sigma=1.0):
    """K_GP between (x, g) and (x2, g2), default (x, g) itself: (P, P2). Depth 0 is K_0."""
    return (sigma**2 * gate_overlap(g, g2)) ** depth * input_kernel(x, x2, sigma=sigma)


def gp_variance(x, g, *, depth=1, sigma=1.0):
    """The diagonal K_GP(x, x): (P,)."""
    overlap = np.einsum("pm,pm->p", g, g) / g.shape[1]
    return (sigma**2 * overlap) ** depth * sigma**2 / x.shape[1] * np.einsum("pj,pj->p", x, x)


def normalized_gp_kernel(x, g, x2, g2, *, depth):
    """cos(g, g2)^L cos(x, x2): the shape of K_GP without its magnitude, 0 where an input or its gates vanish: (P, P2)."""
    scale = np.sqrt(np.outer(gp_variance(x, g, depth=depth), gp_variance(x2, g2, depth=depth)))
    kernel = gp_kernel(x, g, x2, g2, depth=depth)
    return np.divide(kernel, scale, out=np.zeros_like(kernel), where=scale > 0)


def arc_cosine_limit(theta, depth):
    """Normalized GP kernel of random zero-threshold gates as M -> infinity: ((pi - |theta|) / pi)^L cos(theta)."""
    return (1 - np.abs(theta) / np.pi) ** depth * np.cos(theta)
