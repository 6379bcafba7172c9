"""The same questions put to other packages: what they take, and whether they give the same numbers.

    python benchmarks/compare.py [--environments FOLDER] [--samples P]

Each package has an environment of its own, in the versions of `OTHERS`, which pip makes in FOLDER if it isn't there (without
FOLDER, in a temporary one). Problems are files that all read, results are files that are compared here. Seconds are CPU time of
one thread: of the first call, with imports and all that is compiled in it, and of the fastest of three more. Writes
docs/compare.md.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
OUTPUT = ROOT / "docs/compare.md"
OTHERS = {
    # name of a worker: what pip installs for it
    "scikit-learn": ["scikit-learn==1.9.1", "numpy==2.4.6"],
    "gpytorch": ["gpytorch==1.15.2", "torch==2.13.0", "numpy==2.4.6"],
    "deepbays": ["deepbays==0.1.11", "torch==2.13.0", "torchvision==0.28.0", "numpy==2.4.6"],
    "neural-tangents": ["neural-tangents==0.6.5", "jax==0.4.38", "jaxlib==0.4.38", "numpy==2.4.6"],
}
DIGITS = {"kind": "mnist_parity", "P_t": 200}
TEMPERATURE = 0.01

ABILITIES = [
    # what, then for each of COLUMNS whether it can, or what
    [
        "networks",
        "deep linear, gated",
        "the same",
        "attention, fixed heads",
        "erf, ReLU; convolutions",
        "almost any",
        "–",
        "–",
    ],
    ["infinite width", "yes", "yes", "yes", "yes", "**yes, and the NTK**", "as a kernel", "as a kernel"],
    ["finite width: order parameters", "matrices", "matrices", "matrices", "a number for each layer", "no", "no", "no"],
    ["depth", "12 and more", "4, with six gates", "2, at least", "any", "any", "–", "–"],
    ["beyond the saddle point", "one loop, exact posterior", "no", "NUTS on weights", "with one layer", "no", "no", "no"],
    ["trained and sampled networks", "yes", "no", "NUTS", "yes", "**at infinite width**", "–", "–"],
    [
        "values chosen by evidence",
        "noise, prior, width",
        "no",
        "no",
        "no",
        "no",
        "**noise, any kernel**",
        "noise and kernel",
    ],
    ["more samples than a kernel fits in memory", "yes, in blocks", "no", "no", "no", "no", "**yes, approximately**", "no"],
    ["GPU", "simulations", "no", "yes", "with one layer", "**yes**", "**yes**", "no"],
]
COLUMNS = ["ggdln", "the paper's formulation", "attention-paths", "deepbays", "neural-tangents", "gpytorch", "scikit-learn"]
ELSEWHERE = """\
*attention-paths* is the code of Tiberi et al., *Dissecting the Interplay of Attention Paths in a Statistical Mechanics Theory
of Transformers* (2024): a theory of the same form, with attention heads in the place of gates. It is a set of scripts for two
experiments and not a package that takes other data, so it was read and not timed.

## Where to use the other one

- **neural-tangents** for networks that are not linear in each layer, for convolutions and attention, and for training by
  gradient descent at infinite width.
- **gpytorch** if what you want is a good Gaussian process: kernels of all sorts, 100,000 samples, GPUs.
- **scikit-learn** for a Gaussian process or ridge regression on a few thousand samples and nothing else; the
  [estimators](tutorials/estimators.md) here fit into its pipelines.
- **deepbays** for erf and ReLU networks of finite width, and for convolutional ones; and for linear networks of two and
  more layers without gates, where it is faster.
- **attention-paths** for transformers.
"""


# ---- What each package does with a problem: mean at the test inputs. Imports are inside, since each has its environment.


def kernels(p):
    """The kernel of the infinitely wide network among training inputs, from test to training inputs; sigma = 1."""

    def kernel(x, g, x2, g2):
        return x @ x2.T / x.shape[1] * (g @ g2.T / g.shape[1]) ** p["depth"]

    train = p["x"], p["g"]
    return kernel(*train, *train), kernel(p["x_test"], p["g_test"], *train)


def ggdln_limit(p):
    import ggdln

    solution = ggdln.gp_limit(p["x"], p["g"], p["y"], depth=p["depth"], temperature=TEMPERATURE)
    return solution.predict(p["x_test"], p["g_test"])[0]


def ggdln_finite(p):
    import ggdln

    solution = ggdln.solve(p["x"], p["g"], p["y"], width=p["width"], depth=p["depth"], temperature=TEMPERATURE)
    return solution.predict(p["x_test"], p["g_test"])[0]


def paper_finite(p):
    """H over matrices of side M^l by L-BFGS, to the residual at which `ggdln.solve` stops."""
    import torch
    from theory import PaperFormulation

    class Warm(PaperFormulation):
        def data(self, roots):
            feature = torch.ones(len(self.g), 1, dtype=torch.float64)
            for root in roots:
                feature = torch.einsum("pi,pj->pij", feature, self.g).reshape(len(self.g), -1) @ root
            kernel = feature @ feature.T / self.gates**self.depth * self.k0
            factor = torch.linalg.cholesky(kernel + TEMPERATURE * torch.eye(len(kernel)))
            solved = torch.linalg.solve_triangular(factor, self.y[:, None], upper=False)
            self.quadratic, self.roots, self.factor = solved.square().sum().item(), roots, factor
            return solved.square().sum() / 2 + factor.diagonal().log().sum()

    problem = Warm(p["x"], p["g"], p["y"], float(p["width"]), p["depth"], 1.0)
    problem.lbfgs(1e-8, -np.inf, 100.0)
    with torch.no_grad():
        new, old = torch.tensor(p["g_test"]), problem.g
        a, b = torch.ones(len(new), 1, dtype=torch.float64), torch.ones(len(old), 1, dtype=torch.float64)
        for root in problem.roots:
            a, b = (torch.einsum("pi,pj->pij", f, g).reshape(len(g), -1) @ root for f, g in ((a, new), (b, old)))
        live = p["g"].any(axis=1)
        kernel = a @ b.T / p["g"].shape[1] ** p["depth"] * torch.tensor(p["x_test"] @ p["x"][live].T / p["x"].shape[1])
        return (kernel @ torch.cholesky_solve(problem.y[:, None], problem.factor))[:, 0].numpy()


def sklearn_limit(p):
    """A kernel of one's own, since kernels here don't know which columns are gates."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import Kernel

    size, depth = p["x"].shape[1], p["depth"]

    class Gated(Kernel):
        def __init__(self):
            """Without parameters."""

        def __call__(self, a, b=None, eval_gradient=False):
            b = a if b is None else b
            return a[:, :size] @ b[:, :size].T / size * (a[:, size:] @ b[:, size:].T / (a.shape[1] - size)) ** depth

        def diag(self, a):
            return np.square(a[:, :size]).mean(axis=1) * np.square(a[:, size:]).mean(axis=1) ** depth

        def is_stationary(self):
            return False

    learned = GaussianProcessRegressor(Gated(), alpha=TEMPERATURE, optimizer=None).fit(np.hstack([p["x"], p["g"]]), p["y"])
    return learned.predict(np.hstack([p["x_test"], p["g_test"]]))


def gpytorch_limit(p):
    """A product of linear kernels, one on inputs and one for each layer on gates."""
    import gpytorch
    import torch

    torch.set_default_dtype(torch.float64)
    size, gates = p["x"].shape[1], p["g"].shape[1]
    train, test = (torch.tensor(np.hstack([p[f"x{a}"], p[f"g{a}"]])) for a in ("", "_test"))

    def linear(columns):
        kernel = gpytorch.kernels.LinearKernel(active_dims=torch.arange(*columns))
        kernel.variance = 1 / (columns[1] - columns[0])
        return kernel

    class Model(gpytorch.models.ExactGP):
        def __init__(self):
            likelihood = gpytorch.likelihoods.GaussianLikelihood()
            likelihood.noise = TEMPERATURE
            super().__init__(train, torch.tensor(p["y"]), likelihood)
            self.kernel = linear((0, size))
            for _ in range(p["depth"]):
                self.kernel = self.kernel * linear((size, size + gates))

        def forward(self, x):
            return gpytorch.distributions.MultivariateNormal(torch.zeros(len(x)), self.kernel(x))

    model = Model().eval()
    with torch.no_grad(), gpytorch.settings.fast_computations(False, False, False):
        return model(test).mean.numpy()


def tangents_limit(p):
    """Its own layers if the one gate is open; with gates the kernel is ours, and the inference theirs."""
    import jax

    jax.config.update("jax_enable_x64", True)
    import neural_tangents as nt
    from neural_tangents import stax

    y = p["y"][:, None]
    if p["g"].shape[1] > 1:
        among, between = kernels(p)
        predict = nt.predict.gp_inference(among, y, diag_reg=TEMPERATURE, diag_reg_absolute_scale=True)
        return np.asarray(predict(get="nngp", k_test_train=between))[:, 0]
    layers = [stax.Dense(100, b_std=None) for _ in range(p["depth"])]
    kernel = stax.serial(*layers, stax.Dense(1, b_std=None))[2]
    predict = nt.predict.gradient_descent_mse_ensemble(kernel, p["x"], y, diag_reg=TEMPERATURE, diag_reg_absolute_scale=True)
    return np.asarray(predict(x_test=p["x_test"], get="nngp"))[:, 0]


stand_ins = []
"""Declared operators, which vanish with the object that has declared them."""


def deepbays_network(p, infinite=False):
    from unittest import mock

    import torch

    if torch.version.cuda is None and not stand_ins:
        # It imports torchvision, built for GPUs, which looks for these operators, and cupy, which it doesn't use on a CPU.
        stand_ins.append(torch.library.Library("torchvision", "DEF"))
        for operator in ("nms", "qnms"):
            stand_ins[0].define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        sys.modules |= dict.fromkeys(("cupy", "cupy.cuda", "cupy.linalg"), mock.MagicMock())
    import deepbays
    import deepbays.rkgp

    # Its functions look for a kernel by this name.
    deepbays.kernels.kernel_id = deepbays.kernels.kernel_id_torch = lambda xx, xy, yy: xy
    # That of one layer fails where the kernel hasn't full rank, so all depths have the class of deep ones.
    model = deepbays.rkgp.FC_deep(p["depth"], int(p["width"]), TEMPERATURE, [1.0] * (p["depth"] + 1), act="id")
    model.preprocess(p["x"], torch.tensor(p["y"]))
    model.setIW() if infinite else model.optimize()
    return np.asarray(model.predict(p["x_test"]))


def deepbays_limit(p):
    return deepbays_network(p, infinite=True)


WORKERS = {
    ("ggdln", "limit"): ggdln_limit,
    ("ggdln", "finite"): ggdln_finite,
    ("paper's formulation", "finite"): paper_finite,
    ("scikit-learn", "limit"): sklearn_limit,
    ("gpytorch", "limit"): gpytorch_limit,
    ("neural-tangents", "limit"): tangents_limit,
    ("deepbays", "limit"): deepbays_limit,
    ("deepbays", "finite"): deepbays_network,
}


def work(package, question, problem, result):
    """Answer a question in this process: mean at the test inputs, and seconds."""
    with np.load(problem) as file:
        p = {name: value if value.ndim else value.item() for name, value in file.items()}
    seconds = []
    for _ in range(4):
        begin = time.process_time()
        mean = WORKERS[package, question](p)
        seconds.append(time.process_time() - begin)
    np.savez(result, mean=mean, first=seconds[0], again=min(seconds[1:]))


# ---- Here all are put side by side


def environment(package, folder):
    """The Python of a package: that which runs this for what is ours, and otherwise one in a folder."""
    if package not in OTHERS:
        return sys.executable
    place = folder / package
    if not (place / "ready").exists():
        subprocess.run([sys.executable, "-m", "venv", place], check=True)
        subprocess.run([place / "bin/python", "-m", "pip", "install", "--quiet", *OTHERS[package]], check=True)
        (place / "ready").touch()
    return place / "bin/python"


def problem(folder, samples, gates, depth, width):
    """A file with digits, gates and a network. One gate is always open: a deep linear network."""
    import ggdln

    task = ggdln.make_task(DIGITS | {"P": samples}, seed=0)
    kind = {"kind": "random", "M": gates, "b": 0.0} if gates > 1 else {"kind": "open", "M": 1}
    fitted = ggdln.fit_gates(kind, task.x, seed=0)
    file = folder / f"problem_{gates}_{depth}_{width}.npz"
    arrays = {"x": task.x, "y": task.y, "x_test": task.x_test, "g": fitted(task.x), "g_test": fitted(task.x_test)}
    np.savez(file, depth=depth, width=width, **arrays)
    return file


def answer(package, question, file, folder, environments):
    """What a package gives for a problem: seconds of the first call and of others, and the mean."""
    result = folder / "result.npz"
    command = [environment(package, environments), __file__, "--work", package, question, file, result]
    threads = {name: "1" for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
    alone = {"XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run([*map(str, command)], env=os.environ | threads | alone, capture_output=True, text=True)
    if done.returncode:
        return {"error": done.stderr.strip().splitlines()[-1]}
    with np.load(result) as found:
        return {"first": float(found["first"]), "again": float(found["again"]), "mean": found["mean"]}


QUESTIONS = {
    # heading: (question, M, depths, width, packages)
    "Infinite width, six gates": (
        "limit", 6, (1, 2), 100, ("ggdln", "scikit-learn", "gpytorch", "neural-tangents")
    ),
    "Infinite width, no gates": ("limit", 1, (1, 3), 100, ("ggdln", "neural-tangents", "deepbays")),
    "Finite width N = 100, no gates": ("finite", 1, (1, 2, 3), 100, ("ggdln", "deepbays")),
    "Finite width N = 100, six gates": ("finite", 6, (1, 2, 3), 100, ("ggdln", "paper's formulation")),
}  # fmt: skip
NOTES = {
    "Infinite width, six gates": "A Gaussian process with the kernel $(x \\cdot x' / N_0) (g \\cdot g' / M)^L$. It is given to"
    " scikit-learn as a kernel class of ten lines, to gpytorch as a product of linear kernels, to neural-tangents as a matrix.",
    "Infinite width, no gates": "A deep linear network, with the layers of neural-tangents and of deepbays themselves.",
    "Finite width N = 100, no gates": "The same network at finite width: a number for each layer is found at the saddle point."
    " From two layers on there may be several minima, of which ggdln finds the lowest; that is what takes its time here.",
    "Finite width N = 100, six gates": "Matrices of side $M^l$ in the paper's formulation (L-BFGS, gradients by torch), of"
    " symmetric powers here; both stop at a residual of 1e-8. [Depths up to 12](benchmarks/theory.md).",
}


def measured(samples, folder, environments):
    """The tables, as lines."""
    lines = []
    for heading, (question, gates, depths, width, packages) in QUESTIONS.items():
        lines += ["", f"### {heading}", "", NOTES[heading], ""]
        lines += ["| L | package | s, first call | s, again | largest difference |", "|--:|---|--:|--:|--:|"]
        for depth in depths:
            file = problem(folder, samples, gates, depth, width)
            reference = None
            for package in packages:
                found = answer(package, question, file, folder, environments)
                if "error" in found:
                    lines.append(f"| {depth} | {package} | – | – | fails: {found['error'][:100]} |")
                    print(lines[-1], flush=True)
                    continue
                reference = found["mean"] if reference is None else reference
                off = np.abs(found["mean"] - reference).max() / np.abs(reference).max()
                told = "" if package == "ggdln" else f"{off:.0e}"
                lines.append(f"| {depth} | {package} | {found['first']:.2f} | {found['again']:.2f} | {told} |")
                print(lines[-1], flush=True)
    return lines


def table(rows):
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def document(samples, lines):
    versions = ", ".join(f"{name} {pins[0].partition('==')[2]}" for name, pins in OTHERS.items())
    abilities = table([["", *COLUMNS], ["---"] * (len(COLUMNS) + 1), *ABILITIES])
    head = f"""\
# How it compares

What this library does beside what else there is: the same questions, the same numbers, the same machine.

{abilities}

{ELSEWHERE}
## The same problem, in seconds

Written by `python benchmarks/compare.py`: {samples} digits of MNIST, even or odd, {DIGITS["P_t"]} test inputs, sigma = 1,
T = {TEMPERATURE}; one thread, seconds of CPU time beside other work. The first call includes imports and what is compiled.
*Largest difference*: of the mean at test inputs from that of ggdln, as a share of the largest mean.
{versions}.
"""
    return "\n".join([head.rstrip(), *lines, ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--environments", type=Path, help="where the environments of other packages are kept")
    parser.add_argument("--samples", type=int, default=600, help="training inputs")
    parser.add_argument("--work", nargs=4, metavar=("PACKAGE", "QUESTION", "PROBLEM", "RESULT"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        return work(*options.work)
    with tempfile.TemporaryDirectory() as folder:
        environments = (options.environments or Path(folder)).resolve()
        lines = measured(options.samples, Path(folder), environments)
    OUTPUT.write_text(document(options.samples, lines))


if __name__ == "__main__":
    main()
