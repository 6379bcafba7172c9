"""Have the chains mixed? Rank-normalized split R-hat and bulk effective sample size.

As Vehtari et al. (Bayesian Analysis 16, 667, 2021) define them and ArviZ computes them, for many quantities at once:
one by one, predictions at a thousand inputs took longer than to sample many a chain.
"""

import numpy as np
from scipy import fft, special


def rhat_and_ess(values):
    """R-hat and bulk effective sample size of values (chain, draw, ...), each (...).

    A constant has R-hat 1 and every draw counts. NaN where a chain has diverged, or where there are fewer than 4 draws; and
    there is no R-hat of a single chain.
    """
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
        halves = _split(values[:, :, varying])
        normal = _normalized(halves)
        if chains > 1:
            # Two values alone are equally far from a median between them, which says nothing.
            folded = _normalized(np.abs(halves - np.median(halves, axis=(0, 1))))
            with np.errstate(divide="ignore", invalid="ignore"):
                rhat[varying] = np.fmax(_rhat(normal), _rhat(folded))
        ess[varying] = _ess(normal)
    return rhat, ess


def _split(series):
    """The first and the second half of each chain as chains of their own: (2 chain, draw / 2, n)."""
    half = series.shape[1] // 2
    return np.concatenate([series[:, :half], series[:, -half:]])


def _normalized(series):
    """The quantiles of a normal distribution that have the ranks of the values among all chains: (chain, draw, n)."""
    from scipy.stats import rankdata  # a slow import

    chains, draws, count = series.shape
    ranks = rankdata(series.reshape(-1, count), axis=0)
    return special.ndtri((ranks - 3 / 8) / (len(ranks) + 1 / 4)).reshape(chains, draws, count)


def _rhat(series):
    draws = series.shape[1]
    between, within = series.mean(1).var(0, ddof=1), series.var(1, ddof=1).mean(0)
    return np.sqrt(between / within + (draws - 1) / draws)


def _ess(series):
    """By Geyer's initial monotone sequence of the autocorrelations, of which neighbours, at even and odd lags, make pairs."""
    chains, draws, _ = series.shape
    covariance = _autocovariance(series).mean(0)
    within = covariance[0] * draws / (draws - 1)
    total = covariance[0] + (series.mean(1).var(0, ddof=1) if chains > 1 else 0.0)
    correlation = 1 - (within - covariance) / total
    correlation[0] = 1.0
    even, odd = correlation[: draws - draws % 2 : 2], correlation[1::2]
    # The pairs that are looked at: up to the first that isn't positive.
    most = max(-((2 - draws) // 2) - 1, 0)
    pairs = (even + odd)[: most + 1]
    last = np.where((pairs <= 0).any(0), (pairs <= 0).argmax(0), most)
    before = np.arange(len(pairs))[:, None] < last
    here = np.arange(pairs.shape[1])
    rest = np.where((even[last, here] > 0) | (pairs[last, here] >= 0), even[last, here], 0.0)
    time = 2 * np.where(before, np.minimum.accumulate(pairs), 0.0).sum(0) + rest - 1
    return chains * draws / np.maximum(time, 1 / np.log10(chains * draws))


def _autocovariance(series):
    """Along the draws, at all lags: (chain, draw, n)."""
    draws = series.shape[1]
    size = fft.next_fast_len(2 * draws, real=True)
    waves = fft.rfft(series - series.mean(1, keepdims=True), size, axis=1)
    return fft.irfft(np.abs(waves) ** 2, size, axis=1)[:, :draws] / draws
