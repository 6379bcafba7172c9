"""What methods that sample the posterior share: chains, their diagnostics, and statistics over them."""

from typing import ClassVar

from pydantic import Field

from ggdln.core.kinds import Terms, Variable
from ggdln.experiments.methods import ERRORS, RUNS, Method, over_runs
from ggdln.networks.settings import Network, Sampling, floats_per_run
from ggdln.observables import ReadoutSolution, observe
from ggdln.observables.predictor import Predictor


class Sampled(Method):
    """Chains of samples of the posterior."""

    simulates: ClassVar[bool] = True
    itemsize: ClassVar[int] = 8
    several_outputs: ClassVar[bool] = True
    offers: ClassVar[tuple] = ("kernel", "order_parameters")
    needs: ClassVar[dict] = Method.needs | {"T": "a temperature above 0"}
    variables: ClassVar[dict[str, Variable]] = {
        **RUNS,
        **ERRORS,
        **Predictor.variables,
        "largest_rhat": Variable("largest R-hat of test predictions and of tr U"),
        "least_ess": Variable("smallest effective sample size of test predictions and of tr U"),
        "mixed": Variable("chains have mixed: R-hat at most 1.05 and effective sample size at least 100"),
    }

    chains: int = Field(ge=2, le=100_000, description="Independent chains for each draw and point")
    warmup: int = Field(ge=1, le=100_000_000, description="Steps or sweeps of each chain before samples are kept")
    samples: int = Field(200, ge=4, le=1_000_000, description="Samples kept of each chain")
    thin: int = Field(1, ge=1, le=1_000_000, description="Steps or sweeps between samples")
    rounds: int = Field(
        1, ge=1, le=1000, description="Most rounds of so many samples; the next is made if chains haven't mixed"
    )

    def sample(self, arrays, **settings):
        """The dataset of a sampler of `ggdln.networks`, for x, gates, y, x_test, gates_test and its keywords."""
        raise NotImplementedError

    def measure(self, point):
        sample, results = point.sample, []
        task = sample.task
        for i, network in enumerate(point.networks):
            chains = self.sample(
                (task.x, sample.g, task.y, task.x_test, sample.g_test),
                width=network["N"],
                depth=network["L"],
                sigma=network["sigma"],
                temperature=network["T"],
                seed=point.stream(self.kind_name()),
                sampling=Sampling(self.chains, self.samples, self.warmup, self.thin, self.rounds),
                runtime=point.runtime(i),
            )
            use = (chains.status == 0).values
            solution = ReadoutSolution(chains.U.values[use].mean(axis=0), network["sigma"], network["L"])
            results.append(
                {
                    "training_error": float(chains.train_mse.values[use].mean()),
                    "runs_used": int(use.sum()),
                    "runs_failed": int((~use).sum()),
                    "largest_rhat": chains.attrs["largest_rhat"],
                    "least_ess": chains.attrs["least_ess"],
                    "mixed": bool(chains.attrs["mixed"]),
                    **over_runs(chains.prediction.values, task.y_test, use),
                    **observe(point.observables, solution, sample, solution.offers),
                }
            )
        return results

    def work(self, sweeps, sizes, M, network):
        """Terms of the work of so many sweeps, for `ggdln.tasks.Sizes`, M gates and a `Network`."""
        raise NotImplementedError

    def terms(self, sizes, M, network, *, runs, memory_mb):
        shape = Network(network["N"], network.get("L", 1))
        sweeps = self.chains * (self.warmup + self.samples * self.thin)
        megabytes = self.itemsize * floats_per_run(sizes.P, sizes.N0, M, shape, sizes.C) / 1e6
        at_once = min(self.chains, max(1, int(memory_mb / megabytes)))
        kept = 8 * self.chains * self.samples * self.rounds * sizes.P_t * sizes.C / 1e6
        return Terms(self.work(sweeps, sizes, M, shape), {"networks": at_once * megabytes, "samples": kept})
