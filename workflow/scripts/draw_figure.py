"""Draw a figure from its numbers, as PDF and PNG."""

from job import log_to


def main(snakemake, log):
    from ggdln.experiments import store
    from ggdln.study import style
    from ggdln.study.compose import Figure, compose

    data = store.groups(snakemake.input.data[0])
    log(f"groups: {', '.join(data)}")
    spec = snakemake.params.spec
    style.save(compose(Figure.make(spec["figure"]), data, spec["experiments"]), snakemake.output.pdf, snakemake.output.png)


if __name__ == "__main__":
    with log_to(snakemake.log[0]) as log:
        main(snakemake, log)
