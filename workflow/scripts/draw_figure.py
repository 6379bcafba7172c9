"""Draw a figure from its numbers, as PDF and PNG."""

from job import log_to


def main(snakemake, log):
    from ggdln.experiments import store
    from ggdln.study import style
    from ggdln.study.compose import Figure, compose

    data = store.groups(snakemake.input.data[0])
    log(f"groups: {', '.join(data)}")
    spec = snakemake.params.spec
    layout = Figure.make(spec["figure"])
    drawn = compose(layout, data, spec["experiments"])
    about = {"title": snakemake.wildcards.figure, "caption": layout.caption, "keywords": ["ggdln", *spec["experiments"]]}
    style.save(drawn, snakemake.output.pdf, snakemake.output.png, **about)


if __name__ == "__main__":
    with log_to(snakemake.log[0]) as log:
        main(snakemake, log)
