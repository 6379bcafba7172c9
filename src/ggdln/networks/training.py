"""Many networks trained from Gaussian initial weights on the squared error, each until its training error is small.

Every run has its own random stream, named by the seed and the number of the run. On the CPU runs are advanced one at a
time, so run k has the same bits however a set of runs is split into calls; on CUDA they are batched within the memory
budget and equal up to rounding.
"""

import numpy as np
import torch
import xarray as xr

from ggdln.core import checks, seeds
from ggdln.networks.checkpoint import Checkpoint
from ggdln.networks.descent import Descent
from ggdln.networks.device import choose_device, choose_dtype, group_size, to_numpy
from ggdln.networks.flow import Flow
from ggdln.networks.network import GatedNetwork, ReluNetwork
from ggdln.networks.progress import Progress
from ggdln.networks.status import CONVERGED, DIVERGED, FLOOR, STATUS, UNFINISHED
from ggdln.core.errors import InputError
from ggdln.theory.kernels import gp_kernel

EXPLODED = 1e6


def train_ensemble(
    x,
    gates,
    y,
    x_test,
    gates_test,
    *,
    width,
    depth=1,
    sigma=1.0,
    runs,
    seed,
    method="flow",
    tolerance=1e-3,
    first_run=0,
    step=1.0,
    accuracy=0.05,
    max_steps=None,
    device="auto",
    dtype="float32",
    memory_mb=4096,
    checkpoint=None,
    checkpoint_seconds=60.0,
    progress=None,
):
    """Gated networks trained from `runs` initial weights of std sigma, numbered first_run, first_run + 1, ...

    x (P, N0), gates (P, M), y (P,); x_test (P_t, N0), gates_test (P_t, M). The loss is 1/2 sum (f - y)^2 without
    regularization; a run stops when its mean squared training error is at most `tolerance`.

    method "flow" integrates gradient flow with local error `accuracy` (a share of the norm of the residual or of the
    labels); "gd" is gradient descent with learning rate step / (largest tangent eigenvalue). Both work at any depth.

    Returns a Dataset with prediction(run, test), train_mse(run), steps(run), U(run, m, n) = sum_i a_{m,i} a_{n,i} / N
    and status(run):

    - converged: training error at most `tolerance`;
    - floor: no weights can get below `tolerance` because some labels lie outside the span of the features (inputs
    without an
      active gate, more data than the capacity). The attribute `floor` is the least training error of a linear readout
      of those features, and the run stops at floor + tolerance;
    - diverged: the error exploded or the integration broke down; its predictions are NaN;
    - unfinished: `max_steps` were not enough; its predictions are those of the last step.

    The attribute `failed` counts the last two, `dead_inputs` the training inputs without an active gate. With
    `checkpoint` the state is saved to that file every `checkpoint_seconds` and a restarted call gives the same bits.
    """
    x, gates, y = checks.training_set(x, gates, y)
    x_test, gates_test = _test_set(x, gates, x_test, gates_test)
    width, depth = checks.integer("width", width, 1), checks.integer("depth", depth, 1)
    floor = training_floor(x, gates, y, depth)
    options = dict(width=width, depth=depth)

    def build(inputs, active, placement):
        return GatedNetwork(inputs, active, **options, **placement)

    dataset = _train(
        "train_ensemble", build, (x, gates), (x_test, gates_test), y, floor=floor, options=options, sigma=sigma,
        runs=runs, seed=seed, method=method, tolerance=tolerance, first_run=first_run, step=step, accuracy=accuracy,
        max_steps=max_steps, device=device, dtype=dtype, memory_mb=memory_mb, checkpoint=checkpoint,
        checkpoint_seconds=checkpoint_seconds, progress=progress,
    )  # fmt: skip
    return dataset.assign_attrs(floor=floor, dead_inputs=int((gates == 0).all(1).sum()))


def train_relu(
    x,
    y,
    x_test,
    *,
    width,
    sigma=1.0,
    runs,
    seed,
    method="flow",
    tolerance=1e-3,
    first_run=0,
    step=1.0,
    accuracy=0.03,
    max_steps=None,
    device="auto",
    dtype="float32",
    memory_mb=4096,
    checkpoint=None,
    checkpoint_seconds=60.0,
    progress=None,
):
    """Fully trained ReLU networks f = a . relu(W x / sqrt(N0)) / sqrt(N): a baseline with the same prior and stop rule.

    Arguments and result as for `train_ensemble`, without gates; U(run, 1, 1) is a.a/N. No floor is known for them.
    The kinks of the ReLU lower the order of the integrator, hence the smaller default of `accuracy`.
    """
    x, y = checks.array("x", x, 2), checks.array("y", y, 1)
    checks.training_set(x, np.ones((len(x), 1)), y)
    x_test = checks.array("x_test", x_test, 2)
    x_test, _ = _test_set(x, np.ones((len(x), 1)), x_test, np.ones((len(x_test), 1)))
    options = dict(width=checks.integer("width", width, 1))

    def build(inputs, placement):
        return ReluNetwork(inputs, **options, **placement)

    return _train(
        "train_relu", build, (x,), (x_test,), y, floor=0.0, options=options, sigma=sigma, runs=runs, seed=seed,
        method=method, tolerance=tolerance, first_run=first_run, step=step, accuracy=accuracy, max_steps=max_steps,
        device=device, dtype=dtype, memory_mb=memory_mb, checkpoint=checkpoint, checkpoint_seconds=checkpoint_seconds,
        progress=progress,
    )  # fmt: skip


def training_floor(x, gates, y, depth):
    """The least mean squared training error of a gated network: the part of y outside its feature space.

    The features are the products of `depth` gates with the inputs, whose Gram matrix is the GP kernel up to a factor.
    A network narrower than min(M, N0) may not get that far.
    """
    # without unit diagonals, an input with small gates would look like one without any
    kernel = gp_kernel(x, gates, depth=depth)
    scale = np.sqrt(np.diagonal(kernel))
    live = scale > 0
    kernel = kernel[np.ix_(live, live)] / np.outer(scale[live], scale[live])
    outside = np.sum(y[~live] ** 2)
    if live.any():
        values, vectors = np.linalg.eigh(kernel)
        null = values <= values[-1] * len(values) * np.finfo(float).eps
        if null.any():
            # orthogonality is to the columns of the scaled kernel, so undo the scale: null space of K is scale^-1 v
            basis, _ = np.linalg.qr(vectors[:, null] / scale[live][:, None])
            outside += np.sum((basis.T @ y[live]) ** 2)
    return float(outside / len(y))


def _test_set(x, gates, x_test, gates_test):
    x_test, gates_test = checks.inputs(x_test, gates_test, prefix="test ")
    for name, test, train in (("x_test", x_test, x), ("gates_test", gates_test, gates)):
        if test.shape[1] != train.shape[1]:
            raise InputError(f"{name}: {test.shape[1]} columns, but training has {train.shape[1]}")
    return x_test, gates_test


def _train(
    label, build, train, test, y, *, floor, options, sigma, runs, seed, method, tolerance, first_run, step, accuracy,
    max_steps, device, dtype, memory_mb, checkpoint, checkpoint_seconds, progress,
):  # fmt: skip
    """Train group after group; collect the runs that are done; keep a checkpoint between steps."""
    sigma = checks.number("sigma", sigma, 0, exclusive=True)
    tolerance = checks.number("tolerance", tolerance, 0, exclusive=True)
    step = checks.number("step", step, 0, exclusive=True)
    accuracy = checks.number("accuracy", accuracy, 0, exclusive=True)
    memory_mb = checks.number("memory_mb", memory_mb, 0, exclusive=True)
    runs, first_run, seed = checks.integer("runs", runs, 1), checks.integer("first_run", first_run, 0), int(seed)
    if method not in ("flow", "gd"):
        raise InputError(f"method: expected 'flow' or 'gd', got {method!r}")
    if max_steps is None:
        max_steps = 300 if method == "flow" else 200_000
    max_steps = checks.integer("max_steps", max_steps, 1)
    device, dtype = choose_device(device), choose_dtype(dtype)
    placement = dict(device=device, dtype=dtype)
    network, test_network = build(*train, placement), build(*test, placement)
    labels = torch.tensor(y, **placement)
    group = group_size(device, dtype, network.floats_per_run(), memory_mb)
    # where the floor is the tolerance itself, only infinite time would do
    target = tolerance if floor < 0.999 * tolerance else floor + tolerance
    exploded = EXPLODED * max(np.mean(y**2), tolerance)

    settings = dict(method=method, **options, sigma=sigma, tolerance=tolerance, seed=seed)
    data = dict(y=y) | {f"train {i}": v for i, v in enumerate(train)} | {f"test {i}": v for i, v in enumerate(test)}
    control = dict(step=step, accuracy=accuracy, max_steps=max_steps, device=device.type, dtype=str(dtype))
    extent = dict(label=label, runs=runs, first_run=first_run, group=group)
    store = Checkpoint(checkpoint, data | settings | control | extent, seconds=checkpoint_seconds)
    side = network.shapes[-1][0]
    results = dict(
        prediction=np.full((runs, len(test[0])), np.nan),
        U=np.full((runs, side, side), np.nan),
        train_mse=np.full(runs, np.nan),
        steps=np.zeros(runs, dtype=np.int64),
        status=np.full(runs, -1, dtype=np.int8),
    )
    saved = store.load()
    if saved is not None:
        results = {name: saved[name] for name in results}
    report = Progress(label, "runs", runs, progress, done=int((results["status"] >= 0).sum()))

    def begin(members, state=None):
        """The integrator of some runs, at their start or at a saved state."""
        start = [_initial(label, seed, first_run + k, network.size, sigma) for k in members]
        start = torch.stack(start).to(**placement)
        view, weights = network.dual(start) if network.dual_pays else (network, start)
        make = Flow if method == "flow" else Descent
        extra = dict(accuracy=accuracy) if method == "flow" else dict(step=step)
        if state is None:
            return make(view, labels, weights, torch.full((len(members),), target, **placement), **extra), start
        integrator = make.__new__(make)
        integrator.network, integrator.y = view, labels
        integrator.__dict__.update(extra)
        for name in make.state_names:
            value = torch.tensor(state[name], device=device)
            setattr(integrator, name, value.to(dtype) if value.is_floating_point() else value)
        integrator.measure()
        return integrator, start

    def finish(integrator, start, members, ended, status):
        """Store the results of the runs that ended."""
        weights = integrator.weights[ended]
        if network.dual_pays:
            weights = network.direct(weights, start[ended])
        rows = np.asarray(members)[ended.cpu().numpy()]
        results["prediction"][rows] = to_numpy(test_network.predict(weights))
        results["U"][rows] = to_numpy(network.readout_statistics(weights))
        results["train_mse"][rows] = to_numpy(integrator.mse[ended])
        results["steps"][rows] = to_numpy(integrator.steps[ended])
        results["status"][rows] = status
        for name in ("prediction", "U"):
            results[name][rows[status == DIVERGED]] = np.nan

    members = integrator = None
    if saved is not None and len(saved["members"]):
        members = [int(k) for k in saved["members"]]
        state = {name.removeprefix("state_"): value for name, value in saved.items() if name.startswith("state_")}
        integrator, start = begin(members, state)
    while True:
        if integrator is None:
            waiting = np.flatnonzero(results["status"] < 0)
            if not len(waiting):
                break
            members = [int(k) for k in waiting[:group]]
            integrator, start = begin(members)
        status = _judge(integrator, target, tolerance, exploded, max_steps)
        if (status >= 0).any():
            ended = torch.tensor(status >= 0, device=device)
            finish(integrator, start, members, ended, status[status >= 0])
            report.update(int((results["status"] >= 0).sum()))
            members = [k for k, s in zip(members, status, strict=True) if s < 0]
            if not members:
                integrator = None
                continue
            kept = {name: to_numpy(getattr(integrator, name)[~ended]) for name in integrator.state_names}
            integrator, start = begin(members, kept)
        integrator.advance()
        if store.due():
            state = {f"state_{name}": to_numpy(getattr(integrator, name)) for name in integrator.state_names}
            store.save(results | state | dict(members=np.array(members)))
    store.save(results | dict(members=np.zeros(0, dtype=np.int64)))
    return _dataset(results, first_run, settings)


def _initial(label, seed, run, size, sigma):
    """Initial weights of one run, the same on every device and in every precision: (D,) in float64."""
    return torch.from_numpy(sigma * seeds.rng(seed, label, "initial weights", run).standard_normal(size))


def _judge(integrator, target, tolerance, exploded, max_steps):
    """The status of each run, -1 while it goes on: (R,)."""
    mse, steps, stuck = (to_numpy(value) for value in (integrator.mse, integrator.steps, integrator.stuck))
    reached = to_numpy(integrator.mse <= integrator.target)
    status = np.full(len(mse), -1, dtype=np.int8)
    status[steps >= max_steps] = UNFINISHED
    status[reached] = FLOOR if target > tolerance else CONVERGED
    status[~np.isfinite(mse) | (mse > exploded) | (stuck & ~reached)] = DIVERGED
    return status


def _dataset(results, first_run, attributes):
    flags = dict(flag_values=list(range(len(STATUS))), flag_meanings=" ".join(STATUS))
    failed = int(np.isin(results["status"], (DIVERGED, UNFINISHED)).sum())
    return xr.Dataset(
        {
            "prediction": (("run", "test"), results["prediction"]),
            "train_mse": ("run", results["train_mse"]),
            "steps": ("run", results["steps"]),
            "status": ("run", results["status"], flags),
            "U": (("run", "m", "n"), results["U"]),
        },
        coords={"run": np.arange(first_run, first_run + len(results["steps"]))},
        attrs=attributes | dict(failed=failed),
    )
