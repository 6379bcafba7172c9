"""How long a run will take and how far it is, from the predicted costs of its jobs and the pace that is measured."""

FIRST_SECONDS = 30
"""The measured pace counts as much as the predicted one after so long."""
LEAST_SECONDS = 10
"""Between two lines about the progress of a run."""
LOCAL_SECONDS, CLUSTER_SECONDS = 0.2, 4.0
"""Time that Snakemake needs for a job beside its work, on one machine and within a job of a cluster."""


def wall_time(jobs, slots, overhead):
    """Seconds for all jobs, so many at a time: their sum over the slots, and at least the longest chain of needs."""
    end = {}
    for output, job in jobs.items():
        end[output] = max((end.get(file, 0) for file in job.inputs), default=0) + job.cost.seconds + overhead
    total = sum(job.cost.seconds + overhead for job in jobs.values())
    return max([total / slots, *end.values()])


def duration(seconds):
    """A time in words."""
    minutes = round(seconds / 60)
    long = f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"
    return f"{seconds:.0f} s" if seconds < 120 else long


def priorities(figures, pending):
    """Output -> priority of the jobs in `pending`: those of cheap figures first, so that figures are done one by one.

    figures: for each the outputs of all jobs that it needs.
    """
    costs = {name: sum(pending[file].cost.seconds for file in files if file in pending) for name, files in figures.items()}
    order, found = sorted(figures, key=costs.get), {}
    for rank, name in enumerate(order):
        found |= {file: len(order) - rank for file in figures[name] if file in pending and file not in found}
    return found


class Progress:
    """A run of `jobs`, output -> Job, each after those it needs, so many at a time; it started at `start` in seconds."""

    def __init__(self, jobs, slots, *, where, overhead=LOCAL_SECONDS, start=0.0):
        self.left, self.slots, self.where, self.overhead = dict(jobs), slots, where, overhead
        self.start = self.told = start
        self.jobs, self.expected = len(jobs), wall_time(jobs, slots, overhead)

    def announcement(self, figures):
        """What will be made, and what that is expected to take."""
        work = sum(job.cost.seconds for job in self.left.values())
        amount = f"{work / 60:.0f} core-minutes" if work >= 120 else f"{work:.0f} core-seconds"
        jobs = f"{self.jobs} job{'s' if self.jobs != 1 else ''}"
        return f"To make {', '.join(figures) or 'this'}: {jobs}, {amount}, about {duration(self.expected)} on {self.where}."

    def finished(self, output, now):
        """A job is done; a line about the time that is left, every now and then and not after the last job."""
        self.left.pop(output, None)
        if now - self.told < LEAST_SECONDS or not self.left:
            return None
        self.told = now
        return f"{self.jobs - len(self.left)} of {self.jobs} jobs done, about {duration(self.remaining(now))} left"

    def remaining(self, now):
        """Seconds until the end, at the pace so far."""
        left = wall_time(self.left, self.slots, self.overhead)
        pace = (now - self.start + FIRST_SECONDS) / (self.expected - left + FIRST_SECONDS)
        return pace * left
