"""Gates g(x): which dendrites of every neuron an input opens.

Gates are fixed before the network learns. `fit_gates` makes a `Gates` object, which maps inputs (P, N0) to gate values
(P, M) and holds all that is needed for new inputs.
"""

from dataclasses import dataclass, field, replace

import numpy as np
import xarray as xr
from scipy.special import softmax

from ggdln import seeds
from ggdln.errors import InputError


@dataclass(frozen=True)
class Gates:
    """M fixed gates.

    Half-space gates: g_m(x) = 1 if V_m.x / sqrt(N0) > b, else 0; `weights` V (M, N0) is zero outside a gate's receptive
    field. Rectified gates: g_m(x) = max(V_m.x / sqrt(N0) - b, 0). Soft k-means gates: g(x) = softmax(-stiffness
    |x - c_m|^2 / N0) with `weights` the centres c (M, N0). `permitted` (tasks, M) sets gates to 0 that the
    sub-task of an input forbids. `fit` tells how a fit went.
    """

    kind: str
    weights: np.ndarray
    b: float = 0.0
    stiffness: float = np.nan
    permitted: np.ndarray = None
    fit: dict = field(default_factory=dict)

    def __len__(self):
        return len(self.weights)

    def __call__(self, x, task=None):
        """Gate values (P, M) of the inputs x (P, N0); `task` (P,) is needed where the gates depend on the sub-task."""
        x = np.asarray(x, dtype=np.float64)
        if x.ndim != 2 or x.shape[1] != self.weights.shape[1]:
            raise InputError(f"x: got shape {x.shape}, these gates take (P, {self.weights.shape[1]})")
        if self.kind == "soft_kmeans":
            return responsibilities(x, self.weights, self.stiffness)
        drive = x @ self.weights.T / np.sqrt(x.shape[1]) - self.b
        if self.kind == "rectified":
            return np.maximum(drive, 0.0)
        open_ = (drive > 0).astype(np.float64)
        if self.permitted is None:
            return open_
        if task is None or len(task) != len(x) or not np.isin(task, np.arange(len(self.permitted))).all():
            raise InputError(f"task: these gates need a sub-task from 0 to {len(self.permitted) - 1} for each input")
        return open_ * self.permitted[np.asarray(task)]


def fit_gates(spec, x, *, seed, draw=0, task=None):
    """Gates of `spec`, a mapping with "kind", "M" and the parameters of that kind, for unlabelled training inputs x.

    Draw number `draw`; random gates of the same draw are nested in M. Only soft k-means looks at the values of x; the
    other kinds use N0 alone, and `top_down` the number of sub-tasks in `task`.
    """
    spec = dict(spec)
    kind, M = spec.pop("kind", None), spec.pop("M", None)
    if kind not in MAKERS:
        raise InputError(f"gates kind: got {kind!r}, accepted: {', '.join(MAKERS)}")
    return MAKERS[kind](M=M, x=np.asarray(x, dtype=np.float64), task=task, seed=seed, draw=draw, **spec)


def _random(*, M, x, task, seed, draw, b=0.0):
    V = seeds.rng(seed, "random", "gates", draw).standard_normal((M, x.shape[1]))
    return Gates("random", V, b=b)


def _rectified(**spec):
    """Random gates that grow with their input once open: the generic case, where products of gates are independent."""
    return replace(_random(**spec), kind="rectified")


def _open(*, M, x, task, seed, draw):
    """Gates that are always open; with M = 1 the network is linear."""
    return Gates("open", np.zeros((M, x.shape[1])), b=-1.0)


def _local(*, M, x, task, seed, draw, subsets, b=0.0):
    """M / subsets gates for each block of N0 / subsets input dimensions, in the order of the blocks."""
    N0 = x.shape[1]
    if M % subsets or N0 % subsets:
        raise InputError(f"M, N0: got {M}, {N0}; accepted: multiples of subsets = {subsets}")
    field_of = np.arange(M) * subsets // M
    block_of = np.arange(N0) * subsets // N0
    V = seeds.rng(seed, "local", "gates", draw).standard_normal((M, N0))
    return Gates("local", V * (field_of[:, None] == block_of), b=b)


def _top_down(*, M, x, task, seed, draw, p_permitted, b=0.0):
    """Random gates of which each sub-task permits a random subset."""
    if task is None:
        raise InputError("task: top-down gates need the sub-task of each training input")
    n_tasks = int(np.max(task)) + 1
    # One row per gate, so that the masks too are nested in M.
    allowed = p_permitted > seeds.rng(seed, "top_down", "permitted", draw).random((M, n_tasks)).T
    V = seeds.rng(seed, "top_down", "gates", draw).standard_normal((M, x.shape[1]))
    return Gates("top_down", V, b=b, permitted=allowed.astype(np.float64))


def _soft_kmeans(*, M, x, task, seed, draw, stiffness, max_iterations=3000, tolerance=1e-6):
    """Soft k-means: centres are the means of the inputs weighted by their responsibilities, from a k-means++ start.

    Ends when no centre moves by more than `tolerance` times the spread of the inputs (`converged` says whether it did).
    A cluster that loses its weight is moved to the input farthest from its nearest centre, and counted.
    """
    from sklearn.cluster import kmeans_plusplus

    if len(x) < M:
        raise InputError(f"M: got {M}, accepted: at most the number of training inputs, {len(x)}, for soft_kmeans gates")
    state = seeds.entropy(seed, "soft_kmeans", "gates", draw, M) % 2**32
    centres, _ = kmeans_plusplus(x, M, random_state=state)
    spread = np.sqrt(((x - x.mean(axis=0)) ** 2).sum(axis=1).mean()) or 1.0
    moved_clusters = 0
    for iteration in range(1, max_iterations + 1):  # noqa: B007
        r = responsibilities(x, centres, stiffness)
        weight = r.sum(axis=0)
        new = np.divide(r.T @ x, weight[:, None], out=centres.copy(), where=weight[:, None] > 0)
        empty = np.flatnonzero(weight < 1e-8 * len(x))
        if len(empty):
            farthest = np.argsort(-squared_distances(x, new).min(axis=1), kind="stable")
            new[empty] = x[farthest[: len(empty)]]
            moved_clusters += len(empty)
        shift = np.sqrt(((new - centres) ** 2).sum(axis=1).max()) / spread
        centres = new
        if shift <= tolerance:
            break
    fit = {
        "iterations": iteration,
        "shift": shift,
        "converged": bool(shift <= tolerance),
        "moved_clusters": moved_clusters,
    }
    return Gates("soft_kmeans", centres, stiffness=stiffness, fit=fit)


MAKERS = {
    "random": _random,
    "rectified": _rectified,
    "local": _local,
    "soft_kmeans": _soft_kmeans,
    "top_down": _top_down,
    "open": _open,
}


def responsibilities(x, centres, stiffness):
    """softmax over clusters of -stiffness |x - c|^2 / N0: (P, M)."""
    return softmax(-stiffness / x.shape[1] * squared_distances(x, centres), axis=1)


def squared_distances(x, centres):
    """|x - c|^2 for every input and centre, >= 0: (P, M)."""
    cross = (x**2).sum(axis=1)[:, None] + (centres**2).sum(axis=1) - 2 * x @ centres.T
    return np.maximum(cross, 0.0)


def pack_gates(gates):
    """A mapping of (draw, point) to `Gates` as one dataset over (draw, point, ...), padded to the largest M."""
    rows = {}
    for (draw, point), g in gates.items():
        variables = {
            "weights": (("gate", "feature"), g.weights),
            "gate_count": len(g),
            "b": g.b,
            "stiffness": g.stiffness,
        } | {f"fit_{key}": value for key, value in g.fit.items()}
        if g.permitted is not None:
            variables["permitted"] = (("sub_task", "gate"), g.permitted)
        one = xr.Dataset(variables).assign_coords(gate=np.arange(len(g)))
        rows.setdefault(draw, []).append(one.expand_dims(draw=[draw], point=[point]))
    packed = xr.concat([xr.concat(row, "point", join="outer") for row in rows.values()], "draw", join="outer")
    return packed.assign_coords(kind=g.kind)


def unpack_gates(dataset, draw, point):
    """The `Gates` of one draw and point."""
    one = dataset.sel(draw=draw, point=point, drop=True)
    one = one.isel(gate=slice(int(one.gate_count)))
    fit = {name.removeprefix("fit_"): var.item() for name, var in one.data_vars.items() if name.startswith("fit_")}
    return Gates(
        kind=str(one.kind.item()),
        weights=one.weights.values,
        b=float(one.b),
        stiffness=float(one.stiffness),
        permitted=one.permitted.values if "permitted" in one else None,
        fit=fit,
    )
