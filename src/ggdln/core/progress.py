"""How far a long calculation has come, how fast it goes and how long it will take: for the log, the terminal or a callback."""

import logging
import sys
import time

from ggdln.core.errors import InputError

logger = logging.getLogger("ggdln")


def reporter(name, value):
    """What an argument `name` accepts as the `report` of a `Progress`; False is None."""
    if not (value is None or isinstance(value, bool) or callable(value)):
        raise InputError(f"{name}: expected True or a function of (done, total, rate, seconds_left), got {value!r}")
    return None if value is False else value


class Progress:
    """A line at most every `interval` s, and one at the end.

    report: None for the log, True for the standard error stream, or a function report(done, total, rate, seconds_left) that is
    called in place of a line.
    """

    def __init__(self, label, unit, total, report=None, *, done=0, interval=5.0):
        self.label, self.unit, self.total, self.report, self.interval = label, unit, total, report, interval
        # the rate counts this session only, not what a checkpoint brought
        self.started_at, self.started_with = time.monotonic(), done
        self.reported_at = self.started_at

    def update(self, done):
        """Tell that so many are done, if it is time."""
        now = time.monotonic()
        if now - self.reported_at < self.interval and done < self.total:
            return
        self.reported_at = now
        rate = (done - self.started_with) / max(now - self.started_at, 1e-9)
        left = (self.total - done) / rate if rate > 0 else float("inf")
        if callable(self.report):
            self.report(done, self.total, rate, left)
        elif self.report:
            print(self.line(done, rate, left), file=sys.stderr, flush=True)
        else:
            logger.info("%s", self.line(done, rate, left))

    def line(self, done, rate, left):
        """What has been done, in words."""
        text = "unknown time" if left == float("inf") else f"{left:.0f} s"
        return f"{self.label}: {done} of {self.total} {self.unit}, {rate:.3g} per second, {text} left"
