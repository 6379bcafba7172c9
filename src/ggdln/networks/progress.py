"""How far a long calculation has come, how fast it goes and how long it will take, for the log or a callback."""

import logging
import time

logger = logging.getLogger("ggdln.networks")


class Progress:
    """Report at most every `interval` s. `callback(done, total, rate, seconds_left)` replaces the log if given."""

    def __init__(self, label, unit, total, callback, *, done=0, interval=5.0):
        self.label, self.unit, self.total, self.callback, self.interval = label, unit, total, callback, interval
        # the rate counts this session only, not what a checkpoint brought
        self.started_at, self.started_with = time.monotonic(), done
        self.reported_at = self.started_at

    def update(self, done):
        now = time.monotonic()
        if now - self.reported_at < self.interval and done < self.total:
            return
        self.reported_at = now
        rate = (done - self.started_with) / max(now - self.started_at, 1e-9)
        left = (self.total - done) / rate if rate > 0 else float("inf")
        if self.callback is not None:
            self.callback(done, self.total, rate, left)
        else:
            text = "unknown time" if left == float("inf") else f"{left:.0f} s"
            counts = self.label, done, self.total, self.unit
            logger.info("%s: %d of %d %s, %.3g per second, %s left", *counts, rate, text)
