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

    networks: parameters L, N, sigma, T of each inner point; observables: names; runs: the range of runs of this job, for a
    method that splits them over jobs; machine: device, memory_mb and checkpoint_seconds; state: a folder for checkpoints.
    """

    sample: Sample
    networks: list
    observables: tuple
    seed: int
    draw: int
    runs: range = range(0)
    machine: dict = None
    state: Path = None

    def stream(self, method):
        """The seed of the random streams of a method, for this draw."""
        return seeds.entropy(self.seed, method, self.draw)


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
    needs: ClassVar[dict] = {"L": "at least 1 for a network that learns", "N": "a width"}
    """Parameters of the network that must be there and above 0, and what to say otherwise."""
    needs_labels: ClassVar[bool] = True
    costs: ClassVar[Costs] = Costs()
    variables: ClassVar[dict[str, Variable]] = {}

    draws: int | None = Field(
        None, ge=1, le=100_000, description="Draws of data and gates on which this method is run, if not all"
    )

    def settings(self):
        """What determines the numbers of one draw."""
        return self.model_dump(exclude={"draws"}, exclude_none=True)

    def measure(self, point):
        """Numbers and DataArrays by name, for each network of a `Point`."""
        raise NotImplementedError

    def combine(self, blocks, point):
        """The same from datasets over "run", one for each network of a `Point`; for methods that split their runs."""
        raise NotImplementedError

    def terms(self, sizes, M, network, runs):
        """Terms of the cost for one draw and network: `ggdln.tasks.Sizes`, gates, parameters, and runs where it splits them."""
        return Terms({"work": sizes.P**3 / 1e9}, {"work": 8 * sizes.P * (sizes.P + sizes.P_t) / 1e6})
