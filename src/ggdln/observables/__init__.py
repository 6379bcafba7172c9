"""What is measured on a solution. Each module without an underscore is an observable, a subclass of `Observable`.

A solution is anything that offers some of: `predict(x, gates)` -> mean and variance, with `temperature`;
`kernel(x, gates, x2, gates2)`, with `kernel_diagonal(x, gates)`; and `order_parameters`. The infinite-width limit offers the
first two, the theory all three, and `ReadoutSolution` what follows from the readout weights of simulated networks.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from ggdln.core.kinds import REGISTRIES, Kind
from ggdln.gates import FittedGates
from ggdln.tasks import TaskData
from ggdln.theory.kernels import input_kernel


@dataclass(frozen=True)
class Sample:
    """One draw of a task with its gates. g (P, M), g_test (P_t, M): gate values."""

    task: TaskData
    gates: FittedGates

    @cached_property
    def g(self):
        return self._values("")

    @cached_property
    def g_test(self):
        return self._values("_test")

    def _values(self, part):
        """Gate values of the training ("") or the test ("_test") inputs."""
        task, note = self.task, self.task.notes.get(f"row{part}")
        rows = {} if note is None else {"row": note[1]}
        return self.gates(getattr(task, f"x{part}"), getattr(task, f"subtask{part}"), **rows)


class Observable(Kind):
    """A kind of measurement; `variables` names all that `of` may return."""

    sort: ClassVar[str] = "observable"
    needs: ClassVar[tuple] = ("kernel",)
    """What a solution must offer: "predict", "kernel", "order_parameters"."""
    needs_notes: ClassVar[tuple] = ()
    """Notes of the task that it looks at."""
    needs_labels: ClassVar[bool] = False
    needs_subtasks: ClassVar[bool] = False
    several_outputs: ClassVar[bool] = False
    """Whether it can look at solutions with several outputs."""

    def of(self, solution, sample):
        """Numbers and DataArrays by name."""
        raise NotImplementedError


def wanted(names, offers):
    """Those of the observables `names` that a solution which offers so much allows."""
    found = [REGISTRIES["observable"].get(name)() for name in names]
    return [observable for observable in found if set(observable.needs) <= set(offers)]


def observe(names, solution, sample, offers):
    """Those of the observables `names` that a solution which offers so much allows."""
    found = {}
    for observable in wanted(names, offers):
        found |= observable.of(solution, sample)
    return found


@dataclass(frozen=True)
class ReadoutSolution:
    """What follows from U = <a a^T>/N (M, M), measured on the readout weights of networks of this depth."""

    U: np.ndarray
    sigma: float
    depth: int = 1

    @property
    def offers(self):
        return ("kernel", "order_parameters") if self.depth == 1 else ("order_parameters",)

    @property
    def order_parameters(self):
        return [self.U]

    def kernel(self, x, gates, x2=None, gates2=None):
        """g^T U g' / M times the kernel of the inputs: (n, n2)."""
        return gates @ self.U @ (gates if gates2 is None else gates2).T / len(self.U) * input_kernel(x, x2, sigma=self.sigma)

    def kernel_diagonal(self, x, gates):
        """The kernel of each input with itself: (n,)."""
        overlap = np.einsum("pm,mn,pn->p", gates, self.U, gates, optimize=True) / len(self.U)
        return overlap * self.sigma**2 / x.shape[1] * np.einsum("pj,pj->p", x, x)
