"""What all scripts share: a log that keeps messages and tracebacks, the code of the job, and the provenance of what it writes.

The code of a job is fingerprinted before the library is imported, and again when the job ends. If it isn't what the workflow
planned with, nobody can say which version made the result, and the job fails: it would otherwise count as made by the new one.
"""

import faulthandler
import logging
import shutil
import sys
import traceback
from contextlib import contextmanager
from pathlib import Path

import __main__

ROOT = Path(__file__).resolve().parents[2]
# A job runs the library beside its script, whose modules are in its fingerprint, and not one installed elsewhere.
sys.path.insert(0, str(ROOT / "src"))

from ggdln.core import code

code.recall(code.RECORD)
CODE, FINGERPRINT = dict(__main__.snakemake.params.programs), __main__.snakemake.params.code


def check_code():
    """Raise an error if the code of this job is not what the workflow planned with."""
    code.forget()
    programs, own = ([ROOT / path for path in CODE[name]] for name in ("programs", "own"))
    found = code.of_job(programs, [ROOT / "src", ROOT / "workflow/scripts"], own=own, words=CODE["words"])
    if found != FINGERPRINT:
        raise RuntimeError(
            "the code of this job was edited after the run began; its result is discarded, run the workflow again"
        )


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
        check_code()
        from ggdln.core.kinds import add_file

        for file in CODE["kinds"]:
            add_file(ROOT / file)
        yield logger.info
        check_code()
    except Exception as error:
        logger.error("%s", traceback.format_exc())
        sys.exit(f"{type(error).__name__}: {error}")


def provenance(snakemake, **more):
    """What determines the content of an output: the parameters of the job, their hash, and the seed."""
    from ggdln.core.identity import identifier

    parameters = snakemake.params.spec
    return {"rule": snakemake.rule, "parameters": parameters, "config_hash": identifier("config", parameters)} | more


def span(text):
    """The range that a wildcard such as 0-5 stands for."""
    return range(*map(int, text.split("-")))


@contextmanager
def resumable(snakemake):
    """A folder for the state of a job, outside its outputs; it goes when the job has written them.

    Its name contains the version of the code, so that a state is never carried on by another one.
    """
    folder = Path("results/state", *Path(snakemake.output[0]).with_suffix("").parts[1:])
    yield folder / FINGERPRINT[:10]
    shutil.rmtree(folder, ignore_errors=True)


class Samples:
    """Access to stored tasks and gates. points: parameters at each point; tasks: the identifier of the task at each."""

    def __init__(self, inputs, points, tasks):
        from ggdln.experiments import store

        self.points, self.tasks = points, tasks
        self.stored = {}
        for file in inputs.tasks:
            self.stored.setdefault(Path(file).parent.name, []).append(store.read(file))
        self.gates = [store.read(file) for file in inputs.get("gates", [])]
        self.source = "; ".join(sorted({part.attrs["data_source"] for parts in self.stored.values() for part in parts}))

    def task(self, draw, point):
        from ggdln.experiments.packing import unpack_task

        return unpack_task(_holding(self.stored[self.tasks[point]], draw), draw)

    def sample(self, draw, point):
        """The `Sample` of a draw and a point; its gates are None for a method that has none."""
        from ggdln.experiments.packing import unpack_gates
        from ggdln.observables import Sample

        spec = self.points[point].get("gates")
        gates = unpack_gates(_holding(self.gates, draw), draw, point, spec) if spec else None
        return Sample(self.task(draw, point), gates)


def _holding(datasets, draw):
    """The dataset that has a draw."""
    return next(dataset for dataset in datasets if draw in dataset.draw)
