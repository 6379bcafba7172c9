"""What methods that train networks share: blocks of runs, and statistics over all of them."""

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from ggdln.core.kinds import Costs, Terms, Variable
from ggdln.experiments.methods import ERRORS, RUNS, Method, over_runs
from ggdln.networks import variables as simulated
from ggdln.networks.settings import Network, floats_per_run, pass_count, weight_count
from ggdln.networks.status import CONVERGED, FLOOR
from ggdln.observables import ReadoutSolution, observe
from ggdln.observables.predictor import Predictor

ITEMSIZE = {"float32": 4, "float64": 8}


class Trained(Method):
    """Networks trained from different initial weights."""

    ignores: ClassVar[tuple] = ("T",)
    simulates: ClassVar[bool] = True
    split: ClassVar[str] = "runs"
    several_outputs: ClassVar[bool] = True
    offers: ClassVar[tuple] = ("kernel", "order_parameters")
    costs: ClassVar[Costs] = Costs(
        {"kernels": 0.969, "passes": 1.53, "points": 0.002, "start": 2.67},
        {"inputs": 2.06, "networks": 1.04, "start": 316.0, "tests": 2.3},
    )
    variables: ClassVar[dict[str, Variable]] = {
        **RUNS,
        **ERRORS,
        **Predictor.variables,
        "runs_at_floor": Variable("runs that can't reach the stop rule and end at their least training error"),
        "steps": simulated.RUNS["steps"],
    }
    run_variables: ClassVar[dict[str, Variable]] = {
        name: simulated.RUNS[name] for name in ("prediction", "train_mse", "status", "U")
    }

    runs: int = Field(ge=2, le=100_000, description="Trained networks for each draw and point")
    tolerance: float = Field(1e-3, gt=0, le=1, description="Training stops when the mean squared training error is below this")
    dtype: Literal["float32", "float64"] = Field("float32", description="Precision")

    def train(self, point, i, network):
        """The dataset over runs of `train_ensemble` or `train_relu`, for network number `i` of a point."""
        raise NotImplementedError

    def measure(self, point):
        """Predictions of the runs of this job and, of gated networks, their readout statistics."""
        results = []
        for i, network in enumerate(point.networks):
            trained = self.train(point, i, network)
            kept = trained[["prediction", "train_mse", "steps", "status"]]
            kept["prediction"] = kept.prediction.astype(np.float32)
            result = dict(kept.data_vars)
            if self.gated:
                result["U"] = trained.U.rename(m="gate", n="gate2")
            results.append(result)
        return results

    def combine(self, blocks, point):
        """Statistics over runs. Those that diverged or didn't finish are left out and counted."""
        return [self._average(block, point, network) for block, network in zip(blocks, point.networks, strict=True)]

    def _average(self, trained, point, network):
        status, y_test = trained.status.values, point.sample.task.y_test
        # A block may be padded to the largest number of gates, test inputs or outputs in its file.
        predictions = trained.prediction.isel(dict(zip(("test", "output"), map(slice, y_test.shape), strict=False)))
        use = np.isin(status, (CONVERGED, FLOOR))
        result = {
            "training_error": trained.train_mse.values[use].mean() if use.any() else np.nan,
            "steps": trained.steps.values.mean(),
            "runs_used": int(use.sum()),
            "runs_failed": int((~use).sum()),
            "runs_at_floor": int((status == FLOOR).sum()),
            **over_runs(predictions.values, y_test, use),
        }
        if "U" in trained:
            own = slice(len(point.sample.gates))
            U = trained.U.isel(gate=own, gate2=own).values[use]
            solution = ReadoutSolution(U.mean(axis=0), network["sigma"], network["L"])
            result |= observe(point.observables, solution, point.sample, solution.offers)
        return result

    def terms(self, sizes, M, network, *, runs, memory_mb):
        shape = Network(network["N"], network.get("L", 1))
        itemsize = ITEMSIZE[self.dtype]
        numbers = itemsize * floats_per_run(sizes.P, sizes.N0, M, shape, sizes.C) / 1e6
        made_of = sizes.N0, M, shape, sizes.C
        passes = pass_count(sizes.P, *made_of) if self.gated else sizes.P * weight_count(*made_of)
        tests = itemsize * sizes.P_t * shape.width * (M if shape.depth > 1 else 1) / 1e6
        return Terms(
            {
                "kernels": runs * sizes.pairs**2 * (sizes.pairs + shape.depth * shape.width) / 1e9,
                "passes": runs * passes / 1e9,
            },
            {"networks": numbers, "tests": tests},
        )
