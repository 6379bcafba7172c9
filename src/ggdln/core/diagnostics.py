"""Have the chains mixed? Rank-normalized split R-hat and bulk effective sample size, by ArviZ."""

import numpy as np


def rhat_and_ess(values):
    """R-hat and bulk effective sample size of values (chain, draw, ...), each (...).

    A constant has R-hat 1 and every draw counts. NaN where a chain has diverged, or where there are fewer than 4 draws.
    """
    from arviz_stats.base import array_stats

    values = np.asarray(values, dtype=np.float64)
    chains, draws, *shape = values.shape
    rhat, ess = np.full(shape, np.nan), np.full(shape, np.nan)
    if draws < 4:
        return rhat, ess
    finite = np.isfinite(values).all((0, 1))
    constant = finite & (values == values[0, 0]).all((0, 1))
    rhat[constant], ess[constant] = 1.0, chains * draws
    varying = finite & ~constant
    if varying.any():
        series = values[:, :, varying]
        if chains > 1:
            rhat[varying] = array_stats.rhat(series, chain_axis=0, draw_axis=1)
        ess[varying] = array_stats.ess(series, chain_axis=0, draw_axis=1)
    return rhat, ess
