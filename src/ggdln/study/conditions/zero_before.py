"""A quantity that is zero up to capacity, such as the variance."""

import numpy as np

from ggdln.study.conditions._capacity import Onset


class ZeroBefore(Onset):
    """Zero up to capacity and not beyond."""

    where = "up to capacity and not beyond"

    def expected(self, x, critical):
        return x < critical

    def change(self, x, zero):
        return x[~zero].min(initial=np.inf)
