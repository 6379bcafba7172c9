"""Tasks made from MNIST digits: even against odd, permuted pixels, and two tasks with conflicting labels.

Classes are balanced in the training and in the test set, and no digit is in both. Training sets of the same draw are
nested in P, test sets in P_t.
"""

import numpy as np

from ggdln.core import seeds
from ggdln.core.errors import InputError
from ggdln.tasks import Task
from ggdln.tasks.digits import load_digits

NORMALIZATIONS = ("pixel_mean", "pixel", "image", "global")


def mnist_parity(*, P, P_t, normalization="pixel_mean", N0=None, seed, draw, digits=None):
    """Even digits y = +1 against odd digits y = -1; with N0, after a random ReLU projection to N0 dimensions."""
    digits = digits or load_digits()
    parity = digits.labels % 2
    train, test = split_classes(parity, (0, 1), P, P_t, seeds.rng(seed, "mnist_parity", "digits", draw))
    features = prepared(digits.images, normalization, N0, seeds.rng(seed, "mnist_parity", "projection", draw))
    return Task(
        x=features[train],
        y=1.0 - 2.0 * parity[train],
        x_test=features[test],
        y_test=1.0 - 2.0 * parity[test],
        notes=digit_notes(digits, train, test),
    )


def mnist_permuted(*, P, P_t, permutations, normalization="pixel_mean", N0=None, seed, draw, digits=None):
    """Even against odd under several pixel permutations, learned together.

    The same P training and P_t test digits are shown under each of n = `permutations` random permutations of the pixels:
    n P training samples, sorted by permutation, which is the sub-task.
    """
    digits = digits or load_digits()
    parity = digits.labels % 2
    train, test = split_classes(parity, (0, 1), P, P_t, seeds.rng(seed, "mnist_permuted", "digits", draw))
    order = seeds.rng(seed, "mnist_permuted", "pixels", draw)
    projection = seeds.rng(seed, "mnist_permuted", "projection", draw)
    pixels = normalize(digits.images, normalization)
    shuffles = np.stack([order.permutation(pixels.shape[1]) for _ in range(permutations)])
    inputs = [pixels[:, shuffle] for shuffle in shuffles]
    if N0 is not None:
        weights = projection.standard_normal((N0, pixels.shape[1]))
        inputs = [normalize(relu_projection(x, weights), normalization) for x in inputs]
    which = np.arange(permutations)
    return Task(
        x=np.concatenate([x[train] for x in inputs]),
        y=np.tile(1.0 - 2.0 * parity[train], permutations),
        task=which.repeat(P),
        x_test=np.concatenate([x[test] for x in inputs]),
        y_test=np.tile(1.0 - 2.0 * parity[test], permutations),
        task_test=which.repeat(P_t),
        notes=digit_notes(digits, np.tile(train, permutations), np.tile(test, permutations))
        | {"permutation": (("sub_task", "pixel"), shuffles)},
    )


def mnist_conflicting(*, P, P_t, N0=None, normalization="pixel_mean", seed, draw, digits=None):
    """Two tasks that give the same inputs different labels.

    The inputs are equally many zeros and ones, unpermuted and under one random permutation of the pixels: P/2 digits,
    each in both forms. Task 0 tells zero (+1) from one (-1); task 1 tells unpermuted (+1) from permuted (-1). All P
    inputs come once with each task: 2 P training samples, sorted by task.
    """
    digits = digits or load_digits()
    if P % 4 or P_t % 4:
        raise InputError(f"P, P_t: got {P}, {P_t}; need multiples of 4, for two digits in two forms")
    train, test = split_classes(digits.labels, (0, 1), P // 2, P_t // 2, seeds.rng(seed, "mnist_conflicting", "digits", draw))
    used = np.isin(digits.labels, (0, 1))
    pixels = normalize(digits.images[used], normalization)
    where = np.cumsum(used) - 1
    shuffle = seeds.rng(seed, "mnist_conflicting", "pixels", draw).permutation(pixels.shape[1])
    both = np.concatenate([pixels, pixels[:, shuffle]])
    if N0 is not None:
        weights = seeds.rng(seed, "mnist_conflicting", "projection", draw).standard_normal((N0, pixels.shape[1]))
        both = normalize(relu_projection(both, weights), normalization)

    def samples(chosen):
        rows = np.concatenate([where[chosen], where[chosen] + len(pixels)])
        digit = np.tile(1.0 - 2.0 * digits.labels[chosen], 2)
        form = np.repeat([1.0, -1.0], len(chosen))
        return np.tile(both[rows], (2, 1)), np.concatenate([digit, form]), np.repeat([0, 1], 2 * len(chosen))

    (x, y, task), (x_test, y_test, task_test) = samples(train), samples(test)
    permuted = {
        "permuted": (("train",), np.tile(np.repeat([0, 1], len(train)), 2)),
        "permuted_test": (("test",), np.tile(np.repeat([0, 1], len(test)), 2)),
        "permutation": (("pixel",), shuffle),
    }
    notes = digit_notes(digits, np.tile(train, 4), np.tile(test, 4)) | permuted
    return Task(x=x, y=y, task=task, x_test=x_test, y_test=y_test, task_test=task_test, notes=notes)


def split_classes(labels, classes, n_train, n_test, rng):
    """Indices of a balanced training and a balanced test set, disjoint, in random order: (n_train,), (n_test,)."""
    k = len(classes)
    if n_train % k or n_test % k:
        raise InputError(f"P, P_t: got {n_train}, {n_test}; need multiples of {k}, for equal classes")
    train, test = [], []
    for label in classes:
        members = rng.permutation(np.flatnonzero(labels == label))
        if (n_train + n_test) // k > len(members):
            raise InputError(
                f"P + P_t: {(n_train + n_test) // k} digits of class {label} asked for, the source has {len(members)}"
            )
        # The test set comes from the far end, so that it stays the same when P grows.
        train.append(members[: n_train // k])
        test.append(members[::-1][: n_test // k])
    # Interleaved, so that the first samples are balanced too.
    return np.stack(train, axis=1).ravel(), np.stack(test, axis=1).ravel()


def prepared(images, normalization, N0, rng):
    """Normalized pixels (n, 784) or, with N0, their normalized random ReLU projection (n, N0)."""
    pixels = normalize(images, normalization)
    if N0 is None:
        return pixels
    return normalize(relu_projection(pixels, rng.standard_normal((N0, pixels.shape[1]))), normalization)


def relu_projection(x, weights):
    """ReLU(W_0 x / sqrt(n)) for x (p, n) and W_0 (N0, n): (p, N0)."""
    return np.maximum(x @ weights.T / np.sqrt(x.shape[1]), 0.0)


def normalize(x, variant):
    """Centred and scaled inputs (p, n) -> (p, n); statistics are taken over all the rows given.

    pixel_mean: minus the mean of each pixel, over one standard deviation for all;
    pixel: each pixel to mean 0 and standard deviation 1 (constant pixels become 0);
    image: each row to mean 0 and standard deviation 1; global: one mean and one standard deviation for all.
    """
    x = np.asarray(x, dtype=np.float64)
    if variant == "pixel_mean":
        centred = x - x.mean(axis=0)
        return centred / centred.std()
    if variant == "pixel":
        centred, std = x - x.mean(axis=0), x.std(axis=0)
        return np.divide(centred, std, out=np.zeros_like(centred), where=std > 0)
    if variant == "image":
        centred, std = x - x.mean(axis=1, keepdims=True), x.std(axis=1, keepdims=True)
        return np.divide(centred, std, out=np.zeros_like(centred), where=std > 0)
    if variant == "global":
        return (x - x.mean()) / x.std()
    raise InputError(f"normalization: got {variant!r}, accepted: {', '.join(NORMALIZATIONS)}")


def digit_notes(digits, train, test):
    return {
        "digit": (("train",), digits.labels[train]),
        "digit_test": (("test",), digits.labels[test]),
        "index": (("train",), train),
        "index_test": (("test",), test),
    }
