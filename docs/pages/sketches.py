"""Small pictures of what kinds do: gates over a plane, samples of tasks, what methods find, conditions that are met and not.

Gates, tasks and conditions are the library's own, on inputs of two dimensions or a few digits. Panels are drawn from invented
numbers. A sketch is a function of nothing that gives a figure; `SKETCHES` has them by (sort, kind).
"""

import io
import struct
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib

matplotlib.use("Agg")

import numpy as np
import xarray as xr
from matplotlib import rc_context
from matplotlib.figure import Figure as Canvas

import ggdln
from ggdln.core.kinds import REGISTRIES
from ggdln.gates import fit_gates
from ggdln.observables import Sample
from ggdln.study.compose import Figure, compose
from ggdln.study.style import BLUE, GREY, INK, ORANGE, RC, RED, TEAL
from ggdln.tasks import make_task
from ggdln.tasks._digits import load_digits

SKETCHES = {}


def sketch(sort, *kinds):
    """Register a function of the name of a kind as the sketch of these."""

    def known(draw):
        for kind in kinds:
            SKETCHES[sort, kind] = lambda draw=draw, kind=kind: draw(kind)
        return draw

    return known


def save(sort, kind, folder):
    """Draw the sketch of a kind into a folder: the name of the file, nothing if it has none."""
    if (sort, kind) not in SKETCHES:
        return None
    with rc_context(RC):
        file = io.BytesIO()
        SKETCHES[sort, kind]().savefig(file, format="png", dpi=130, metadata={"Software": None})
    path = folder / f"{sort}_{kind}.png"
    if not path.exists() or path.read_bytes() != file.getvalue():
        path.write_bytes(file.getvalue())
    return path.name


def row(count, width=1.5, height=1.6):
    figure = Canvas(figsize=(width * count + 0.2, height), layout="constrained")
    return figure, np.atleast_1d(figure.subplots(1, count))


# ---- Gates

GATES = {
    "random": {"M": 3, "b": 0.0},
    "rectified": {"M": 3, "b": 0.0},
    "local": {"M": 4, "b": 0.0, "subsets": 2},
    "open": {"M": 3},
    "soft_kmeans": {"M": 3, "stiffness": 3.0},
    "top_down": {"M": 3, "b": 0.0, "p_permitted": 0.5},
}


def cloud(rng, centres=((-1.2, 0.9), (1.3, 0.7), (0.1, -1.4))):
    return np.concatenate([rng.normal(centre, 0.4, (40, 2)) for centre in centres])


@sketch("gates", *GATES)
def gates(kind):
    """The values of some gates over a plane, and of top-down ones for two sub-tasks."""
    x = cloud(np.random.default_rng(1))
    side = np.linspace(-2.5, 2.5, 120)
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    subtask = np.repeat([0, 1], len(x) // 2)
    fitted = fit_gates({"kind": kind} | GATES[kind], x, seed=4, subtask=subtask)
    if kind == "top_down":
        shown = [(f"task {t}: open gates", fitted(grid, np.full(len(grid), t)).sum(axis=1)) for t in (0, 1)]
    else:
        values = fitted(grid)
        shown = [(f"$g_{m + 1}(x)$", values[:, m]) for m in range(values.shape[1])]
    figure, axes = row(len(shown))
    for ax, (title, values) in zip(axes, shown, strict=True):
        ax.imshow(
            values.reshape(120, 120),
            origin="lower",
            extent=(-2.5, 2.5) * 2,
            cmap="Blues",
            vmin=0,
            vmax=max(1, values.max()) * 1.3,
        )
        ax.plot(*x.T, ".", color=INK, ms=1.5)
        ax.set(title=title, xticks=[], yticks=[])
        ax.spines[["top", "right"]].set_visible(True)
    return figure


@sketch("gates", "function")
def rings(_):
    """A function that a user may have written."""
    side = np.linspace(-2.5, 2.5, 120)
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    figure, axes = row(3)
    for m, ax in enumerate(axes):
        values = np.floor(np.linalg.norm(grid, axis=1)) == m
        ax.imshow(values.reshape(120, 120), origin="lower", cmap="Blues", vmin=0, vmax=1.3)
        ax.set(title=f"{m} $\\leq |x| <$ {m + 1}", xticks=[], yticks=[])
        ax.spines[["top", "right"]].set_visible(True)
    return figure


@sketch("gates", "file")
def matrix_of_gates(_):
    figure, (ax,) = row(1, 2.4, 1.6)
    ax.imshow(np.random.default_rng(1).random((14, 6)) > 0.5, cmap="Blues", vmin=0, vmax=1.3, aspect="auto")
    ax.set(xlabel="gate", ylabel="row of the data", xticks=[], yticks=[])
    return figure


# ---- Tasks

DIGITS = {
    "mnist_parity": {"P": 6, "P_t": 2},
    "mnist_permuted": {"P": 4, "P_t": 2, "permutations": 2},
    "mnist_conflicting": {"P": 4, "P_t": 4},
}


@sketch("task", *DIGITS)
def digits(kind):
    """Some training inputs as pictures, with labels and sub-tasks."""
    task = make_task({"kind": kind} | DIGITS[kind], seed=5)
    chosen = np.arange(6) if len(task.x) <= 6 else np.r_[0:3, len(task.x) - 3 : len(task.x)]
    figure, axes = row(6, 0.95, 1.25)
    for ax, i in zip(axes, chosen, strict=True):
        ax.imshow(task.x[i].reshape(28, 28), cmap="Greys")
        part = f"task {task.subtask[i]}\n" if task.subtask.any() else ""
        ax.set_title(f"{part}$y = {task.y[i]:+.0f}$", fontsize=7)
        ax.axis("off")
    return figure


@sketch("task", "sklearn")
def carried(_):
    task = make_task({"kind": "sklearn", "name": "digits", "P": 10, "P_t": 10, "labels": {"one_vs_rest": 3}}, seed=2)
    figure, axes = row(6, 0.95, 1.25)
    for ax, x, y in zip(axes, task.x[:6], task.y[:6], strict=True):
        ax.imshow(x.reshape(8, 8), cmap="Greys")
        ax.set_title(f"$y = {y:+.0f}$", fontsize=7)
        ax.axis("off")
    return figure


@sketch("task", "torchvision")
def downloaded(_):
    """The set MNIST, as far as the embedded digits have it, in files as torchvision leaves them."""
    held = load_digits()
    order, parts = np.random.default_rng(0).permutation(len(held.labels)), {"train": slice(0, 60), "t10k": slice(60, 80)}
    with TemporaryDirectory() as folder:
        raw = Path(folder) / "MNIST/raw"
        raw.mkdir(parents=True)
        for part, chosen in parts.items():
            images, labels = held.images[order[chosen]], held.labels[order[chosen]].astype(np.uint8)
            head = struct.pack(">IIII", 2051, len(labels), 28, 28)
            (raw / f"{part}-images-idx3-ubyte").write_bytes(head + images.tobytes())
            (raw / f"{part}-labels-idx1-ubyte").write_bytes(struct.pack(">II", 2049, len(labels)) + labels.tobytes())
        spec = {"kind": "torchvision", "name": "MNIST", "folder": folder, "P": 60, "P_t": 20, "labels": {"one_vs_rest": 3}}
        task = make_task(spec, seed=2)
    chosen = np.r_[np.flatnonzero(task.y > 0)[:3], np.flatnonzero(task.y < 0)[:3]]
    figure, axes = row(6, 0.95, 1.25)
    for ax, i in zip(axes, chosen, strict=True):
        ax.imshow(task.x[i].reshape(28, 28), cmap="Greys")
        ax.set_title(f"$y = {task.y[i]:+.0f}$", fontsize=7)
        ax.axis("off")
    return figure


@sketch("task", "angles")
def angles(_):
    task = make_task({"kind": "angles", "N0": 3, "n_angles": 60, "noise": 0.1}, seed=1)
    figure, (ax,) = row(1, 2.0, 1.8)
    ax.plot(*task.x_test[:, :2].T, "-", color=GREY)
    ax.plot(*task.x_test[::4, :2].T, ".", color=BLUE)
    ax.plot(*task.x[0, :2], "o", color=RED)
    ax.annotate("training input", task.x[0, :2], (0.2, -0.1), fontsize=7, color=RED, ha="center")
    ax.set(xticks=[], yticks=[], aspect="equal")
    return figure


@sketch("task", "clustered_teacher")
def clustered(_):
    spec = {"N0": 60, "P": 40, "P_t": 2, "N_T": 10, "gamma": 0.05, "subsets": 3, "clusters": 3, "rho": 0.01}
    task = make_task({"kind": "clustered_teacher"} | spec, seed=1)
    figure, (ax,) = row(1, 4.4, 1.7)
    ax.imshow(task.x, aspect="auto", cmap="RdBu_r", vmin=-2.5, vmax=2.5)
    for edge in (20, 40):
        ax.axvline(edge - 0.5, color=INK, lw=0.8, ls="--")
    ax.set(xlabel="input dimension (the first block is preferred)", ylabel="sample", xticks=[], yticks=[])
    return figure


@sketch("task", "noisy_teacher")
def noisy(_):
    task = make_task({"kind": "noisy_teacher", "N0": 2, "P": 60, "P_t": 60, "N_T": 50, "gamma": 0.02, "epsilon": 0.1}, seed=2)
    figure, (ax,) = row(1, 2.2, 1.8)
    for x, other in zip(task.x, task.x_test, strict=True):
        ax.plot(*zip(x, other, strict=True), "-", color=GREY, lw=0.6)
    shown = ax.scatter(*task.x.T, c=task.y, s=14, cmap="RdBu_r", zorder=3)
    ax.plot(*task.x_test.T, ".", color=INK, ms=2)
    ax.set(xticks=[], yticks=[], xlabel="large: training, small: test")
    figure.colorbar(shown, ax=ax, label="$y$")
    return figure


@sketch("task", "file")
def kept(_):
    """Rows of arrays, of which each draw takes others."""
    figure, axes = row(2, 1.7, 1.6)
    rng = np.random.default_rng(3)
    x, y = rng.standard_normal((24, 5)), rng.choice([-1.0, 1.0], 24)
    for draw, ax in enumerate(axes):
        chosen = np.zeros((24, 1))
        chosen[rng.permutation(24)[:14]] = 1
        chosen[rng.permutation(np.flatnonzero(chosen))[:5]] = 0.5
        ax.imshow(np.hstack([x, np.full((24, 1), np.nan), 2.5 * y[:, None]]), cmap="RdBu_r", vmin=-2.5, vmax=2.5, aspect="auto")
        ax.imshow(chosen, cmap="Blues", vmin=0, vmax=1.3, aspect="auto", extent=(7.5, 9.5, 23.5, -0.5))
        ax.set(xlim=(-0.5, 9.5), xticks=[2, 6, 8.5], yticks=[], title=f"draw {draw}")
        ax.set_xticklabels(["x", "y", "taken"], fontsize=7)
    return figure


# ---- Methods: what they find for one small problem, a function of one input

X_LINE = np.linspace(-1.6, 1.6, 81)
NETWORK = {"width": 20, "sigma": 2.0}


@cache
def line():
    """Training inputs with a constant beside them, labels, gates of each, and those of a line of new inputs."""
    rng = np.random.default_rng(4)
    points = np.sort(rng.uniform(-1.3, 1.3, 9))
    x, new = (np.column_stack([p, np.ones_like(p)]) for p in (points, X_LINE))
    fitted = fit_gates({"kind": "random", "M": 6, "b": 0.0}, x, seed=2)
    return x, fitted(x), np.sin(2.5 * points), new, fitted(new)


@sketch("method", "theory", "gp", "one_loop", "exact", "gd", "langevin", "posterior", "relu")
def method(kind):
    """Mean and two standard deviations where the method knows them, and single networks where it has these."""
    x, g, y, new, g_new = line()
    warm = NETWORK | {"temperature": 0.01}
    sampling = ggdln.Sampling(chains=4, warmup=500, draws=50, thin=20)
    solved = {
        "theory": lambda: ggdln.solve(x, g, y, **warm),
        "one_loop": lambda: ggdln.solve(x, g, y, **warm, loops=1),
        "exact": lambda: ggdln.solve_exact(x, g, y, **warm, seed=1),
        "gp": lambda: ggdln.gp_limit(x, g, y, sigma=warm["sigma"], temperature=warm["temperature"]),
    }
    simulated = {
        "gd": lambda: ggdln.train_ensemble(x, g, y, new, g_new, **NETWORK, runs=8, seed=1),
        "relu": lambda: ggdln.train_relu(x, y, new, **NETWORK, runs=8, seed=1),
        "langevin": lambda: ggdln.langevin(x, g, y, new, g_new, **warm, seed=1, sampling=sampling),
        "posterior": lambda: ggdln.sample_posterior(x, g, y, new, g_new, **warm, seed=1, sampling=sampling),
    }
    figure, (ax,) = row(1, 3.0, 1.9)
    if kind in solved:
        mean, variance = solved[kind]().predict(new, g_new)
        spread = 2 * np.sqrt(variance)
        ax.fill_between(X_LINE, mean - spread, mean + spread, color=BLUE, alpha=0.2, lw=0)
    else:
        outputs = simulated[kind]().prediction
        networks = outputs.stack(network=[d for d in outputs.dims if outputs[d].size != len(X_LINE)]).values
        networks = networks if len(networks) == len(X_LINE) else networks.T
        ax.plot(X_LINE, networks[:, :: max(1, networks.shape[1] // 8)], color=ORANGE, lw=0.6, alpha=0.8)
        mean = networks.mean(axis=1)
    ax.plot(X_LINE, mean, color=BLUE)
    ax.plot(x[:, 0], y, "o", color=INK, ms=3)
    ax.set(xlabel="input", ylabel="output", xticks=[], yticks=[], ylim=(-2.4, 2.4))
    return figure


# ---- Observables, on a solution for a few digits

DIGIT_TASKS = {
    "predictor": "mnist_parity",
    "order_parameter": "mnist_parity",
    "kernel_shape": "mnist_parity",
    "kernel_blocks": "mnist_conflicting",
    "task_correlation": "mnist_permuted",
    "kernel_profile": "angles",
}
SPECS = {
    "mnist_parity": {"P": 150, "P_t": 200},
    "mnist_conflicting": {"P": 60, "P_t": 20},
    "mnist_permuted": {"P": 100, "P_t": 60, "permutations": 4},
    "angles": {"N0": 200, "n_angles": 61, "noise": 0.0},
}


@sketch("observable", *DIGIT_TASKS)
def observable(kind):
    """What it gives for a solution, beside what it looks at."""
    name = DIGIT_TASKS[kind]
    task = make_task({"kind": name} | SPECS[name], seed=1)
    chosen = {"kind": "top_down", "p_permitted": 0.5} if task.subtask.any() else {"kind": "random"}
    gates = fit_gates(chosen | {"M": 16, "b": 0.0}, task.x, seed=1, subtask=task.subtask)
    sample = Sample(task, gates)
    network = {"depth": 1, "sigma": 0.5, "temperature": 0.01}
    if kind == "kernel_profile":
        solution = ggdln.gp_limit(task.x, sample.g, np.ones(len(task.x)), **network)
    else:
        solution = ggdln.solve(task.x, sample.g, task.y, width=50, **network)
    found = REGISTRIES["observable"].make({"kind": kind}).of(solution, sample)
    figure, (ax,) = row(1, 2.6, 1.9)
    told = {key: float(value) for key, value in found.items() if np.ndim(value) == 0}
    if kind == "predictor":
        mean, variance = solution.predict(task.x_test, sample.g_test)
        for label, colour in ((1, BLUE), (-1, ORANGE)):
            chosen = task.y_test == label
            ax.errorbar(task.y_test[chosen] + np.linspace(-0.5, 0.5, chosen.sum()), mean[chosen], np.sqrt(variance[chosen]),
                        fmt=".", color=colour, ms=2, lw=0.4)  # fmt: skip
        ax.axhline(0, color=GREY, lw=0.8)
        ax.set(xlabel="label", ylabel="output", xticks=[-1, 1])
    elif kind == "kernel_shape":
        density = found["kernel_histogram"]
        ax.fill_between(density.kernel_element, density, color=BLUE, alpha=0.4, lw=0)
        ax.set(xlabel="kernel of equal digits", ylabel="density", yticks=[])
    elif kind == "kernel_profile":
        profile = found["kernel_profile"]
        ax.plot(profile.theta, profile, color=BLUE)
        ax.set(xlabel="angle", ylabel="kernel")
    else:
        (matrix,) = (value for value in found.values() if np.ndim(value) == 2)
        most = float(np.quantile(np.abs(matrix), 0.99))
        shown = ax.imshow(matrix, cmap="RdBu_r", vmin=-most, vmax=most)
        labels = {"kernel_blocks": "samples, by task", "task_correlation": "sub-task"}
        ax.set(xticks=[], yticks=[], xlabel=labels.get(kind, "gate"), ylabel=labels.get(kind, "gate"))
        figure.colorbar(shown, ax=ax)
    words = [f"{key.replace('_', ' ')} {value:.2g}" for key, value in told.items()]
    figure.suptitle("\n".join("   ".join(words[i : i + 2]) for i in range(0, len(words), 2)), fontsize=6)
    return figure


# ---- Conditions: a curve that meets one, and one that doesn't

X = np.arange(1.0, 9.0)
FALLING, RISING = 1.0 / X**0.5, 0.3 + 0.1 * X
AROUND = 0.6 + 0.04 * (X - 4) ** 2
FLAT = np.array([0.7, 0.71, 0.69, 0.7, 0.7, 0.71, 0.69, 0.7])
LOWER = FALLING - 0.12
OTHER = {"other": {"method": "gp"}}
AT = {"formula": "generic", "depth": 1}
EXPERIMENT = {"task": {"N0": 10, "P": 45}}  # capacity at 4.5 gates
ONSET = np.where(X < 4.5, 0.0, 0.2 * (X - 4))
PEAK = 0.3 + 2.0 * np.exp(-2 * (X - 4.5) ** 2)
CONDITIONS = {
    # kind: (parameters, met, not met, series that both are compared with)
    "rises": ({}, RISING, FALLING, {}),
    "falls": ({}, FALLING, RISING, {}),
    "constant": ({"relative": 0.1}, FLAT, FALLING, {}),
    "valley": ({}, AROUND, FALLING, {}),
    "exceeds": ({"bound": 0.25}, FALLING, FALLING - 0.25, {}),
    "above": (OTHER, FALLING, FALLING - 0.25, {"other": LOWER}),
    "below": (OTHER, FALLING - 0.25, FALLING, {"other": LOWER}),
    "agrees": (OTHER | {"relative": 0.1}, LOWER * 1.05, FALLING, {"other": LOWER, "error": 0.0 * X}),
    "closer": (OTHER | {"reference": {"method": "theory"}}, LOWER * 1.1, FALLING + 0.2, {"other": FALLING, "reference": LOWER}),
    "peak": (AT, PEAK, FALLING, {}),
    "zero_before": (AT, ONSET, RISING, {}),
    "zero_after": (AT, ONSET[::-1], RISING, {}),
    "counts": (AT, np.minimum(10 * X, 45), 6 * X, {"dead": 0 * X}),
}


@sketch("condition", *CONDITIONS)
def condition(kind):
    """What the condition itself says of two curves."""
    parameters, met, missed, series = CONDITIONS[kind]
    tested = REGISTRIES["condition"].make({"kind": kind} | parameters)
    figure, axes = row(2, 1.9, 1.5)
    for ax, values, expected in zip(axes, (met, missed), (True, False), strict=True):
        told = bool(tested.test(X, values, experiment=EXPERIMENT, **{"error": 0.0 * X} | series)[0])
        assert told == expected, (kind, told)
        for name, other in series.items():
            if name not in ("error", "dead"):
                ax.plot(X, other, "--", color=GREY)
                ax.text(X[-1], other[-1], name, color="#718096", fontsize=6, va="bottom", ha="right")
        if "bound" in parameters:
            ax.axhline(parameters["bound"], color=GREY, ls="--")
        if "formula" in parameters:
            ax.axvline(4.5, color=GREY, ls="--")
            ax.text(4.6, max(values) * 0.97, "capacity", color="#718096", fontsize=6, va="top")
        ax.plot(X, values, ".-", color=TEAL if told else ORANGE)
        ax.set(xticks=[], yticks=[], ylim=(-0.02, None), title="met" if told else "not met")
    return figure


# ---- Panels, from invented numbers

DRAWS = np.arange(6)


def noise(*shape):
    return np.random.default_rng(3).normal(size=(len(DRAWS), *shape))


def panel(spec, data, size=(3.2, 2.2), experiments=None):
    layout = Figure.make({"caption": "", "size": list(size), "mosaic": ["a"], "panels": {"a": spec | {"label": ""}}})
    return compose(layout, data, experiments or {})


@sketch("panel", "curves")
def curves(_):
    n = np.array([25, 50, 100, 200, 400, 800])
    bias = 0.3 + 2 / n[None] ** 0.5 + 0.02 * noise(len(n))
    shown = {"theory": bias, "gd": bias + 0.01 * noise(len(n))[::-1]}
    data = {f"mine/{name}": xr.Dataset({"bias": (("draw", "N"), v)}, {"draw": DRAWS, "N": n}) for name, v in shown.items()}
    data["mine/gp"] = xr.Dataset({"bias": ("draw", 0.3 + 0.01 * noise())}, {"draw": DRAWS})
    series = [{"experiment": "mine", "method": name} for name in ("theory", "gp", "gd")]
    return panel({"kind": "curves", "series": series, "quantity": "bias", "x": "N", "xscale": "log", "legend": True}, data)


@sketch("panel", "heatmap")
def heatmap(_):
    m, sigma = np.array([2, 4, 8, 16, 32]), np.array([0.1, 0.2, 0.5, 1.0])
    values = 0.15 + 0.03 * np.log2(m / 8)[:, None] ** 2 + 0.1 * np.log(sigma / 0.3) ** 2 + 0.005 * noise(5, 4)
    found = xr.Dataset({"error_rate": (("draw", "M", "sigma"), values)}, {"draw": DRAWS, "M": m, "sigma": sigma})
    spec = {"experiment": "mine", "method": "theory", "quantity": "error_rate", "x": "M", "y": "sigma"}
    more = {"xscale": "log", "yscale": "log", "best": {"by": "error_rate"}}
    return panel({"kind": "heatmap"} | spec | more, {"mine/theory": found})


@sketch("panel", "matrix")
def matrix(_):
    values = 0.1 * np.abs(noise(12, 12)) + np.kron(np.diag([1.0, 0.4, 0.3]), np.ones((4, 4)))
    found = xr.Dataset({"order_parameter": (("draw", "gate", "gate2"), values)}, {"draw": DRAWS})
    spec = {"experiment": "mine", "method": "theory", "quantity": "order_parameter", "amplitude": True, "blocks": 3}
    return panel({"kind": "matrix"} | spec, {"mine/theory": found})


@sketch("panel", "densities")
def densities(_):
    x, depth = np.linspace(-0.3, 1, 60), np.array([1, 2, 3, 4, 5])
    width = 0.25 / depth[:, None] ** 0.5
    values = np.exp(-0.5 * ((x - 0.5 / depth[:, None]) / width) ** 2) / width / 2.5 + 0.01 * np.abs(noise(5, 60))
    found = xr.Dataset(
        {"kernel_histogram": (("draw", "L", "kernel_element"), values)}, {"draw": DRAWS, "L": depth, "kernel_element": x}
    )
    spec = {"experiment": "mine", "method": "theory", "quantity": "kernel_histogram", "hue": "L", "legend": True}
    return panel({"kind": "densities"} | spec, {"mine/theory": found})


@sketch("panel", "kernel_profile")
def profile(_):
    theta, depth = np.linspace(-np.pi, np.pi, 60), np.array([0, 1, 2, 3])
    values = np.cos(theta) * (1 - np.abs(theta) / np.pi) ** depth[:, None] + 0.01 * noise(4, 60)
    found = xr.Dataset({"kernel_profile": (("draw", "L", "theta"), values)}, {"draw": DRAWS, "L": depth, "theta": theta})
    spec = {"experiment": "mine", "method": "gp", "legend": True}
    return panel({"kind": "kernel_profile"} | spec, {"mine/gp": found})


@sketch("panel", "drawing")
def drawing(_):
    return panel({"kind": "drawing", "of": "architecture"}, {}, (3.4, 3.2))
