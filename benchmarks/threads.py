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
    "P = 2000": (2000, 20, 1, dict(width=1000.0, sigma=0.2, temperature=1e-3)),
    "P = 3000": (3000, 50, 1, dict(width=1000.0, sigma=0.2, temperature=1e-3)),
}
TOLD = """\
One and two threads in turn, on real digits, each in a process of its own whose OMP_NUM_THREADS says how many. Wall time, the
least of some repeats. A second thread needs a second core that nobody else uses: the last column says how many cores a process
had. Matrices of a side below 1500 are left to one thread, however many there are.
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
        found = {1: [], 2: []}
        for _ in range(arguments.repeats):
            for threads, runs in found.items():
                runs.append(apart(name, threads))
        one, two = (min(runs, key=lambda run: run["seconds"]) for runs in found.values())
        gain = one["seconds"] / two["seconds"]
        cells = [count, gates, depth, one["evaluations"], f"{one['seconds']:.3f}", f"{two['seconds']:.3f}", f"{gain:.2f}"]
        rows.append(f"| {' | '.join(map(str, cells))} | {one['used']:.2f} and {two['used']:.2f} |")
        print(rows[-1], flush=True)
    text = ["# Threads", "", TOLD]
    text += ["| P | M | L | evaluations | s, 1 thread | s, 2 threads | gain | cores used |", f"|{'--:|' * 8}", *rows, ""]
    (OUTPUT / "threads.md").write_text("\n".join(text))


if __name__ == "__main__":
    main()
