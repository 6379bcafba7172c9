"""Apply a method to some points of a sweep, for a block of draws and, where it splits them, of runs."""

from job import Samples, log_to, provenance, resumable, span


def main(snakemake, log, state):
    from ggdln.experiments import store
    from ggdln.experiments.experiment import Piece, measure_piece

    spec = snakemake.params.spec
    piece = Piece(**spec["piece"])
    log(f"{piece}")
    runs = span(snakemake.wildcards.get("runs", "0-0"))
    samples = Samples(snakemake.input, piece.points, spec["tasks"])
    result = measure_piece(
        piece,
        span(snakemake.wildcards.draws),
        samples.sample,
        piece.kind(len(runs)).measure,
        report=log,
        runs=runs,
        machine=spec.get("machine"),
        state=state,
    )
    store.write(result, snakemake.output[0], provenance=provenance(snakemake, seed=piece.seed, data_source=samples.source))


if __name__ == "__main__":
    with log_to(snakemake.log[0]) as log, resumable(snakemake) as state:
        main(snakemake, log, state)
