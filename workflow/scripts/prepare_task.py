"""Make the inputs and labels of one task for a block of draws."""

from job import log_to, provenance, span


def main(snakemake, log):
    from ggdln.core.kinds import REGISTRIES
    from ggdln.experiments import store
    from ggdln.experiments.packing import pack_tasks
    from ggdln.tasks import make_task

    spec = snakemake.params.spec
    task, seed, digits = spec["task"], spec["seed"], None
    if "digits" in task:
        from ggdln.tasks._digits import load_digits

        digits = load_digits(task["digits"], **spec["digits"])
    source = digits.source if digits else REGISTRIES["task"].make(task).origin()
    log(f"{task} from {source}")
    tasks = {draw: make_task(task, seed=seed, draw=draw, digits=digits) for draw in span(snakemake.wildcards.draws)}
    store.write(pack_tasks(tasks), snakemake.output[0], provenance=provenance(snakemake, seed=seed, data_source=source))


if __name__ == "__main__":
    with log_to(snakemake.log[0]) as log:
        main(snakemake, log)
