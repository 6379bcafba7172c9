"""What a job costs: core-seconds and peak memory, predicted from the sizes of what it does.

A prediction is a sum of terms. Each kind says how much of which term a job of it takes; the coefficients are fitted to the
benchmark files of the workflow by `benchmarks/resources.py`, which also compares prediction and measurement. Amounts are in
10^9 multiplications (time) and 10^6 bytes (memory). No result depends on them.
"""

import math
from dataclasses import dataclass

from ggdln.core.kinds import Costs, Terms

MEMORY_FACTOR, TIME_FACTOR = 2.0, 5.0
"""What is asked for, over what is predicted. Peaks fall between the looks that Snakemake takes at a job, the number of steps is
hard to foretell, and machines differ."""

SNAKEMAKE_MB = 400
"""For the two Snakemake processes that start a job on a cluster; they count towards its limit and take 150 MB each."""

LEAST_MINUTES = 15

READING = Costs({"files": 0.017, "start": 1.36}, {"files": 0.357, "start": 98.1})
COMBINING = Costs({"points": 0.002, "start": 1.1}, {"inputs": 2.16, "predictions": 1.0, "start": 122.0})
DRAWING = Costs({"files": 0.0597, "start": 4.76}, {"files": 0.288, "start": 185.0})
JUDGING = Costs({"files": 0.017, "start": 1.8}, {"files": 0.357, "start": 150.0})
REPORTING = Costs({"files": 0.5, "start": 5.0}, {"files": 10.0, "start": 300.0})
"""Stages that no kind speaks for; `files` counts what they read."""


@dataclass(frozen=True)
class Cost:
    """Predicted core-seconds and peak memory of a job, from its terms and their coefficients."""

    terms: Terms
    costs: Costs

    @property
    def seconds(self):
        return sum(self.costs.seconds[term] * amount for term, amount in self.terms.work.items())

    @property
    def megabytes(self):
        return sum(self.costs.megabytes[term] * amount for term, amount in self.terms.memory.items())

    def mem_mb(self, attempt=1):
        """Memory to ask for, in MB."""
        return attempt * math.ceil((MEMORY_FACTOR * self.megabytes + SNAKEMAKE_MB) / 100) * 100

    def runtime(self, attempt=1):
        """Time to ask for, in minutes."""
        return attempt * max(LEAST_MINUTES, math.ceil(TIME_FACTOR * self.seconds / 300) * 5)


def of_files(count, costs):
    """A job that reads so many files."""
    amounts = {"start": 1, "files": count}
    return Cost(Terms(amounts, amounts), costs)


def of_points(draws, sizes, terms, costs, networks=1):
    """A job that treats so many draws of points with these `Sizes`; `terms` are those of one draw at each of them."""
    work, memory = {}, {}
    for found in terms:
        for term, amount in found.work.items():
            work[term] = work.get(term, 0) + draws * amount
        for term, amount in found.memory.items():
            memory[term] = max(memory.get(term, 0), amount)
    inputs = draws * sum({size: size.megabytes for size in sizes}.values())
    points = draws * len(sizes) * networks
    return Cost(Terms({"start": 1, "points": points} | work, {"start": 1, "inputs": inputs} | memory), costs)
