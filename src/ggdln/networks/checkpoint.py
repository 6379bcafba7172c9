"""The state of a long calculation in one file, so that a killed one goes on where it stopped.

A checkpoint is an .npz of plain arrays (never pickled), tagged with a digest of the arguments. It is written under a
temporary name and renamed, so a file under the final name is whole. A file that cannot be read, or belongs to other
arguments, is ignored with a warning. The last state of a finished calculation is kept: whoever has stored the result
deletes the file.
"""

import hashlib
import json
import logging
import os
import time
import warnings
from pathlib import Path

import numpy as np

logger = logging.getLogger(__name__)
FORMAT = 2


class Checkpoint:
    """`path` None switches everything off. `arguments`: whatever determines the result, arrays or JSON values."""

    def __init__(self, path, arguments, *, seconds):
        self.path = None if path is None else Path(path)
        self.seconds, self.saved_at = seconds, time.monotonic()
        self.key = digest(arguments) if self.path is not None else None

    def load(self):
        """The saved arrays by name, or None if there are none to go on from."""
        if self.path is None or not self.path.exists():
            return None
        try:
            # Opened here, since numpy leaves a file open that turns out to be truncated.
            with open(self.path, "rb") as file, np.load(file, allow_pickle=False) as arrays:
                state = {name: arrays[name] for name in arrays.files}
            key = str(state.pop("key"))
        except Exception as error:  # a damaged file makes the reader raise all sorts
            self._ignore(f"cannot be read ({error})")
            return None
        if key != self.key:
            self._ignore("belongs to a calculation with other arguments")
            return None
        logger.info("going on from checkpoint %s", self.path)
        return state

    def _ignore(self, reason):
        warnings.warn(f"checkpoint {self.path} {reason}; starting afresh", RuntimeWarning, stacklevel=6)

    def due(self):
        return self.path is not None and time.monotonic() - self.saved_at >= self.seconds

    def save(self, state):
        """Write the arrays of `state`, replacing the earlier ones."""
        if self.path is None:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        temporary = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        try:
            with open(temporary, "wb") as file:
                np.savez(file, key=np.array(self.key), **state)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, self.path)
        finally:
            temporary.unlink(missing_ok=True)
        self.saved_at = time.monotonic()


def digest(arguments):
    """A hexadecimal digest of a dict of arrays and JSON values."""
    result = hashlib.sha256(f"format {FORMAT}".encode())
    for name in sorted(arguments):
        value = arguments[name]
        if isinstance(value, np.ndarray):
            result.update(f"{name} {value.dtype} {value.shape}".encode() + np.ascontiguousarray(value).tobytes())
        else:
            result.update(f"{name} {json.dumps(value)}".encode())
    return result.hexdigest()
