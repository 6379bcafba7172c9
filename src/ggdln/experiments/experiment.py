"""Experiments: one task, one choice of gates and one network, swept over axes, for several methods and independent draws.

An `Experiment` turns into one `Curve` per method. The axes of a sweep are named by the parameter they vary, such as
"gates.M" or "network.L". Axes of the task and the gates are *outer*: each of their points has its own data or gates. Axes of
the network are *inner*: their points share data and gates and are computed together, in order. Work is split into chunks of
draws and outer points; the numbers don't depend on the split.

Tasks, gates and curves are identified by a hash of all that determines their numbers. Whatever has the same identifier is the
same, so experiments share what they have in common.
"""

import itertools
from dataclasses import asdict, dataclass, field, replace

import numpy as np
import xarray as xr

from ggdln.core.identity import identifier

OUTER, INNER = ("task", "gates"), ("network",)
IGNORED = {"gp": ("N",), "gd": ("T",), "relu": ("L", "T")}
"""Network parameters on which a method doesn't depend; an axis over one of them is dropped for that method."""


@dataclass(frozen=True)
class Chunk:
    """Draws first_draw <= d < last_draw and outer points first_point <= p < last_point of a curve."""

    first_draw: int
    last_draw: int
    first_point: int = 0
    last_point: int = 1

    @property
    def draws(self):
        return range(self.first_draw, self.last_draw)

    @property
    def points(self):
        return range(self.first_point, self.last_point)


@dataclass(frozen=True)
class Curve:
    """One method for one experiment: plain values only, so it can be passed between processes as `asdict`."""

    method: str
    task: dict
    gates: dict
    network: dict
    sweep: dict
    observables: tuple
    seed: int
    settings: dict = field(default_factory=dict)

    @property
    def id(self):
        content = asdict(self)
        return identifier(self.method, content)

    @property
    def gating_id(self):
        """Identifies the gates at all outer points."""
        return identifier(self.gates["kind"], self.seed, self.task, self.gates, self._axes(OUTER))

    def axes(self):
        """All axes, outer ones first: short name -> values."""
        return {name.split(".")[1]: values for name, values in (self._axes(OUTER) | self._axes(INNER)).items()}

    def outer_points(self):
        """Parameters at each outer point: [{"task": ..., "gates": ...}]."""
        return [{"task": point["task"], "gates": point["gates"]} for point in self._grid(OUTER)]

    def inner_points(self):
        """Network parameters at each inner point."""
        return [point["network"] for point in self._grid(INNER)]

    def chunks(self, draws, *, draws_per_job, points_per_job):
        """The work for `draws` draws, cut into chunks."""
        n_points = len(self.outer_points())
        return [
            Chunk(d, min(d + draws_per_job, draws), p, min(p + points_per_job, n_points))
            for d in range(0, draws, draws_per_job)
            for p in range(0, n_points, points_per_job)
        ]

    def of_runs(self):
        """The curve whose single runs this one averages: how many runs there are doesn't matter to any of them."""
        return replace(self, settings={key: value for key, value in self.settings.items() if key != "runs"})

    def _axes(self, sections):
        return {name: values for name, values in self.sweep.items() if name.split(".")[0] in sections}

    def _grid(self, sections):
        axes = self._axes(sections)
        points = []
        for values in itertools.product(*axes.values()):
            point = {section: dict(getattr(self, section)) for section in sections}
            for name, value in zip(axes, values, strict=True):
                section, key = name.split(".")
                point[section][key] = value
            points.append(point)
        return points


@dataclass(frozen=True)
class Experiment:
    """One task, gates and network with their sweep.

    `methods` maps each method to its settings, where "draws" may be fewer than those of the experiment.
    """

    name: str
    task: dict
    gates: dict
    network: dict
    sweep: dict
    methods: dict
    observables: tuple
    draws: int
    seed: int
    draws_per_job: int
    points_per_job: int
    runs_per_job: int = 1

    def curve(self, method):
        ignored = IGNORED.get(method, ())
        gated = method != "relu"

        def matters(axis):
            section, key = axis.split(".")
            return key not in ignored and (gated or section != "gates")

        return Curve(
            method=method,
            task=self.task,
            gates=self.gates if gated else {"kind": "open", "M": 1},
            network={key: value for key, value in self.network.items() if key not in ignored},
            sweep={axis: values for axis, values in self.sweep.items() if matters(axis)},
            observables=tuple(self.observables),
            seed=self.seed,
            settings={key: value for key, value in self.methods[method].items() if key != "draws"},
        )

    def curves(self):
        return [self.curve(method) for method in self.methods]

    def chunks(self, curve):
        draws = self.methods[curve.method].get("draws", self.draws)
        return curve.chunks(draws, draws_per_job=self.draws_per_job, points_per_job=self.points_per_job)


def run_chunk(curve, chunk, task_of, gates_of, measure, report=None):
    """Apply `measure` to every draw and outer point of a chunk.

    task_of(draw, point) and gates_of(draw, point) give the `Task` and the `Gates`; measure(curve, task, gates, draw, point)
    returns one dict of DataArrays or numbers for each inner point. Returns a dataset over (draw, point), point counting all
    points of the curve. `report` is called with a line of progress after each draw and outer point.
    """
    n_inner = len(curve.inner_points())
    rows, total = [], len(chunk.draws) * len(chunk.points)
    for draw in chunk.draws:
        row = []
        for point in chunk.points:
            results = measure(curve, task_of(draw, point), gates_of(draw, point), draw, point)
            row += [
                xr.Dataset(values).expand_dims(draw=[draw], point=[point * n_inner + i]) for i, values in enumerate(results)
            ]
            if report:
                report(f"draw {draw}, point {point}: {len(rows) * len(chunk.points) + len(row) // n_inner} of {total} done")
        rows.append(xr.concat(row, "point", join="outer"))
    return xr.concat(rows, "draw", join="outer")


def assemble(curve, parts):
    """One dataset over (draw, *axes) from the datasets of all chunks of a curve."""
    by_draw = {}
    for part in parts:
        by_draw.setdefault(int(part.draw[0]), []).append(part)
    rows = [xr.concat(row, "point", join="outer").sortby("point") for row in by_draw.values()]
    flat = xr.concat(rows, "draw", join="outer").sortby("draw")
    axes = curve.axes()
    expected = int(np.prod([len(values) for values in axes.values()]))
    if flat.sizes["point"] != expected:
        raise ValueError(f"{curve.id}: {flat.sizes['point']} of {expected} points are there")
    variables = {}
    for name, variable in flat.data_vars.items():
        others = [dim for dim in variable.dims if dim not in ("draw", "point")]
        values = variable.transpose("draw", "point", *others).values
        shape = (values.shape[0], *map(len, axes.values()), *values.shape[2:])
        variables[name] = (("draw", *axes, *others), values.reshape(shape))
    coordinates = {name: coord for name, coord in flat.coords.items() if "point" not in coord.dims}
    return xr.Dataset(variables, coords=coordinates | {name: list(values) for name, values in axes.items()})
