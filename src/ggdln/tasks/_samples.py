"""Tasks from samples that are there already: which of them a draw takes, and how their labels are read.

A source has one set of samples, from which each draw takes P for training and P_t others for testing at random, or a training
and a test set of its own, from which it takes subsets. Classes keep their shares in every subset. Subsets of the same draw are
nested in P and in P_t.
"""

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from ggdln.core import arrays, seeds
from ggdln.core.errors import FileError, InputError
from ggdln.core.kinds import Costs, Terms, Variable
from ggdln.core.problems import Problem, choices
from ggdln.tasks import Sizes, Task, TaskData


@dataclass(frozen=True)
class Samples:
    """x (n, N0), y (n,) or, for C outputs, (n, C) and, where there are such, x_test and y_test; where they come from, and a
    checksum of all of it.

    classes: whether numbers in y are names of classes, as texts are in any case; outputs: names of the columns of y, if any.
    """

    x: np.ndarray
    y: np.ndarray
    source: str
    sha256: str
    x_test: np.ndarray | None = None
    y_test: np.ndarray | None = None
    classes: bool = False
    outputs: tuple = ()

    def __post_init__(self):
        for suffix in ("", "_test"):
            x, y = getattr(self, f"x{suffix}"), getattr(self, f"y{suffix}")
            if (x is None) != (y is None):
                raise FileError("both x_test and y_test, or none of them")
            if x is not None:
                object.__setattr__(self, f"x{suffix}", _inputs(f"x{suffix}", x))
                object.__setattr__(self, f"y{suffix}", targets(f"y{suffix}", y, len(x)))
        if self.x_test is not None and self.x_test.shape[1] != self.x.shape[1]:
            raise FileError(f"inputs of one dimension; x has {self.x.shape[1]}, x_test {self.x_test.shape[1]}")
        if self.y_test is not None and self.y_test.shape[1:] != self.y.shape[1:]:
            raise FileError(f"labels of as many outputs; y has the shape {self.y.shape}, y_test {self.y_test.shape}")
        if (self.classes or self.y.dtype.kind == "U") and len(np.unique(self.labels)) == 1:
            raise FileError(f"labels of at least two classes; all are {_name(self.y[0])!r}")

    @property
    def labels(self):
        """y and, after it, y_test."""
        return self.y if self.y_test is None else np.concatenate([self.y, self.y_test])

    @property
    def megabytes(self):
        return sum(array.nbytes for array in (self.x, self.y, self.x_test, self.y_test) if array is not None) / 1e6

    def __len__(self):
        """How many samples there are, those of the test set among them."""
        return len(self.x) + (0 if self.x_test is None else len(self.x_test))


def _inputs(name, x):
    """Inputs as (n, N0): what an input has more dimensions than one, such as an image, is laid out in one."""
    x = arrays.numbers(name, x, *range(1, 6))
    return x.reshape(len(x), -1)


def targets(name, y, count=None, row=arrays.counted):
    """Labels as they are: numbers or texts, one for each of so many samples, or several numbers. row: how rows are named."""
    y = np.asarray(y)
    if y.dtype.kind == "S":
        try:
            y = np.char.decode(y, "utf-8")
        except UnicodeDecodeError as error:
            raise FileError(f"labels in UTF-8; {name} has {error.object!r}") from None
    if y.dtype.kind != "U":
        y = arrays.numbers(name, y, 1, 2, row=row)
    elif (y == "").any():
        raise FileError(f"a label for each sample; {name} has none in {row(int(np.flatnonzero(y == '')[0]))}")
    y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
    if y.ndim != 1 and y.dtype.kind == "U":
        raise FileError(f"one class for each sample, or several numbers; {name} has texts of the shape {y.shape}")
    if count not in (None, len(y)):
        raise FileError(f"a label for each sample; {name} has {len(y)} for {count} inputs")
    return y


class OneVsRest(BaseModel):
    """One class against all others"""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    one_vs_rest: str | Annotated[float, Field(ge=-1e15, le=1e15)] = Field(
        description="Class whose label is +1; that of the others is -1"
    )


@dataclass(frozen=True)
class Read:
    """Labels as numbers (n,) or (n, C); of classes also the class of each sample (n,), and their names: those of the labels -1
    and +1, or of the outputs."""

    y: np.ndarray
    classes: np.ndarray | None = None
    names: tuple = ()


def read_labels(y, how, classes=False):
    """Labels y, numbers (n,) or (n, C) or texts (n,), as `Read`. How they may be read is in READINGS."""
    known, of = np.unique(y, return_inverse=True)
    names = [_name(value) for value in known.tolist()]
    if how is None:
        how = _usual(known, names, classes)
    if y.ndim == 2 and how not in SEVERAL:
        raise FileError(f"{' or '.join(SEVERAL)}, since there are {y.shape[1]} labels for each sample")
    if isinstance(how, OneVsRest):
        return _one_vs_rest(of, names, how.one_vs_rest)
    return READINGS[how](y, of.reshape(y.shape), names)


def _usual(known, names, classes):
    """How labels with these values are read if nothing is said."""
    if classes or known.dtype.kind not in "iuf" or known.tolist() == [-1, 1]:
        return "sign"
    if len(known) == 2:
        told = "sign, if they are classes, or regression, if they are numbers"
        raise FileError(f"{told}, since there are two labels: {names[0]} and {names[1]}")
    return "regression"


def _name(value):
    """How a class is called: 3 for the numbers 3 and 3.0."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _regression(y, of, names):
    if y.dtype.kind not in arrays.NUMBERS:
        raise FileError(f"sign, classes or {{one_vs_rest: CLASS}}, since labels are texts such as {names[0]!r}")
    return Read(y.astype(np.float64))


def _sign(y, of, names):
    if len(names) != 2 and y.ndim == 2:
        raise FileError(f"regression, since there are not two but {len(names)} different labels: {_listed(names)}")
    if len(names) != 2:
        more = "" if y.dtype.kind not in arrays.NUMBERS else ", or regression"
        told = f"since there are not two but {len(names)} classes: {_listed(names)}"
        raise FileError(f"classes, for an output each, or {{one_vs_rest: CLASS}}{more}, {told}")
    if y.ndim == 2:  # samples with the same labels are of one class
        return Read(2.0 * of - 1, np.unique(of, axis=0, return_inverse=True)[1].ravel())
    return Read(2.0 * of - 1, of, tuple(names))


def _listed(names):
    return ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")


def _classes(y, of, names):
    if len(names) < 2:
        raise FileError(f"labels of several classes; there is only {names[0]}")
    return Read(np.where(of[:, None] == np.arange(len(names)), 1.0, -1.0), of, tuple(names))


def _one_vs_rest(of, names, chosen):
    chosen = _name(chosen)
    if chosen not in names:
        raise FileError(f"one of the classes {choices(chosen, names)}")
    if len(names) < 2:
        raise FileError(f"labels of several classes; there is only {chosen}")
    return Read(np.where(of == names.index(chosen), 1.0, -1.0), of, ("rest", chosen))


READINGS = {"regression": _regression, "sign": _sign, "classes": _classes}
"""Ways to read labels by name."""
SEVERAL = ("regression", "sign")
"""Those of several labels for each sample."""


class FromSamples(Task):
    """What tasks from given samples share; a kind says in `load` where they are."""

    from_file: ClassVar[bool] = True
    notes: ClassVar[tuple] = ("row",)
    place: ClassVar[str] = "path"
    """The parameter that says where the samples are."""
    costs: ClassVar[Costs] = Costs(Task.costs.seconds | {"samples": 0.02}, Task.costs.megabytes | {"samples": 2.5})
    variables: ClassVar[dict[str, Variable]] = {
        "row": Variable("row of each training sample in the source"),
        "row_test": Variable("row of each test sample in the source; rows of a test set follow those of the training set"),
        "class_name": Variable("classes, that of the label -1 first"),
        "output_name": Variable("classes or columns of the outputs"),
    }

    P: int | None = Field(
        None,
        ge=1,
        le=1_000_000,
        description="Number P of training samples; by default all of the training set, if there is one",
    )
    P_t: int | None = Field(
        None, ge=1, le=1_000_000, description="Number P_t of test samples; by default all of the test set, if there is one"
    )
    labels: Literal["regression", "sign", "classes"] | OneVsRest | None = Field(
        None,
        description="How labels are read. regression: numbers as they are; sign: two classes become -1 and +1, in the order of "
        "their names; {one_vs_rest: CLASS}: that class becomes +1, all others -1; classes: an output for each class, +1 for it "
        "and -1 for all others. By default numbers are taken as they are and two classes by their sign; two numbers other "
        "than -1 and +1 may be either. Several numbers for each sample are those of several outputs",
    )
    standardize: bool | Literal["inputs"] = Field(
        False,
        description="Each input dimension, and labels of a regression, to mean 0 and standard deviation 1 of the training "
        "samples of the draw; those that are constant there become 0. inputs: these alone",
    )
    sha256: str | None = Field(
        None, description="Checksum of the source; filled in by the workflow, and compared where it is given"
    )

    def load(self):
        """The `Samples`; FileError says what would be accepted."""
        raise NotImplementedError

    def problems(self, counts=None):
        try:
            samples = self.load()
        except FileError as error:
            return [Problem(f"task.{self.place}", getattr(self, self.place), str(error))]
        if self.sha256 not in (None, samples.sha256):
            return [Problem("task.sha256", self.sha256, f"{samples.sha256}, that of {getattr(self, self.place)} as it is now")]
        try:
            pools = self._pools(samples)
        except FileError as error:
            fault = "missing" if self.labels is None else ""
            return [Problem("task.labels", self.model_dump()["labels"], str(error), fault)]
        return [*self._size_problems(samples), *self._class_problems(samples, pools)]

    def _pools(self, samples):
        """How the labels of the training and the test set are read; the same for both where there is one set of samples."""
        every = read_labels(samples.labels, self.labels, samples.classes)

        def part(rows):
            return Read(every.y[rows], None if every.classes is None else every.classes[rows], every.names)

        n = len(samples.x)
        return part(slice(0, n)), part(slice(0 if samples.y_test is None else n, None))

    def _size_problems(self, samples):
        """Sizes that are missing, or larger than what there is."""
        n, where = len(samples.x), getattr(self, self.place)
        if samples.x_test is not None:
            pools = (("P", n, "x"), ("P_t", len(samples.x_test), "x_test"))
            wrong = [(key, most, name) for key, most, name in pools if (getattr(self, key) or 1) > most]
            return [
                Problem(f"task.{key}", getattr(self, key), f"at most {most}, the samples in {name} of {where}")
                for key, most, name in wrong
            ]
        missing = [key for key in ("P", "P_t") if getattr(self, key) is None]
        told = f"how many of the {n} samples of {where} are taken, since it has no test set of its own"
        if missing:
            return [Problem(f"task.{key}", None, told, "missing") for key in missing]
        if self.P + self.P_t > n:
            return [Problem("task.P + P_t", self.P + self.P_t, f"at most {n}, the samples in {where}")]
        return []

    def _class_problems(self, samples, pools):
        """Sizes so small that a class would be missing: each has its share of every subset."""
        found = []
        for key, pool in zip(("P", "P_t"), pools, strict=True):
            size, n = getattr(self, key) or len(pool.y), len(pool.y)
            members = (pool.y == 1).T if pool.y.ndim == 2 else (pool.y == -1, pool.y == 1)
            for member, name in zip(members, pool.names, strict=False):
                count = int(member.sum())
                if count * size < n:
                    least = f"at least {math.ceil(n / count)}" if count else "another source"
                    told = f"{least}, since class {name!r} has {count} of {n} samples"
                    found.append(Problem(f"task.{key}", getattr(self, key), told))
        return found

    def sizes(self):
        samples = self.load()
        P_t = self.P_t or (0 if samples.x_test is None else len(samples.x_test))
        C = len(np.unique(samples.labels)) if self.labels == "classes" else samples.y[0].size
        return Sizes(self.P or len(samples.x), P_t, samples.x.shape[1], C)

    def terms(self, draws):
        amounts = super().terms(draws).work | {"samples": self.load().megabytes}
        return Terms(amounts, amounts)

    def rows(self):
        return len(self.load())

    def settled(self):
        return self.model_copy(update={"sha256": self.load().sha256})

    def origin(self):
        samples = self.load()
        return f"{samples.source}, sha256 {samples.sha256}"

    def make(self, seed, draw):
        samples = self.load()
        if self.sha256 not in (None, samples.sha256):
            raise InputError(f"{getattr(self, self.place)} has changed since the run began; run the workflow again")
        pools, own = self._pools(samples), samples.x_test is not None
        train = self._chosen(pools[0], self.P, seeds.rng(seed, self.kind_name(), "samples", draw))
        if own:
            test = self._chosen(pools[1], self.P_t, seeds.rng(seed, self.kind_name(), "test samples", draw))
        else:
            # From the far end of the same order, so that it stays the same when P grows.
            test = self._chosen(pools[1], len(pools[1].y), seeds.rng(seed, self.kind_name(), "samples", draw))[::-1][: self.P_t]
        x = samples.x[train].astype(np.float64)
        x_test = (samples.x_test if own else samples.x)[test].astype(np.float64)
        if self.standardize:
            x, x_test = standardized(x, x_test)
        y, y_test = pools[0].y[train], pools[1].y[test]
        if self.standardize is True and pools[0].classes is None:
            y, y_test = standardized(y, y_test)
        notes = {"row": (("train",), train), "row_test": (("test",), test + (len(samples.x) if own else 0))}
        names = pools[0].names
        if y.ndim == 2 and (names or samples.outputs):
            notes["output_name"] = (("output",), np.array(names or samples.outputs))
        elif names:
            notes["class_name"] = (("class",), np.array(names))
        return TaskData(x=x, y=y, x_test=x_test, y_test=y_test, notes=notes)

    @staticmethod
    def _chosen(pool, count, rng):
        """Rows of so many samples at random; all of them in their own order if no number is given."""
        n = len(pool.y)
        if count is None:
            return np.arange(n)
        return stratified(np.zeros(n, dtype=int) if pool.classes is None else pool.classes, rng)[:count]


def stratified(classes, rng):
    """A random order of samples in which every stretch from either end has the classes (n,) in their shares: (n,)."""
    order = rng.permutation(len(classes))
    place = np.empty(len(classes))
    for name in np.unique(classes):
        members = order[classes[order] == name]
        place[members] = (np.arange(len(members)) + 0.5) / len(members)
    return order[np.argsort(place[order], kind="stable")]


def standardized(x, x_test):
    """Inputs (P, N0) and (P_t, N0), or labels (P,) and (P_t,), by mean and deviation of each dimension of the first."""
    mean, deviation = x.mean(axis=0), x.std(axis=0)
    scale = np.divide(1.0, deviation, out=np.zeros_like(deviation), where=np.ptp(x, axis=0) > 0)
    return (x - mean) * scale, (x_test - mean) * scale
