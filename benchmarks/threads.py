"""What a second thread is worth to `ggdln.solve`, for small and for large training sets.

    python benchmarks/threads.py [--repeats 3]

Writes docs/benchmarks/threads.md.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

OUTPUT = Path(__file__).resolve().parent.parent / "docs" / "benchmarks"

CASES = {
    # P, M and L, and the network
    "small": (300, 20, 1, dict(width=200.0, temperature=1e-3)),
    "deep": (500, 6, 3, dict(width=500.0, temperature=1e-3)),
    "L = 8": (490, 6, 8, dict(width=500.0)),
    "L = 12": (490, 6, 12, dict(width=500.0)),
    "P = 2000": (2000, 20, 1, dict(width=1000.0, sigma=0.2, temperature=1e-3)),
    "P = 2000, M = 50": (2000, 50, 1, dict(width=200.0, sigma=0.2, temperature=1e-3)),
    "P = 3000": (3000, 50, 1, dict(width=1000.0, sigma=0.2, temperature=1e-3)),
}
THREADS = sorted({1, 2, os.cpu_count() or 1})
TOLD = """\
One thread, two, and as many as there are cores, in turn, on real digits, each in a process of its own whose OMP_NUM_THREADS
says how many. Wall time, the least of some repeats. A second thread needs a second core that nobody else uses: the last column
says how many cores a process had. Matrices of a side below 1500 are left to one thread, however many there are. For the larger
ones the last rows have the gain of what a solve mostly does, in the same run: a Cholesky factorization and the inverse by it.
"""

LEAST = 0.5
"""Seconds that a case is repeated for within a process."""


def measure(name):
    """Seconds of a solution, its evaluations, and CPU seconds for each second: the share of cores that was had."""
    from theory import digits, permuted_task, plain_task

    from ggdln.theory.solution import solve

    count, gates, depth, network = CASES[name]
    pool = digits()
    data = plain_task(pool, count, gates) if count < 1000 else permuted_task(pool, count, gates, -1.0)
    times, begin, cpu = [], time.perf_counter(), time.process_time()
    while sum(times) < LEAST:
        start = time.perf_counter()
        solution = solve(*data, depth=depth, **network)
        times.append(time.perf_counter() - start)
    used = (time.process_time() - cpu) / (time.perf_counter() - begin)
    return dict(seconds=min(times), evaluations=solution.evaluations, used=used)


def floor(side, threads, repeats=5):
    """Seconds of one Cholesky factorization and inverse."""
    import numpy as np
    from scipy.linalg import lapack
    from threadpoolctl import threadpool_limits

    k, times = np.asfortranarray(np.eye(side) + 1 / (1 + np.abs(np.subtract.outer(np.arange(side), np.arange(side))))), []
    with threadpool_limits(threads):
        for _ in range(repeats):
            start = time.perf_counter()
            lapack.dpotri(lapack.dpotrf(k, lower=1)[0], lower=1, overwrite_c=1)
            times.append(time.perf_counter() - start)
    return min(times)


def apart(name, threads):
    """The same in a process with so many threads."""
    environment = os.environ | {f"{library}_NUM_THREADS": str(threads) for library in ("OMP", "OPENBLAS", "MKL")}
    command = [sys.executable, __file__, "--case", name]
    return json.loads(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--case", choices=CASES, help="measure this one here, and print it")
    arguments = parser.parse_args()
    if arguments.case:
        print(json.dumps(measure(arguments.case)))
        return
    rows = []
    for name, (count, gates, depth, _) in CASES.items():
        found = {threads: [] for threads in THREADS}
        for _ in range(arguments.repeats):
            for threads, runs in found.items():
                runs.append(apart(name, threads))
        best = {threads: min(runs, key=lambda run: run["seconds"]) for threads, runs in found.items()}
        seconds = [run["seconds"] for run in best.values()]
        cells = [count, gates, depth, best[1]["evaluations"], *(f"{s:.3f}" for s in seconds)]
        cells += [f"{seconds[0] / s:.2f}" for s in seconds[1:]]
        cells.append(" and ".join(f"{run['used']:.2f}" for run in best.values()))
        rows.append(f"| {' | '.join(map(str, cells))} |")
        print(rows[-1], flush=True)
    for side in (2000, 3000):
        seconds = [floor(side, threads) for threads in THREADS]
        gains = [f"{seconds[0] / s:.2f}" for s in seconds[1:]]
        cells = [side, "", "factor and inverse", "", *(f"{s:.3f}" for s in seconds), *gains, ""]
        rows.append(f"| {' | '.join(map(str, cells))} |")
        print(rows[-1], flush=True)
    names = ["P", "M", "L", "evaluations", *(f"s, {n} thread{'s' * (n > 1)}" for n in THREADS)]
    names += [f"gain of {n}" for n in THREADS[1:]] + ["cores used"]
    text = ["# Threads", "", TOLD, f"| {' | '.join(names)} |", f"|{'--:|' * len(names)}", *rows, ""]
    (OUTPUT / "threads.md").write_text("\n".join(text))


if __name__ == "__main__":
    main()
