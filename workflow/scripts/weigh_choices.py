"""Put the paper's claims to every option of every choice that the paper leaves open."""

from pathlib import Path

from job import log_to


def main(snakemake, log):
    from ggdln.core.files import write_json
    from ggdln.experiments import store
    from ggdln.study.calibration import weigh

    spec = snakemake.params.spec
    data = {"/".join(Path(file).with_suffix("").parts[-2:]): store.read(file) for file in snakemake.input.get("curves", [])}
    found = []
    for name, choice in spec["choices"].items():
        found.append({"name": name} | weigh(choice, spec["tests"][name], data, spec["experiments"]))
        for option in found[-1]["options"]:
            log(f"{name}, {option['name']}: {option['held']} of {len(option['claims'])} hold, score {option['score']:.2f}")
    write_json(snakemake.output[0], found)


if __name__ == "__main__":
    with log_to(snakemake.log[0]) as log:
        main(snakemake, log)
