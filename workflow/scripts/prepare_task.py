"""Make the inputs and labels of one task for a batch of draws."""

from job import log_to, provenance, span

from ggdln.experiments import store
from ggdln.tasks import pack_tasks
from ggdln.tasks.make import make_task


def main(snakemake, log):
    task = dict(snakemake.params.task)
    seed, digits, source = snakemake.params.seed, None, "generated"
    if task.pop("digits", None):
        from ggdln.tasks.digits import load_digits

        digits = load_digits(**snakemake.params.digits)
        source = digits.source
    log(f"{task} from {source}")
    tasks = {draw: make_task(task, seed=seed, draw=draw, digits=digits) for draw in span(snakemake.wildcards.draws)}
    store.write(pack_tasks(tasks), snakemake.output[0], provenance=provenance(snakemake, seed=seed, data_source=source))


if __name__ == "__main__":
    with log_to(snakemake.log[0]) as log:
        main(snakemake, log)
