"""Methods: what is computed for each draw and point of an experiment. Each module without an underscore is one."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from pydantic import Field

from ggdln.core import seeds
from ggdln.core.kinds import Costs, Kind, Look, Terms, Variable
from ggdln.observables import Sample


@dataclass(frozen=True)
class Point:
    """What a method gets: one draw of the data and gates at one outer point, and the networks to be measured there.

    networks: parameters L, N, sigma, T of each inner point; observables: names; index: that of the outer point; runs: the
    range of runs of this job, for a method that splits them over jobs; machine: device, memory_mb and checkpoint_seconds;
    state: path of this point's checkpoints, to which the number of the network is added.
    """

    sample: Sample
    networks: list
    observables: tuple
    seed: int
    draw: int = 0
    index: int = 0
    runs: range = range(0)
    machine: dict = None
    state: Path = None

    def stream(self, method):
        """The seed of the random streams of a method, for this draw."""
        return seeds.entropy(self.seed, method, self.draw)

    def runtime(self, i, dtype=None):
        """Where the network number `i` is simulated, a `ggdln.networks.settings.Runtime`."""
        from ggdln.networks.settings import Runtime

        checkpoint = None if self.state is None else self.state.with_name(f"{self.state.name}_{i}.npz")
        return Runtime(dtype=dtype, checkpoint=checkpoint, **(self.machine or {}))


class Method(Kind):
    """A kind of calculation; fields are its settings."""

    sort: ClassVar[str] = "method"
    look: ClassVar[Look] = Look("", "red", marker="o")
    ignores: ClassVar[tuple] = ()
    """Parameters of the network on which it doesn't depend; an axis over one of them is dropped."""
    gated: ClassVar[bool] = True
    """Whether it depends on the gates."""
    simulates: ClassVar[bool] = False
    """Whether it runs on a device, in a job that saves its state."""
    split: ClassVar[str] = ""
    """The setting that counts independent runs, which are split over jobs and put together by `combine`."""
    needs: ClassVar[dict] = {"L": "at least 1, for a network that learns", "N": "a width"}
    """Parameters of the network that must be there and above 0, and what to say otherwise."""
    needs_labels: ClassVar[bool] = True
    several_outputs: ClassVar[bool] = False
    """Whether it can take several labels for each input."""
    offers: ClassVar[tuple | None] = None
    """What its solutions offer to observables at most; None if that isn't known beforehand."""
    costs: ClassVar[Costs] = Costs()
    variables: ClassVar[dict[str, Variable]] = {}
    """What its curves hold besides observables."""
    run_variables: ClassVar[dict[str, Variable]] = {}
    """What files of single runs hold, where they are split over jobs."""

    draws: int | None = Field(
        None, ge=1, le=100_000, description="Draws of data and gates on which this method is run, if not all"
    )
    at: dict[str, list] | None = Field(
        None, min_length=1, description="Values of swept parameters at which this method is run, if not all, by axis"
    )

    def settings(self):
        """What determines the numbers of one draw and point."""
        return self.model_dump(exclude={"draws", "at"}, exclude_none=True)

    def measure(self, point):
        """Numbers and DataArrays by name, for each network of a `Point`."""
        raise NotImplementedError

    def combine(self, blocks, point):
        """The same from datasets over "run", one for each network of a `Point`; for methods that split their runs."""
        raise NotImplementedError

    def terms(self, sizes, M, network, *, runs, memory_mb):
        """Terms of the cost for one draw and network.

        sizes: `ggdln.tasks.Sizes`; M: number of gates; network: its parameters; runs: how many, where they are split over
        jobs; memory_mb: for networks that are simulated at once.
        """
        return Terms({"work": sizes.P**3 / 1e9}, {"work": 8 * sizes.P * (sizes.P + sizes.P_t) / 1e6})


ERRORS = {
    f"{name}_error": Variable(f"standard error of the {name.replace('_', ' ')} over runs")
    for name in ("bias", "variance", "generalization_error", "error_rate")
}
RUNS = {
    "training_error": Variable("training error", "epsilon_t", "mean over training inputs of (<f(x)> - Y)^2"),
    "runs_used": Variable("runs or chains in the averages"),
    "runs_failed": Variable("runs or chains left out because they diverged or didn't finish"),
}


def over_runs(predictions, y_test, use):
    """Bias, variance and errors with their errors over the runs or chains in `use`; NaN if those are fewer than two."""
    import numpy as np

    from ggdln.theory.ensemble import ensemble_statistics

    names = [name for error in ERRORS for name in (error.removesuffix("_error"), error)]
    if use.sum() < 2:
        return dict.fromkeys(names, np.nan)
    found = ensemble_statistics(predictions.astype(np.float64), y_test, use=use)
    return {name: found[name] for name in names}
