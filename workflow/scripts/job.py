"""What all scripts share: a log that keeps messages and tracebacks, and the provenance of what a job writes.

The code of a job is fingerprinted before the library is imported. If it has changed when the job ends, nobody can say which
version made the result, and the job fails: it would otherwise count as made by the new version.
"""

import faulthandler
import hashlib
import logging
import sys
import traceback
from contextlib import contextmanager
from pathlib import Path

import __main__


def fingerprint(files):
    """sha256 over the contents of the files."""
    return hashlib.sha256(b"".join(hashlib.sha256(Path(file).read_bytes()).digest() for file in files)).hexdigest()


CODE = list(__main__.snakemake.input.code)
CODE_AT_START = fingerprint(CODE)

# A job runs the library beside its script, whose modules are the inputs of its rule, and not one installed elsewhere.
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))

from ggdln.experiments import store
from ggdln.core.identity import identifier, task_id
from ggdln.tasks import unpack_task


@contextmanager
def log_to(path):
    """Send messages, warnings and tracebacks to the log of the job. Yields a function that writes one line."""
    handler = logging.FileHandler(path, mode="w")
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", "%H:%M:%S"))
    logger = logging.getLogger("ggdln")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logging.captureWarnings(True)
    logging.getLogger("py.warnings").addHandler(handler)
    faulthandler.enable(handler.stream)
    try:
        yield logger.info
        if fingerprint(CODE) != CODE_AT_START:
            raise RuntimeError("the code of this job was edited while it ran; its result is discarded, run the workflow again")
    except Exception as error:
        logger.error("%s", traceback.format_exc())
        sys.exit(f"{type(error).__name__}: {error}")


def provenance(snakemake, **more):
    """What determines the content of an output: the parameters of the job, their hash, and the seed."""
    parameters = dict(snakemake.params.items())
    return {"rule": snakemake.rule, "parameters": parameters, "config_hash": identifier("config", parameters)} | more


def span(text):
    """The range that a wildcard such as 0-5 stands for."""
    return range(*map(int, text.split("-")))


def read_tasks(files, tasks, seed):
    """Access to stored tasks: a function (draw, point) -> Task, where `tasks` has the parameters at each point."""
    stored = {Path(file).parent.name: store.read(file) for file in files}
    sources = {dataset.attrs["data_source"] for dataset in stored.values()}

    def task_of(draw, point):
        return unpack_task(stored[task_id(tasks[point], seed)], draw)

    return task_of, "; ".join(sorted(sources))
