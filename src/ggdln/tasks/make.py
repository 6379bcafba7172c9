"""Tasks by name."""

from dataclasses import replace

from ggdln.core import seeds
from ggdln.core.errors import InputError
from ggdln.tasks.angles import angles
from ggdln.tasks.mnist import mnist_conflicting, mnist_parity, mnist_permuted
from ggdln.tasks.teachers import clustered_teacher, noisy_teacher

GENERATED = {kind.__name__: kind for kind in (noisy_teacher, clustered_teacher, angles)}
FROM_DIGITS = {kind.__name__: kind for kind in (mnist_parity, mnist_permuted, mnist_conflicting)}


def make_task(spec, *, seed, draw=0, digits=None):
    """Draw number `draw` of the task `spec`, a mapping with "kind" and the parameters of that kind.

    `digits` is a `ggdln.tasks.digits.Digits`, needed by the kinds made from MNIST (default: the embedded subset). With
    "shuffled" true the training labels are in random order, so that there is nothing to learn.
    """
    spec = dict(spec)
    kind, shuffled = spec.pop("kind", None), spec.pop("shuffled", False)
    if kind in GENERATED:
        task = GENERATED[kind](seed=seed, draw=draw, **spec)
    elif kind in FROM_DIGITS:
        task = FROM_DIGITS[kind](seed=seed, draw=draw, digits=digits, **spec)
    else:
        raise InputError(f"task kind: got {kind!r}, accepted: {', '.join([*GENERATED, *FROM_DIGITS])}")
    return replace(task, y=seeds.rng(seed, "shuffled", "labels", draw).permutation(task.y)) if shuffled else task
