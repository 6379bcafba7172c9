"""Statistics over trained networks."""

import numpy as np

from ggdln.networks.ensemble import ensemble_statistics
from ggdln.networks.status import CONVERGED, FLOOR
from ggdln.experiments.methods.readout import readout_observables

STATISTICS = ("bias", "variance", "generalization_error", "error_rate")
ERRORS = tuple(f"{name}_error" for name in STATISTICS)


def over_runs(predictions, y_test, use):
    """Statistics with their errors over the runs or chains in `use`; NaN if those are fewer than two."""
    if use.sum() < 2:
        return dict.fromkeys(STATISTICS + ERRORS, np.nan)
    found = ensemble_statistics(predictions.astype(np.float64), y_test, use=use)
    return {name: found[name] for name in STATISTICS + ERRORS}


def average(curve, trained, task, gates):
    """Statistics over runs at one draw and point, from the dataset `trained` over runs.

    Runs that diverged or didn't finish are left out and counted.
    """
    use = np.isin(trained.status.values, (CONVERGED, FLOOR))
    result = {
        "training_error": trained.train_mse.values[use].mean() if use.any() else np.nan,
        "steps": trained.steps.values.mean(),
        "runs_used": int(use.sum()),
        "runs_failed": int((~use).sum()),
        "runs_at_floor": int((trained.status.values == FLOOR).sum()),
    }
    result |= over_runs(trained.prediction.values, task.y_test, use)
    if "U" in trained:
        result |= readout_observables(curve, trained.U.values[use].mean(axis=0), task, gates)
    return result
