"""Threads for large matrices, one thread for small ones.

The wheels of numpy and scipy bring an OpenBLAS each, whose threads spin for a tenth of a second after every call. Used in turn
they take the cores from each other and from all else, and two threads are slower than one. So factorizations of large matrices
go through scipy's, with all the threads that it may use, while numpy's has one; what is done entry by entry goes by panels that
threads of Python share. Below a size at which threads pay, all have one.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache

from threadpoolctl import ThreadpoolController

# What scipy's BLAS reads when it is loaded, if that is here: threads that wait spin for 2^20 cycles, less than a millisecond.
SPIN = "OPENBLAS_THREAD_TIMEOUT"
given = SPIN in os.environ
os.environ.setdefault(SPIN, "20")

from scipy.linalg import blas

if not given:
    del os.environ[SPIN]

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


def shared(work, parts):
    """[work(part) for part in parts], by as many threads as large matrices get. Products of numpy's have one thread in each."""
    small, large = _libraries() if len(parts) > 1 else ((), ())
    threads = large[0].get_num_threads() if small else 1
    if threads < 2:
        return [work(part) for part in parts]
    with threads_for(LARGE):
        return list(_pool(threads).map(work, parts))


@cache
def _pool(threads):
    """Threads that stay, since new ones begin with memory that they have not touched yet."""
    return ThreadPoolExecutor(threads)


# A process that forks has none of them.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)


def outer(a, b):
    """a b^T for a (n, k) and b (m, k), in C order: (n, m)."""
    # BLAS sees the transposes of arrays in C order: (a b^T)^T = (b^T)^T a^T.
    return blas.dgemm(1.0, b.T, a.T, trans_a=1).T
