"""Experiments: one task, one choice of gates and one network, swept over axes, for several methods and independent draws.

An `Experiment` turns into one `Curve` per method. The axes of a sweep are named by the parameter they vary, such as
"gates.M" or "network.L". Axes of the task and the gates are *outer*: each of their points has its own data or gates. Axes of
the network are *inner*: their points share data and gates and are computed together, in order. A curve is computed in pieces,
each some consecutive outer points, and those in blocks of draws; the numbers don't depend on the cut.

Tasks, gates and pieces are identified by a hash of all that determines their numbers. Whatever has the same identifier is the
same, so experiments share what they have in common, and a further point of a sweep leaves the others as they are.
"""

import itertools
from dataclasses import dataclass, replace

import numpy as np
import xarray as xr

from ggdln.core.identity import identifier
from ggdln.core.kinds import REGISTRIES
from ggdln.experiments.methods import Method, Point


@dataclass(frozen=True)
class Piece:
    """What one file of a curve holds, in plain values: some outer points, all inner ones, for one method.

    points: [{"task": spec, "gates": spec}], without gates for a method that has none; networks: parameters of the inner
    points; settings: those of the method.
    """

    method: str
    settings: dict
    points: list
    networks: list
    observables: tuple
    seed: int

    @property
    def id(self):
        return identifier(self.method, vars(self))

    @property
    def gating(self):
        """Identifies the gates at its points; None if it has none."""
        gates = self.points[0].get("gates")
        return gates and identifier(gates["kind"], self.seed, self.points)

    def kind(self, runs=0):
        """The method with its settings; `runs` of them where it has been split."""
        method = REGISTRIES["method"].get(self.method)
        return method(**({method.split: max(runs, 2)} if method.split else {}) | self.settings)

    def of_runs(self):
        """The piece whose single runs this one averages: how many there are and what is observed doesn't matter to any."""
        split = REGISTRIES["method"].get(self.method).split
        return replace(self, settings={k: value for k, value in self.settings.items() if k != split}, observables=())


@dataclass(frozen=True)
class Curve:
    """One method for one experiment: pieces in the order of the outer points, axes by short name, outer ones first."""

    experiment: str
    method: str
    axes: dict
    pieces: tuple
    draws: int
    draws_per_job: int
    runs_per_job: int

    @property
    def name(self):
        return f"{self.experiment}/{self.method}"


@dataclass(frozen=True)
class Experiment:
    """One task, gates and network with their sweep, in plain values.

    methods: name -> `Method` with its settings; batch: draws, points and runs in one job; varied: how a variant differs from
    its base, in words.
    """

    name: str
    task: dict
    gates: dict
    network: dict
    sweep: dict
    methods: dict[str, Method]
    observables: tuple
    draws: int
    seed: int
    batch: dict
    varied: str = ""

    def parameters(self):
        """What captions, conditions and panels may ask for."""
        names = ("task", "gates", "network", "sweep", "draws", "seed", "varied")
        return {name: getattr(self, name) for name in names}

    def curve(self, name):
        """The curve of one of its methods."""
        method = self.methods[name]
        outer = ("task", "gates") if method.gated else ("task",)

        def axes(sections):
            found = {axis: values for axis, values in self.sweep.items() if axis.split(".")[0] in sections}
            kept = {axis: values for axis, values in found.items() if axis.split(".")[1] not in method.ignores}
            return {axis: [v for v in values if v in (method.at or {}).get(axis, values)] for axis, values in kept.items()}

        points = self._grid(outer, axes(outer))
        kept = {key: value for key, value in self.network.items() if key not in method.ignores}
        networks = [point["network"] for point in replace(self, network=kept)._grid(("network",), axes(("network",)))]
        size = self.batch["points"]
        settings, observables = method.settings(), tuple(self.observables)
        pieces = [
            Piece(name, settings, points[first : first + size], networks, observables, self.seed)
            for first in range(0, len(points), size)
        ]
        return Curve(
            experiment=self.name,
            method=name,
            axes={axis.split(".")[1]: values for axis, values in (axes(outer) | axes(("network",))).items()},
            pieces=tuple(pieces),
            draws=method.draws or self.draws,
            draws_per_job=self.batch["draws"],
            runs_per_job=self.batch["runs"],
        )

    def _grid(self, sections, axes):
        """Values of the sections at every point of the axes."""
        points = []
        for values in itertools.product(*axes.values()):
            point = {section: dict(getattr(self, section)) for section in sections}
            for axis, value in zip(axes, values, strict=True):
                section, key = axis.split(".")
                point[section][key] = value
            points.append(_settled(point))
        return points


def _settled(point):
    """A point with what files of the user's decide, where its kinds read such: checksums and the number of gates.

    That makes the content of a file part of all identifiers.
    """
    reading = {s for s in ("task", "gates") if s in point and REGISTRIES[s].get(point[s]["kind"]).from_file}
    if reading:
        task = REGISTRIES["task"].make(point["task"]).settled()
        settled = {"task": task}
        if "gates" in reading:
            settled["gates"] = REGISTRIES["gates"].make(point["gates"]).settled(task)
        point = point | {section: settled[section].spec() for section in reading}
    return point


def measure_piece(piece, draws, sample_of, measure, *, report=None, **place):
    """Apply `measure` to every draw and outer point of a piece.

    sample_of(draw, point) gives a `Sample`; measure(point) returns one dict of DataArrays or numbers for each network of a
    `Point`. Returns a dataset over (draw, point), point counting outer points and networks. `report` is called with a line of
    progress after each draw and outer point; `place` has the runs, machine and state of the points.
    """
    networks, state = piece.networks, place.pop("state", None)
    rows, total, done = [], len(draws) * len(piece.points), 0
    for draw in draws:
        row = []
        for p in range(len(piece.points)):
            where = None if state is None else state / f"draw_{draw}_point_{p}"
            point = Point(sample_of(draw, p), networks, piece.observables, piece.seed, draw, p, state=where, **place)
            results = [xr.Dataset(values) for values in measure(point)]
            row += [values.expand_dims(draw=[draw], point=[p * len(networks) + i]) for i, values in enumerate(results)]
            done += 1
            if report:
                report(f"draw {draw}, point {p}: {done} of {total} done")
        rows.append(concat(row, "point"))
    return concat(rows, "draw")


def concat(datasets, dim):
    """Datasets along a dimension; where they differ in size along another one, such as the gates, padded with NaN."""
    sizes = [set(dataset.sizes.items()) for dataset in datasets]
    uneven = {name for name, _ in set.union(*sizes) - set.intersection(*sizes)} - {dim}

    def numbered(dataset):
        names = uneven & set(dataset.dims) - set(dataset.coords)
        return dataset.assign_coords({name: np.arange(dataset.sizes[name]) for name in names})

    return xr.concat(map(numbered, datasets), dim, join="outer")


def assemble(axes, draws, pieces):
    """One dataset over (draw, *axes), for the first `draws` draws, from the datasets of each piece in their order."""
    joined, first = [], 0
    for parts in pieces:
        piece = concat(parts, "draw").sortby("draw").drop_duplicates("draw").sel(draw=slice(0, draws - 1))
        joined.append(piece.assign_coords(point=piece.point + first))
        first += piece.sizes["point"]
    flat = concat(joined, "point")
    expected = int(np.prod([len(values) for values in axes.values()]))
    if (flat.sizes["point"], flat.sizes["draw"]) != (expected, draws):
        raise ValueError(f"{flat.sizes['point']} of {expected} points and {flat.sizes['draw']} of {draws} draws are there")
    variables = {}
    for name, variable in flat.data_vars.items():
        others = [dim for dim in variable.dims if dim not in ("draw", "point")]
        values = variable.transpose("draw", "point", *others).values
        shape = (values.shape[0], *map(len, axes.values()), *values.shape[2:])
        variables[name] = (("draw", *axes, *others), values.reshape(shape))
    coordinates = {name: coord for name, coord in flat.coords.items() if "point" not in coord.dims}
    return xr.Dataset(variables, coords=coordinates | {name: list(values) for name, values in axes.items()})
