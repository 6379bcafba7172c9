"""A quantity that is zero from capacity on, such as the training error."""

import numpy as np

from ggdln.study.conditions._capacity import Onset


class ZeroAfter(Onset):
    """Zero from capacity on and not before."""

    where = "from capacity on and not before"

    def expected(self, x, critical):
        return x > critical

    def change(self, x, zero):
        return x[x > x[~zero].max(initial=-np.inf)].min(initial=np.inf)
