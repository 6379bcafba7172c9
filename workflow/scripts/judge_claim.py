"""Judge one claim from the curves that it looks at, those of its control and its variants."""

from pathlib import Path

from job import log_to


def main(snakemake, log):
    from ggdln.core.files import write_json
    from ggdln.experiments import store
    from ggdln.study.claims import judge

    spec = snakemake.params.spec
    data = {"/".join(Path(file).with_suffix("").parts[-2:]): store.read(file) for file in snakemake.input.curves}
    verdict = {"id": spec["id"]} | judge(spec["claim"], data, spec["experiments"])
    log(f"{verdict['outcome']}: {verdict['holds']} of {verdict['draws']} draws; control: {verdict['control']}")
    write_json(snakemake.output[0], verdict)


if __name__ == "__main__":
    with log_to(snakemake.log[0]) as log:
        main(snakemake, log)
