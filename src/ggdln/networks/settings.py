"""What is trained or sampled, how, and where: the settings that all simulations share, and what a network keeps in memory.

Each group of settings checks its values when it is made. Nothing here needs torch, so that costs can be predicted without it.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from os import PathLike
from typing import Required, TypedDict

from ggdln.core import checks
from ggdln.core.errors import InputError
from ggdln.core.problems import near

MAX_STEPS = {"flow": 300, "descent": 200_000}
DEVICES, DTYPES = ("auto", "cpu", "cuda"), ("float32", "float64")


@dataclass(frozen=True)
class Network:
    """A network of `depth` hidden layers of `width` units, with initial weights, or a prior, of standard deviation sigma."""

    width: int
    depth: int = 1
    sigma: float = 1.0

    def __post_init__(self):
        _keep(
            self,
            width=checks.integer("width", self.width, 1),
            depth=checks.integer("depth", self.depth, 1),
            sigma=checks.number("sigma", self.sigma, 0, exclusive=True),
        )


class NetworkShape(TypedDict, total=False):
    """The same as keywords of a function."""

    width: Required[int]
    depth: int
    sigma: float


@dataclass(frozen=True)
class Training:
    """How networks are trained, and when they stop.

    integrator: "flow" integrates gradient flow with local error `accuracy` (a share of the norm of the residual or of the
    labels; None: the network's own, 0.05 for gated and 0.03 for ReLU networks); "descent" is gradient descent with learning
    rate `step` / (largest tangent eigenvalue). tolerance: mean squared training error at which a run is done. max_steps: None
    for 300 steps of the flow, 200000 of descent. first_run: the number of the first run, which names its random stream.
    """

    integrator: str = "flow"
    tolerance: float = 1e-3
    accuracy: float | None = None
    step: float = 1.0
    max_steps: int | None = None
    first_run: int = 0

    def __post_init__(self):
        _one_of("integrator", self.integrator, tuple(MAX_STEPS))
        _keep(
            self,
            tolerance=checks.number("tolerance", self.tolerance, 0, exclusive=True),
            accuracy=_unless_none(self.accuracy, checks.number, "accuracy", 0, exclusive=True),
            step=checks.number("step", self.step, 0, exclusive=True),
            max_steps=_unless_none(self.max_steps, checks.integer, "max_steps", 1),
            first_run=checks.integer("first_run", self.first_run, 0),
        )

    @property
    def step_limit(self):
        """Steps after which a run is given up."""
        return MAX_STEPS[self.integrator] if self.max_steps is None else self.max_steps


@dataclass(frozen=True)
class Sampling:
    """How many chains, draws kept of each, sweeps before the first and between them. None: the sampler's own number."""

    chains: int | None = None
    draws: int | None = None
    warmup: int | None = None
    thin: int | None = None
    first_chain: int = 0

    def __post_init__(self):
        low = {"chains": 1, "draws": 1, "warmup": 0, "thin": 1}
        values = {name: _unless_none(getattr(self, name), checks.integer, name, least) for name, least in low.items()}
        _keep(self, **values, first_chain=checks.integer("first_chain", self.first_chain, 0))

    def filled(self, defaults):
        """With the numbers of `defaults` where there are none."""
        return replace(self, **{name: value for name, value in vars(defaults).items() if getattr(self, name) is None})


@dataclass(frozen=True)
class Runtime:
    """Where a simulation runs.

    device: "auto" (CUDA if there is one), "cpu" or "cuda". dtype: "float32" or "float64"; None: float32 for training and
    Langevin dynamics, float64 for the exact sampler. memory_mb: bound on what is simulated at once. checkpoint: a file to which
    the state is saved every `checkpoint_seconds`, from which a restarted call goes on with the same bits. progress:
    callback(done, total, rate, seconds_left), in place of the log.
    """

    device: str = "auto"
    dtype: str | None = None
    memory_mb: float = 4096
    checkpoint: str | PathLike | None = None
    checkpoint_seconds: float = 60.0
    progress: Callable | None = None

    def __post_init__(self):
        _one_of("device", self.device, DEVICES)
        if self.dtype is not None:
            _one_of("dtype", self.dtype, DTYPES)
        if not (self.progress is None or callable(self.progress)):
            raise InputError(f"progress: expected a function of (done, total, rate, seconds_left), got {self.progress!r}")
        _keep(
            self,
            memory_mb=checks.number("memory_mb", self.memory_mb, 0, exclusive=True),
            checkpoint_seconds=checks.number("checkpoint_seconds", self.checkpoint_seconds, 0),
        )


GROUPS = {"training": Training, "sampling": Sampling, "runtime": Runtime}


def network_of(function, keywords):
    """The `Network` of the keywords that a function was given beyond its own."""
    own = [name for name, p in inspect.signature(function).parameters.items() if p.kind is p.KEYWORD_ONLY]
    accepted = [*_names(Network), *own]
    for name, value in keywords.items():
        if name not in _names(Network):
            groups = [group for group in own if name in _names(GROUPS.get(group, Network))]
            hints = [f"; did you mean {group}={GROUPS[group].__name__}({name}={value!r})?" for group in groups]
            hint = "".join(hints) or near(name, accepted)
            raise InputError(f"{name}: {function.__name__} has no such keyword; accepted: {', '.join(accepted)}{hint}")
    if "width" not in keywords:
        raise InputError(f"width: {function.__name__} needs the number of units of a layer, a whole number >= 1")
    return Network(**keywords)


def group_of(name, value):
    """A group of settings by its name, or its defaults if there is none."""
    group = GROUPS[name]
    if not (value is None or isinstance(value, group)):
        raise InputError(f"{name}: expected {group.__name__}(...), got {value!r}")
    return group() if value is None else value


def weight_count(N0, M, network):
    """Weights of a network with M gates on inputs of dimension N0. A ReLU network has those of a gated one with M = 1."""
    return network.width * (N0 + M) + (network.depth - 1) * M * network.width**2


def floats_per_run(P, N0, M, network):
    """A rough count of the numbers that one run on P inputs keeps in memory while it is trained by gradient flow."""
    activations = P * network.width * (8 + 3 * (network.depth - 1) * M)
    return 6 * weight_count(N0, M, network) + activations + 5 * P**2


def _names(group):
    return [field.name for field in fields(group)]


def _keep(settings, **checked):
    """Store checked values, as the constructor of a frozen dataclass does."""
    for name, value in checked.items():
        object.__setattr__(settings, name, value)


def _unless_none(value, check, name, low, **options):
    return None if value is None else check(name, value, low, **options)


def _one_of(name, value, accepted):
    if value not in accepted:
        raise InputError(f"{name}: expected {' or '.join(map(repr, accepted))}, got {value!r}{near(value, accepted)}")
