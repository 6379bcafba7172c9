"""Put the blocks of runs of a method together, for some points of a sweep and a block of draws."""

from job import Samples, log_to, provenance, span


def main(snakemake, log):
    from ggdln.experiments import store
    from ggdln.experiments.experiment import Piece, concat, measure_piece

    spec = snakemake.params.spec
    piece = Piece(**spec["piece"])
    runs = {}
    for file in snakemake.input.runs:
        part = store.read(file)
        runs.setdefault(int(part.draw[0]), []).append(part)
    rows = [concat(blocks, "run").sortby("run") for blocks in runs.values()]
    total = piece.settings[piece.kind().split]
    stored = concat(rows, "draw").isel(run=slice(total))
    samples = Samples(snakemake.input, piece.points, spec["tasks"])
    n = len(piece.networks)

    def combine(point):
        blocks = [stored.sel(draw=point.draw, point=point.index * n + i) for i in range(n)]
        return piece.kind().combine(blocks, point)

    result = measure_piece(piece, span(snakemake.wildcards.draws), samples.sample, combine, report=log)
    store.write(result, snakemake.output[0], provenance=provenance(snakemake, seed=piece.seed, data_source=samples.source))


if __name__ == "__main__":
    with log_to(snakemake.log[0]) as log:
        main(snakemake, log)
