"""What a reader must know of a point: which points have it, and the ring that shows it in a figure."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Caveat:
    """Told by a variable of a dataset, of whose values `bad` says which are; its ring has a colour and a size in points."""

    variable: str
    bad: Callable
    color: str
    size: float

    def flag(self, dataset):
        """Which points of a dataset have it, over the dimensions of its variable; None if the dataset doesn't say."""
        return self.bad(dataset[self.variable]) if self.variable in dataset else None


CAVEATS = {
    "runs failed": Caveat("runs_failed", lambda runs: runs > 0, "red", 8),
    "not mixed": Caveat("mixed", lambda mixed: mixed == 0, "grey", 6.5),
    "1/N correction in doubt": Caveat("trusted", lambda trusted: trusted == 0, "grey", 6.5),
    "at training floor": Caveat("runs_at_floor", lambda runs: runs > 0, "ink", 5.5),
}
