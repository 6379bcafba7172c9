"""How many random examples a gated network can fit: the number of independent effective inputs g_m1 ... g_mL x_j.

For generic real gates that is N0 C(M+L-1, L). Gates of value 0 or 1 satisfy g_m^2 = g_m, so a product depends only on the
set of gates in it, and N0 sum_{k=1..min(L,M)} C(M, k) directions are left: the same for L <= 2, fewer from L = 3 on.
"""

from scipy.optimize import brentq
from scipy.special import binom


def capacity(N0: int, M: float, L: int, *, binary: bool = False) -> float:
    """Largest P that can be fitted exactly, for M gates and depth L. M may be fractional."""
    if binary:
        return N0 * sum(binom(M, k) for k in range(1, L + 1) if k < M + 1)
    return N0 * binom(M + L - 1, L)


def gates_at_capacity(N0, P, L, *, binary=False):
    """The (fractional) number of gates M at which P examples reach capacity."""
    return brentq(lambda M: capacity(N0, M, L, binary=binary) - P, 1e-9, P / N0 + L + 1, xtol=1e-10)
