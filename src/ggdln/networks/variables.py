"""What the datasets of simulations hold, in words; nothing here needs torch."""

from ggdln.core.variables import LABELS, NUMBER, SQUARES, Variable

RUNS = {
    "run": Variable("number of the run"),
    "prediction": Variable("predictions of trained networks at the test inputs", "f(x_t)", units=LABELS),
    "train_mse": Variable("training error of each network", "", "mean over training inputs of (f(x) - Y)^2", units=SQUARES),
    "steps": Variable("steps of the integrator", units=NUMBER),
    "status": Variable("how each run ended: 0 converged, 1 at its floor, 2 diverged, 3 unfinished"),
    "U": Variable("readout statistics of each network", "U", "sum_i a_mi a_ni / N", units=NUMBER),
}
"""Of trained networks."""

CHAINS = {
    "chain": Variable("number of the chain"),
    "prediction": Variable("predictions of sampled networks at the test inputs", "f(x_t)", units=LABELS),
    "train_mse": RUNS["train_mse"],
    "U": Variable("readout statistics, mean over the draws of a chain", "U", "<sum_i a_mi a_ni> / N", units=NUMBER),
    "U_trace": Variable("trace of the readout statistics", "tr U", units=NUMBER),
    "rhat": Variable("R-hat of each test prediction", units=NUMBER),
    "ess": Variable("effective sample size of each test prediction", units=NUMBER),
    "rhat_U": Variable("R-hat of tr U", units=NUMBER),
    "ess_U": Variable("effective sample size of tr U", units=NUMBER),
    "status": Variable("how each chain ended: 0 finished, 1 diverged"),
}
"""Of sampled networks."""
