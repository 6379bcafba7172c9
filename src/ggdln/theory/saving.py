"""Solutions in files: NetCDF, without pickle.

A file has what a solution follows from: the training set, or its sums over samples, the network, and what was found by search
or sampling. The rest is made again when it is loaded, by the same operations on the same numbers, so predictions are the same
bit by bit; a correction in 1/N is computed anew.
"""

import os
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import xarray as xr

from ggdln.core.errors import FileError, InputError
from ggdln.core.identity import digest
from ggdln.theory.exact import COEXISTING, ExactSolution
from ggdln.theory.gp import FeatureModel, GPSolution, KernelModel
from ggdln.theory.loops import LoopSolution, one_loop
from ggdln.theory.montecarlo import Form
from ggdln.theory.posterior import Posterior
from ggdln.theory.predictor import Predictor
from ggdln.theory.saddle import Problem, Whitened
from ggdln.theory.solution import NetworkShape, Solution
from ggdln.theory.training import BlockTraining, Training

FORMAT = "ggdln solution 2"
SUMS = ("gram", "overlap", "count", "square")
LAYER = ("matrix", "excess", "logs")


def save(solution: Predictor, path: str | os.PathLike[str]) -> None:
    """Write a solution of `solve`, `gp_limit` or `solve_exact` to a NetCDF file, whole or not at all."""
    kinds = {Solution: _theory, GPSolution: _gp, LoopSolution: _loop, ExactSolution: _exact}
    if type(solution) not in kinds:
        raise InputError(f"solution: got {type(solution).__name__}, accepted: {', '.join(kind.__name__ for kind in kinds)}")
    values = _Values()
    kinds[type(solution)](values, solution)
    dataset = values.dataset()
    dataset.attrs = {"format": FORMAT, "kind": type(solution).__name__, "ggdln": version("ggdln"), "sha256": digest(dataset)}
    path = Path(path)
    if not path.parent.is_dir():
        raise FileError(f"{path}: there is no folder {path.parent}")
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        dataset.to_netcdf(temporary, engine="scipy")
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def load(path: str | os.PathLike[str]) -> Predictor:
    """The solution in a file that its `save` has written: it predicts the same, bit by bit."""
    try:
        with xr.open_dataset(path, engine="scipy", decode_cf=False) as found:
            dataset = found.load()
    except FileNotFoundError:
        raise FileError(f"{path}: no such file") from None
    except Exception as error:  # whatever a damaged file makes of the reader
        told = next(iter(str(error).splitlines()), type(error).__name__)
        raise FileError(f"{path}: truncated, damaged or not a file of a solution ({told})") from error
    if dataset.attrs.get("format") != FORMAT:
        raise FileError(f"{path}: not a solution of this version of ggdln; accepted: {FORMAT!r}")
    if dataset.attrs.get("sha256") != digest(dataset):
        raise FileError(f"{path}: the content does not match its checksum")
    kinds = {"Solution": _load_theory, "GPSolution": _load_gp, "LoopSolution": _load_loop, "ExactSolution": _load_exact}
    # Numbers in the file have the other order of bytes.
    arrays = {str(name): array.values.astype(array.dtype.newbyteorder("=")) for name, array in dataset.data_vars.items()}
    try:
        return kinds[dataset.attrs["kind"]](_Values(arrays))
    except Exception as error:
        raise FileError(f"{path}: numbers that are no solution ({type(error).__name__}: {error})") from error


class _Values(dict):
    """Arrays and numbers by name; None is not kept, texts are kept as the numbers of their characters."""

    def put(self, prefix, owner, names):
        for name in names:
            self[prefix + name] = getattr(owner, name)

    def dataset(self):
        variables = {}
        for name, value in self.items():
            if isinstance(value, str):
                value = np.frombuffer(value.encode(), dtype=np.int8)
            if value is not None:
                array = np.asarray(value)
                array = array if array.dtype in (np.float64, np.int8) else array.astype(np.int32)
                variables[name] = xr.Variable([f"{name}_{i}" for i in range(array.ndim)], array)
        return xr.Dataset(variables)

    def number(self, name):
        return self[name].item()

    def optional(self, name):
        return self[name].item() if name in self else None

    def text(self, name):
        return self[name].tobytes().decode()

    def several(self, name):
        """One number, or a tuple of them."""
        return tuple(self[name].tolist()) if self[name].ndim else self[name].item()


def _training(values, training):
    """A training set: its live samples, or its sums where only these are there."""
    values.put("training_", training, ("depth", "shape", "outputs", "dead", "dead_square", "basis", "overlaps"))
    if isinstance(training, BlockTraining):
        values.put("sum_", training.form(1.0), SUMS)
    else:
        values.put("training_", training, ("x", "gates", "y", "wanted"))


def _load_training(values):
    outputs, basis = values.optional("training_outputs"), values.text("training_basis")
    depth = values.number("training_depth")
    if "sum_gram" in values:
        training = BlockTraining.of_sums(values.several("training_shape"), outputs, depth, basis, _sums(values))
    else:
        y = values["training_y"]
        arrays = values["training_x"], values["training_gates"], y[:, 0] if outputs is None else y
        training = Training.of(*arrays, depth=depth, basis=basis, form=values.text("training_wanted"))
    training.dead, training.dead_square = values.number("training_dead"), values.number("training_dead_square")
    training.overlaps = values["training_overlaps"]
    return training


def _sums(values):
    sums = {name: values[f"sum_{name}"] for name in SUMS}
    return sums | {"count": values.number("sum_count"), "square": values.number("sum_square")}


def _theory(values, solution):
    _training(values, solution.training)
    values.put("", solution, ("width", "sigma", "temperature", "residual", "hamiltonian", "evaluations", "branch"))
    order = sorted(solution.starts, key=lambda name: solution.starts[name])
    values["start_names"] = "\n".join(order)
    values["start_values"] = [solution.starts[name] for name in order]
    for i, layers in enumerate(solution._minima):
        for level, layer in enumerate(layers):
            values.put(f"minimum_{i}_level_{level}_", layer, LAYER)


def _load_theory(values):
    training = _load_training(values)
    shape = NetworkShape(values.several("width"), values.several("sigma"), training.depth)
    temperature, names = values.number("temperature"), values.text("start_names").split("\n")
    problem = Problem(training.likelihood(shape.scale, temperature), shape.levels)
    problem.evaluations = values.number("evaluations")
    found = {}
    for i, (name, value) in enumerate(zip(names, values["start_values"].tolist(), strict=True)):
        layers = [Whitened(*(values[f"minimum_{i}_level_{level}_{part}"] for part in LAYER)) for level in range(training.depth)]
        found[name] = SimpleNamespace(value=value, layers=layers, residual=values.number("residual"))
    lowest, search = found[names[0]], SimpleNamespace(found=found, name=values.text("branch"))
    solution = Solution(training, shape, temperature, lowest.layers, problem, lowest, search)
    solution.hamiltonian, solution.starts = values.number("hamiltonian"), {name: state.value for name, state in found.items()}
    return solution


def _gp(values, solution):
    model = solution._model
    values.put("", solution, ("temperature", "sigma"))
    names = ("depth", "scale", "shape", "outputs", "dead", "dead_square", "fitted", "train_error")
    values.put("model_", model, names)
    if isinstance(model, KernelModel):
        values.put("model_", model, ("x", "gates", "y", "rank_tolerance"))
    else:
        values.put("sum_", model.form, SUMS)


def _load_gp(values):
    depth, scale, temperature = values.number("model_depth"), values.number("model_scale"), values.number("temperature")
    if "sum_gram" in values:
        outputs = values.optional("model_outputs")
        training = BlockTraining.of_sums(values.several("model_shape"), outputs, depth, "monomial", _sums(values))
        training.dead, training.dead_square = values.number("model_dead"), values.number("model_dead_square")
        model = FeatureModel(training, scale, temperature)
    else:
        arrays = (values[f"model_{name}"] for name in ("x", "gates", "y"))
        model = KernelModel(*arrays, depth, scale, temperature, values.number("model_rank_tolerance"))
        model.dead, model.dead_square = values.number("model_dead"), values.number("model_dead_square")
    model.fitted, model.train_error = values.get("model_fitted"), values.number("model_train_error")
    return GPSolution(model, temperature, values.several("sigma"))


def _loop(values, solution):
    _theory(values, solution.saddle)


def _load_loop(values):
    return one_loop(_load_theory(values), 1)


def _exact(values, solution):
    _theory(values, solution.saddle)
    values["seed"] = str(solution.seed)
    values["exact_evaluations"] = solution.evaluations
    for i, mode in enumerate(solution._modes):
        values.put(f"mode_{i}_", mode.form, Form.__dataclass_fields__)
    values["chain_mode"] = [solution._modes.index(chain.mode) for chain in solution._chains]
    for i, chain in enumerate(solution._chains):
        values.put(f"chain_{i}_", chain, ("u", "energies", "acceptance", "kicks"))


def _load_exact(values):
    saddle = _load_theory(values)
    modes = []
    for i, layers in enumerate(saddle.coexisting(COEXISTING)):
        form = Form(**{name: values[f"mode_{i}_{name}"] for name in Form.__dataclass_fields__})
        modes.append(SimpleNamespace(posterior=Posterior(saddle, layers), form=form))
    chains = []
    for i, number in enumerate(values["chain_mode"].tolist()):
        found = {name: values[f"chain_{i}_{name}"] for name in ("u", "energies")}
        found |= {name: values.number(f"chain_{i}_{name}") for name in ("acceptance", "kicks")}
        chains.append(SimpleNamespace(mode=modes[number], posterior=modes[number].posterior, **found))
    solution = ExactSolution(saddle, modes, chains, int(values.text("seed")))
    solution.evaluations = values.number("exact_evaluations")
    return solution
