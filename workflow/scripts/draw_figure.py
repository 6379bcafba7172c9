"""Draw a figure from its numbers, as PDF and PNG."""

from job import log_to

from ggdln.experiments import store
from ggdln.study.figures import style
from ggdln.study.figures.compose import compose


def main(snakemake, log):
    data = store.groups(snakemake.input.data)
    log(f"groups: {', '.join(data)}")
    figure = compose(snakemake.params.layout, data, snakemake.params.experiments)
    style.save(figure, snakemake.output.pdf, snakemake.output.png)


if __name__ == "__main__":
    with log_to(snakemake.log[0]) as log:
        main(snakemake, log)
