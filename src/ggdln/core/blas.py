"""One BLAS for large matrices, one thread for small ones.

The wheels of numpy and scipy bring an OpenBLAS each, whose threads spin for a while after every call. Used in turn they take
the cores from each other, and two threads are slower than one. So products of large matrices go through scipy's, with all the
threads that it may use, while numpy's has one; and below a size at which threads pay, so has scipy's.
"""

from contextlib import contextmanager
from functools import cache

from scipy.linalg import blas
from threadpoolctl import ThreadpoolController

LARGE = 1500
"""Side of a matrix from which factorizations gain from threads."""


@cache
def _libraries():
    """The BLAS libraries of this process, numpy's own first among (small, large), where there are two of them."""
    found = [library for library in ThreadpoolController().lib_controllers if library.user_api == "blas"]
    small = [library for library in found if "numpy.libs" in str(library.filepath)]
    large = [library for library in found if library not in small]
    return (small, large) if large else ([], small)


@contextmanager
def threads_for(side):
    """Within this, as many threads as matrices of such a side gain from."""
    small, large = _libraries()
    limited = [*small, *(large if side < LARGE else ())]
    before = [(library, library.get_num_threads()) for library in limited]
    for library, threads in before:
        if threads != 1:
            library.set_num_threads(1)
    try:
        yield
    finally:
        for library, threads in before:
            if threads != 1:
                library.set_num_threads(threads)


def outer(a, b):
    """a b^T for a (n, k) and b (m, k), in C order: (n, m)."""
    # BLAS sees the transposes of arrays in C order: (a b^T)^T = (b^T)^T a^T.
    return blas.dgemm(1.0, b.T, a.T, trans_a=1).T
