"""Have the chains mixed? Rank-normalized split R-hat and bulk effective sample size, by ArviZ."""

import warnings

import numpy as np

with warnings.catch_warnings():
    warnings.simplefilter("ignore", FutureWarning)
    import arviz


def rhat_and_ess(values):
    """R-hat and bulk effective sample size of values (chain, draw, ...), each (...).

    A constant has R-hat 1 and every draw counts. NaN where a chain has diverged, or where there are fewer than 4 draws.
    """
    chains, draws = values.shape[:2]
    flat = values.reshape(chains, draws, -1)
    rhat, ess = np.full(flat.shape[2], np.nan), np.full(flat.shape[2], np.nan)
    for k in range(flat.shape[2]):
        series = np.asarray(flat[:, :, k], dtype=np.float64)
        if draws < 4 or not np.isfinite(series).all():
            continue
        if np.ptp(series) == 0:
            rhat[k], ess[k] = 1.0, chains * draws
            continue
        if chains > 1:
            rhat[k] = arviz.rhat(series)
        ess[k] = arviz.ess(series)
    return rhat.reshape(values.shape[2:]), ess.reshape(values.shape[2:])
