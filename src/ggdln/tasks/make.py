"""Tasks by name."""

from ggdln.errors import InputError
from ggdln.tasks.angles import angles
from ggdln.tasks.mnist import mnist_conflicting, mnist_parity, mnist_permuted
from ggdln.tasks.teachers import clustered_teacher, noisy_teacher

GENERATED = {kind.__name__: kind for kind in (noisy_teacher, clustered_teacher, angles)}
FROM_DIGITS = {kind.__name__: kind for kind in (mnist_parity, mnist_permuted, mnist_conflicting)}


def make_task(spec, *, seed, draw=0, digits=None):
    """Draw number `draw` of the task `spec`, a mapping with "kind" and the parameters of that kind.

    `digits` is a `ggdln.tasks.digits.Digits`, needed by the kinds made from MNIST (default: the embedded subset).
    """
    spec = dict(spec)
    kind = spec.pop("kind", None)
    if kind in GENERATED:
        return GENERATED[kind](seed=seed, draw=draw, **spec)
    if kind in FROM_DIGITS:
        return FROM_DIGITS[kind](seed=seed, draw=draw, digits=digits, **spec)
    raise InputError(f"task kind: got {kind!r}, accepted: {', '.join([*GENERATED, *FROM_DIGITS])}")
