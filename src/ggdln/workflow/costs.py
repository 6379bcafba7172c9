"""What a job costs: core-seconds and peak memory, predicted from the sizes of its curve and chunk.

A prediction is a sum of terms. The amount of each follows from P, N_0, M, L, N and the numbers of draws, points, runs, chains
and sweeps; its coefficient is fitted to the benchmark files of the workflow by `benchmarks/resources.py`, which also compares
prediction and measurement. Amounts are in 10^9 multiplications (time) and 10^6 bytes (memory). No result depends on them.
"""

import math
from dataclasses import dataclass

SECONDS = {
    "average_runs": {"points": 0.002, "start": 1.1},
    "collect_figure": {"files": 0.017, "start": 1.36},
    "draw_figure": {"files": 0.0597, "start": 4.76},
    "fit_gates": {"clusters": 89.7, "points": 0.002, "start": 1.1},
    "judge_claim": {"files": 0.017, "start": 1.8},
    "prepare_task": {"digits": 0.889, "inputs": 0.01, "start": 1.04},
    "sample_chains": {"factors": 0.0244, "points": 0.0188, "products": 0.296, "start": 1.18, "steps": 0.144},
    "solve_gp": {"factors": 0.022, "kernels": 0.0814, "points": 0.00234, "start": 1.21},
    "solve_theory": {"factors": 0.255, "points": 0.0185, "powers": 18.0, "start": 1.41},
    "train_networks": {"kernels": 0.969, "passes": 1.53, "points": 0.002, "start": 2.67},
}
"""Core-seconds for a unit of each term, of one core of a 2026 server."""

MEGABYTES = {
    "average_runs": {"inputs": 2.16, "predictions": 1.0, "start": 122.0},
    "collect_figure": {"files": 0.357, "start": 98.1},
    "draw_figure": {"files": 0.288, "start": 185.0},
    "fit_gates": {"inputs": 1.2, "start": 106.0},
    "judge_claim": {"files": 0.357, "start": 150.0},
    "prepare_task": {"digits": 68.4, "inputs": 1.62, "permuted": 5.44, "start": 95.2},
    "sample_chains": {"inputs": 1.0, "networks": 1.0, "samples": 13.2, "start": 204.0},
    "solve_gp": {"inputs": 2.11, "kernels": 2.6, "start": 113.0},
    "solve_theory": {"inputs": 1.72, "kernels": 2.19, "powers": 60.1, "start": 145.0},
    "train_networks": {"inputs": 2.06, "networks": 1.04, "start": 316.0, "tests": 2.3},
}
"""Megabytes for a unit of each term."""

MEMORY_FACTOR, TIME_FACTOR = 2.0, 5.0
"""What is asked for, over what is predicted. Peaks fall between the looks that Snakemake takes at a job, the number of steps is
hard to foretell, and machines differ."""

SNAKEMAKE_MB = 400
"""For the two Snakemake processes that start a job on a cluster; they count towards its limit and take 150 MB each."""

LEAST_MINUTES = 15
ITEMSIZE = {"float32": 4, "float64": 8}


@dataclass(frozen=True)
class Cost:
    """Predicted core-seconds and peak memory of a job."""

    seconds: float
    megabytes: float

    def mem_mb(self, attempt=1):
        """Memory to ask for, in MB."""
        return attempt * math.ceil((MEMORY_FACTOR * self.megabytes + SNAKEMAKE_MB) / 100) * 100

    def runtime(self, attempt=1):
        """Time to ask for, in minutes."""
        return attempt * max(LEAST_MINUTES, math.ceil(TIME_FACTOR * self.seconds / 300) * 5)


@dataclass(frozen=True)
class Terms:
    """Amounts by term: `work` adds up over what a job does, of `memory` the largest counts."""

    work: dict
    memory: dict

    def cost(self, rule):
        seconds = sum(SECONDS[rule][term] * amount for term, amount in self.work.items())
        megabytes = sum(MEGABYTES[rule][term] * amount for term, amount in self.memory.items())
        return Cost(seconds, megabytes)


@dataclass(frozen=True)
class Sizes:
    """P training and P_t test inputs of dimension N_0 in one draw, and M gates."""

    P: int
    P_t: int
    N0: int
    M: int = 1

    @classmethod
    def of(cls, task, gates=None):
        copies = task.get("permutations", 2 if task["kind"] == "mnist_conflicting" else 1)
        tests = task.get("P_t", task.get("n_angles", 0))
        return cls(copies * task.get("P", 1), copies * tests, task.get("N0", 784), (gates or {}).get("M", 1))

    @property
    def megabytes(self):
        return 8 * (self.P + self.P_t) * self.N0 / 1e6


def of_task(task, draws):
    """Terms of the job that makes `draws` draws of a task."""
    inputs, digits = draws * Sizes.of(task).megabytes, float("digits" in task)
    # Permuted digits are made from the others and stand beside them.
    permuted = inputs if "permutations" in task else 0.0
    return Terms(
        {"start": 1, "digits": digits, "inputs": inputs},
        {"start": 1, "digits": digits, "inputs": inputs, "permuted": permuted},
    )


def of_figure(files):
    """Terms of a job that reads `files` files of curves, or draws what is in them."""
    return Terms({"start": 1, "files": files}, {"start": 1, "files": files})


class CurveCosts:
    """Terms of the jobs of one curve. `memory_mb` bounds what is simulated at once, as in the configuration."""

    def __init__(self, curve, memory_mb=4096):
        self.curve, self.memory_mb = curve, memory_mb
        self.networks = curve.inner_points()
        self.sizes = [Sizes.of(point["task"], point["gates"]) for point in curve.outer_points()]
        self._known = {}

    def of_chunk(self, rule, chunk, runs=0):
        """Terms of the job in which a rule treats a chunk, and so many runs where it trains."""
        draws = len(chunk.draws)
        sizes = self.sizes[chunk.first_point : chunk.last_point]
        work, memory = {}, {}
        for size in sizes:
            _add(work, memory, self._at_point(rule, size, runs))
        inputs = draws * sum({(s.P, s.P_t, s.N0): s.megabytes for s in sizes}.values())
        points = draws * len(sizes) * len(self.networks)
        work = {term: draws * amount for term, amount in work.items()}
        return Terms({"start": 1, "points": points} | work, {"start": 1, "inputs": inputs} | memory)

    def _at_point(self, rule, size, runs):
        """Terms at one draw and outer point; points of one size are the same."""
        key = rule, size, runs
        if key not in self._known:
            work, memory = {}, {}
            for network in self.networks:
                _add(work, memory, _TERMS[rule](self, size, network, runs))
            self._known[key] = Terms(work, memory)
        return self._known[key]

    def _fit_gates(self, size, network, runs):
        # The gates are fitted once, whatever the number of networks.
        soft = self.curve.gates["kind"] == "soft_kmeans"
        return Terms({"clusters": soft * size.P * size.M * size.N0 / 1e9 / len(self.networks)}, {})

    def _solve_gp(self, size, network, runs):
        everywhere = size.P * (size.P + size.P_t)
        return Terms(
            {"factors": size.P * everywhere / 1e9, "kernels": everywhere * (size.N0 + size.M) / 1e9},
            {"kernels": 8 * everywhere / 1e6},
        )

    def _solve_theory(self, size, network, runs):
        everywhere = size.P * (size.P + size.P_t)
        depth = network["L"]
        # Distinct products of L gates, of which there are no more than distinct inputs or sets of open gates.
        powers = min(math.comb(size.M + depth - 1, depth), size.P, 2 ** min(size.M, 60))
        return Terms(
            {"factors": size.P * everywhere / 1e9, "powers": depth * size.P * powers**2 / 1e9},
            {"kernels": 8 * everywhere / 1e6, "powers": 8 * size.P * powers / 1e6},
        )

    def _train_networks(self, size, network, runs):
        width, depth, weights, numbers = self._network(size, network)
        itemsize = ITEMSIZE[self.curve.settings.get("dtype", "float32")]
        return Terms(
            {
                "kernels": runs * size.P**2 * (size.P + depth * width) / 1e9,
                "passes": runs * size.P * weights / 1e9,
            },
            {"networks": itemsize * numbers / 1e6, "tests": itemsize * size.P_t * width * (size.M if depth > 1 else 1) / 1e6},
        )

    def _average_runs(self, size, network, runs):
        return Terms({}, {"predictions": 8 * self.curve.settings.get("runs", 1) * size.P_t * len(self.networks) / 1e6})

    def _sample_chains(self, size, network, runs):
        width, depth, weights, numbers = self._network(size, network)
        settings = self.curve.settings
        chains = settings["chains"]
        sweeps = chains * (settings["warmup"] + settings["samples"] * settings["thin"])
        if self.curve.method == "langevin":
            work = {"steps": sweeps * size.P * weights / 1e9}
        else:
            factors = (depth + 1) * size.P**3
            work = {"factors": sweeps * factors / 1e9, "products": sweeps * size.P * (depth * size.P * width + weights) / 1e9}
        megabytes = (4 if self.curve.method == "langevin" else 8) * numbers / 1e6
        at_once = min(chains, max(1, int(self.memory_mb / megabytes)))
        kept = 8 * chains * settings["samples"] * size.P_t / 1e6
        return Terms(work, {"networks": at_once * megabytes, "samples": kept})

    def _network(self, size, network):
        """Width, depth, number of weights, and of all numbers that one run keeps."""
        width, depth = network["N"], network.get("L", 1)
        weights = width * (size.N0 + size.M) + (depth - 1) * size.M * width**2
        activations = size.P * width * (8 + 3 * (depth - 1) * size.M)
        return width, depth, weights, 6 * weights + activations + 5 * size.P**2


def _add(work, memory, terms):
    for term, amount in terms.work.items():
        work[term] = work.get(term, 0) + amount
    for term, amount in terms.memory.items():
        memory[term] = max(memory.get(term, 0), amount)


_TERMS = {
    "fit_gates": CurveCosts._fit_gates,
    "solve_gp": CurveCosts._solve_gp,
    "solve_theory": CurveCosts._solve_theory,
    "train_networks": CurveCosts._train_networks,
    "average_runs": CurveCosts._average_runs,
    "sample_chains": CurveCosts._sample_chains,
}
