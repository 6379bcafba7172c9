"""What is trained or sampled, how, and where: the settings that all simulations share, and what a network keeps in memory.

Each group of settings checks its values when it is made. Nothing here needs torch, so that costs can be predicted without it.
"""

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import partial
from itertools import pairwise
from os import PathLike

from ggdln.core import checks
from ggdln.core.errors import InputError
from ggdln.core.problems import near
from ggdln.core.progress import reporter

MAX_STEPS = {"flow": 300, "descent": 200_000}
FLOW_VECTORS = 12
"""Vectors of weights that a batch of runs trained by gradient flow has at once, on a device."""


def _checked(default, check, **bounds):
    return field(default=default, metadata={"check": partial(check, **bounds)})


def _one_of(name, value, accepted):
    if value not in accepted:
        raise _refused(name, value, accepted)
    return value


def _device(name, value):
    if not (isinstance(value, str) and re.fullmatch(r"auto|cpu|cuda(:\d+)?|mps", value)):
        raise _refused(name, value, ("auto", "cpu", "cuda", "cuda:N", "mps"))
    return value


def _refused(name, value, accepted):
    return InputError(f"{name}: expected {' or '.join(map(repr, accepted))}, got {value!r}{near(value, accepted)}")


class _Settings:
    """Fields that are `_checked` hold what their check makes of a value; None stays where it is the default."""

    def __post_init__(self):
        for part in fields(self):
            value = getattr(self, part.name)
            if "check" in part.metadata and not (value is part.default is None):
                object.__setattr__(self, part.name, part.metadata["check"](part.name, value))


@dataclass(frozen=True)
class Network(_Settings):
    """A network of `depth` hidden layers with Gaussian initial weights, or a Gaussian prior.

    width: units of every hidden layer, or N_1 .. N_L from the input side up. sigma: standard deviation of all weights, or
    sigma_1 .. sigma_{L+1} of W_1 .. W_L and of the readout.
    """

    width: int | tuple[int, ...]
    depth: int = _checked(1, checks.integer, low=1)
    sigma: float | tuple[float, ...] = 1.0

    def __post_init__(self):
        super().__post_init__()
        whole, positive = partial(checks.integer, low=1), partial(checks.number, low=0, exclusive=True)
        width = checks.one_or_each("width", self.width, whole, "a whole number >= 1", self.depth, "hidden layers")
        sigma = checks.one_or_each("sigma", self.sigma, positive, "a number in (0, inf)", self.depth + 1, "layers of weights")
        object.__setattr__(self, "width", width)
        object.__setattr__(self, "sigma", sigma)

    @property
    def widths(self):
        """N_1 .. N_L."""
        return self.width if isinstance(self.width, tuple) else (self.width,) * self.depth

    @property
    def sigmas(self):
        """sigma_1 .. sigma_{L+1}."""
        return self.sigma if isinstance(self.sigma, tuple) else (self.sigma,) * (self.depth + 1)


@dataclass(frozen=True)
class Training(_Settings):
    """How networks are trained, and when they stop.

    integrator: "flow" integrates gradient flow with local error `accuracy` (a share of the norm of the residual or of the
    labels; None: the network's own, 0.05 for gated and 0.03 for ReLU networks); "descent" is gradient descent with learning
    rate `step` / (largest tangent eigenvalue). tolerance: mean squared training error at which a run is done. max_steps: None
    for 300 steps of the flow, 200000 of descent. first_run: the number of the first run, which names its random stream.
    """

    integrator: str = _checked("flow", _one_of, accepted=tuple(MAX_STEPS))
    tolerance: float = _checked(1e-3, checks.number, low=0, exclusive=True)
    accuracy: float | None = _checked(None, checks.number, low=0, exclusive=True)
    step: float = _checked(1.0, checks.number, low=0, exclusive=True)
    max_steps: int | None = _checked(None, checks.integer, low=1)
    first_run: int = _checked(0, checks.integer, low=0)

    @property
    def step_limit(self) -> int:
        """Steps after which a run is given up."""
        return MAX_STEPS[self.integrator] if self.max_steps is None else self.max_steps


@dataclass(frozen=True)
class Sampling(_Settings):
    """How many chains, draws kept of each, sweeps before the first and between them. None: the sampler's own number.

    Chains that haven't mixed go on for as many draws again, until they have or have made so many `rounds`.
    """

    chains: int | None = _checked(None, checks.integer, low=1)
    draws: int | None = _checked(None, checks.integer, low=1)
    warmup: int | None = _checked(None, checks.integer, low=0)
    thin: int | None = _checked(None, checks.integer, low=1)
    rounds: int = _checked(1, checks.integer, low=1)
    first_chain: int = _checked(0, checks.integer, low=0)

    def filled(self, defaults: "Sampling") -> "Sampling":
        """With the numbers of `defaults` where there are none."""
        return replace(self, **{name: value for name, value in vars(defaults).items() if getattr(self, name) is None})


@dataclass(frozen=True)
class Step(_Settings):
    """A step of Langevin dynamics.

    size: epsilon times the largest tangent eigenvalue. noise: "fresh", a new eta_t in each step, as in the paper, which widens
    a direction of curvature k by 1 / (1 - epsilon k / 2); "averaged", (eta_{t-1} + eta_t) / 2, which has the right width in a
    quadratic potential whatever the step, and an error of second order in others (Leimkuhler and Matthews 2013).
    """

    size: float = _checked(0.2, checks.number, low=0, exclusive=True)
    noise: str = _checked("fresh", _one_of, accepted=("fresh", "averaged"))


@dataclass(frozen=True)
class Runtime(_Settings):
    """Where a simulation runs.

    device: "auto" (CUDA if there is one, else the CPU), "cpu", "cuda", "cuda:N" or "mps", which has no float64. dtype:
    "float32" or "float64"; None: float32 for training and Langevin dynamics, float64 for the exact sampler. memory_mb: bound
    on what is simulated at once. checkpoint: a file to which the state is saved every `checkpoint_seconds`, from which a
    restarted call goes on with the same bits. progress: True for lines on the standard error stream, or a function of (done,
    total, rate, seconds_left), in place of the log.
    """

    device: str = _checked("auto", _device)
    dtype: str | None = _checked(None, _one_of, accepted=("float32", "float64"))
    memory_mb: float = _checked(4096, checks.number, low=0, exclusive=True)
    checkpoint: str | PathLike | None = None
    checkpoint_seconds: float = _checked(60.0, checks.number, low=0)
    progress: Callable | bool | None = field(default=None, metadata={"check": reporter})


GROUPS = {"training": Training, "sampling": Sampling, "runtime": Runtime}


def network_of(function, **keywords):
    """The `Network` of the keywords that a function was given beyond its own. Editors find them by way of this call."""
    own = [name for name, p in inspect.signature(function).parameters.items() if p.kind is p.KEYWORD_ONLY]
    accepted = [*_names(Network), *own]
    for name, value in keywords.items():
        if name not in _names(Network):
            groups = [group for group in own if group in GROUPS and name in _names(GROUPS[group])]
            hints = [f"; did you mean {group}={GROUPS[group].__name__}({name}={value!r})?" for group in groups]
            hint = "".join(hints) or near(name, accepted)
            raise InputError(f"{name}: {function.__name__} has no such keyword; accepted: {', '.join(accepted)}{hint}")
    if "width" not in keywords:
        raise InputError(f"width: {function.__name__} needs the number of units of the hidden layers, a whole number >= 1")
    return Network(**keywords)


def group_of(name, value):
    """A group of settings by its name, or its defaults if there is none."""
    group = GROUPS[name]
    if not (value is None or isinstance(value, group)):
        raise InputError(f"{name}: expected {group.__name__}(...), got {value!r}")
    return group() if value is None else value


def weight_count(N0, M, network, outputs=1):
    """Weights of a network with M gates on inputs of dimension N0. A ReLU network has those of a gated one with M = 1."""
    widths = network.widths
    return N0 * widths[0] + M * (sum(below * above for below, above in pairwise(widths)) + outputs * widths[-1])


def products_pay(P, N0, M, network, outputs=1):
    """Whether f and J^T u of P inputs cost less by the products of the readout with W_1, as many as gates and outputs,
    than by the units of the hidden layer. With more layers there would be M^L products, so they are left alone; and where there
    are more of them than units, their overlaps would cost the tangent kernel more than the units do."""
    products, N = M * outputs, network.widths[0]
    return network.depth == 1 and products <= N and _by_products(P, N0, products, N) < P * N * (min(2 * N0, P) + products)


def pass_count(P, N0, M, network, outputs=1):
    """Multiplications of a pass of P inputs through a network with M gates, or back, roughly."""
    if products_pay(P, N0, M, network, outputs):
        return _by_products(P, N0, M * outputs, network.widths[0]) / 2
    return P * weight_count(N0, M, network, outputs)


def _by_products(P, N0, products, N):
    return products * N0 * (2 * P + 3 * N)


def floats_per_run(P, N0, M, network, outputs=1, *, vectors=6):
    """A rough count of the numbers that one run on P inputs keeps in memory, with so many vectors of weights at once."""
    pairs = P * outputs
    activations = pairs * (8 * max(network.widths) + 3 * M * sum(network.widths[:-1]))
    return vectors * weight_count(N0, M, network, outputs) + activations + 5 * pairs**2


def _names(group):
    return [field.name for field in fields(group)]
