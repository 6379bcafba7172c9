"""How a method is applied to the draws and points of a job."""

import shutil
from contextlib import contextmanager
from pathlib import Path

from job import CODE_AT_START, provenance, read_tasks

from ggdln.experiments import store
from ggdln.experiments.experiment import Chunk, Curve, run_chunk
from ggdln.gates import unpack_gates


def run_method(snakemake, measure, log):
    """Apply a method to the chunk of a job and write the result."""
    curve = Curve(**snakemake.params.curve)
    chunk = Chunk(*map(int, snakemake.wildcards.draws.split("-")), *map(int, snakemake.wildcards.points.split("-")))
    task_of, source = read_tasks(snakemake.input.tasks, [point["task"] for point in curve.outer_points()], curve.seed)
    gates = store.read(snakemake.input.gates)
    log(f"{curve}")
    result = run_chunk(curve, chunk, task_of, lambda draw, point: unpack_gates(gates, draw, point), measure, log)
    store.write(result, snakemake.output[0], provenance=provenance(snakemake, seed=curve.seed, data_source=source))


@contextmanager
def resumable(snakemake):
    """A folder for the state of a job, outside its outputs; it goes when the job has written them.

    Its name contains the version of the code, so that a state is never carried on by another one.
    """
    folder = Path("results/state", *Path(snakemake.output[0]).with_suffix("").parts[1:])
    yield folder / CODE_AT_START[:10]
    shutil.rmtree(folder, ignore_errors=True)
