"""Arbitrary input to the library, to its readers of files and to the configuration: a certified answer or a named error, never NaN or a traceback."""

import copy
import math
import os
import pickle
import tempfile
import warnings
import zipfile
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from helpers import raw_configuration
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ggdln
from ggdln.core.errors import ConfigError, FileError, GgdlnError, InputError
from ggdln.core.identity import digest
from ggdln.core.kinds import REGISTRIES
from ggdln.networks.gibbs import sample_posterior
from ggdln.networks.langevin import langevin
from ggdln.networks.settings import Sampling, Training
from ggdln.networks.training import train_ensemble, train_relu
from ggdln.theory.gp import gp_limit
from ggdln.theory.solution import solve, solve_sweep
from ggdln.workflow.config import read_config
from ggdln.workflow.files import load

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "60"))
QUIET = settings(
    max_examples=EXAMPLES, deadline=None, derandomize="FUZZ_EXAMPLES" not in os.environ,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)  # fmt: skip

widths = st.sampled_from([1, 2.5, 7, 100, 1e4, 1e8, math.inf])
sigmas = st.floats(-6, 6).map(lambda e: 10.0**e)
temperatures = st.sampled_from([0.0, 1e-8, 1e-3, 0.1, 10.0])


@st.composite
def samples(draw):
    """x, gates, y and test inputs with gates: any small sizes, with the oddities that real data have."""
    points, inputs, gates, tests = (draw(st.integers(1, high)) for high in (7, 5, 9, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    x = rng.standard_normal((points + tests, inputs)) * 10.0 ** draw(st.integers(-6, 6))
    g = rng.standard_normal((points + tests, gates))
    if draw(st.booleans()):
        g = (g > draw(st.sampled_from([-0.5, 0.0, 1.0]))).astype(float)
    y = np.sign(rng.standard_normal(points)) * 10.0 ** draw(st.integers(-3, 3))
    for oddity in draw(st.sets(st.sampled_from(["constant", "repeat", "conflict", "one class", "zero x", "closed", "zero y"]))):
        if oddity == "constant":
            x[:, 0] = 1.0
        elif oddity == "repeat":
            x[-1], g[-1] = x[0], g[0]
            x[points - 1], g[points - 1], y[-1] = x[0], g[0], y[0]
        elif oddity == "conflict":
            x[points - 1], g[points - 1], y[-1] = x[0], g[0], -y[0]
        elif oddity == "one class":
            y[:] = y[0]
        elif oddity == "zero x":
            x[0] = 0.0
        elif oddity == "closed":
            g[0] = 0.0
        else:
            y[:] = 0.0
    kind = draw(st.sampled_from([np.float64, np.float32, np.int64]))
    x = (x.astype(kind), g, y, g)[0]
    return x[:points], g[:points], y, x[points:], g[points:]


@st.composite
def spoilt(draw):
    """Samples of which one array has a wrong shape, type or a NaN."""
    arrays = list(draw(samples()))
    which = draw(st.integers(0, 4))
    bad = np.asarray(arrays[which], dtype=float)
    how = draw(st.sampled_from(["nan", "inf", "dimension", "row", "text", "empty", "none", "object"]))
    if how in ("nan", "inf"):
        bad = bad.copy()
        bad[(0,) * bad.ndim] = np.nan if how == "nan" else -np.inf
    elif how == "dimension":
        bad = bad[None]
    elif how == "row":
        bad = np.concatenate([bad, bad])
    elif how == "text":
        bad = bad.astype(str).tolist() if bad.size > 99 else [["a"]]
    elif how == "empty":
        bad = bad[:0]
    elif how == "none":
        bad = None
    else:
        bad = np.full(bad.shape, {}, dtype=object)
    arrays[which] = bad
    return arrays


def explained(error):
    """A refusal says something."""
    assert str(error)


def checked(mean, variance, count):
    """Whether a prediction has the right shape and is made of numbers."""
    assert mean.shape == variance.shape == (count,)
    assert np.isfinite(mean).all()
    assert np.isfinite(variance).all()
    assert (variance >= 0).all()


@QUIET
@given(data=samples(), width=widths, depth=st.integers(1, 4), sigma=sigmas, temperature=temperatures)
def test_solve_is_certified_or_refuses(data, width, depth, sigma, temperature):
    x, g, y, x_test, g_test = data
    try:
        solution = solve(x, g, y, width, depth, sigma, temperature)
    except GgdlnError as error:
        explained(error)
        return
    assert solution.residual <= 1e-8
    assert np.isfinite(solution.hamiltonian)
    assert all((values > 0).all() for values in solution.eigenvalues)
    checked(*solution.predict(x_test, g_test), len(x_test))
    kernel = solution.kernel(x_test, g_test)
    assert np.isfinite(kernel).all()
    assert kernel.shape == (len(x_test), len(x_test))


@QUIET
@given(data=samples(), depth=st.integers(1, 3), sigma=sigmas)
def test_the_infinite_width_limit_always_answers(data, depth, sigma):
    x, g, y, x_test, g_test = data
    try:
        limit = gp_limit(x, g, y, depth=depth, sigma=sigma)
    except GgdlnError as error:
        explained(error)
        return
    assert np.isfinite(limit.fitted).all()
    checked(*limit.predict(x_test, g_test), len(x_test))


@QUIET
@given(data=spoilt(), function=st.sampled_from(["solve", "sweep", "gp", "train", "relu", "gibbs", "langevin"]))
def test_bad_arrays_are_refused_by_name(data, function):
    x, g, y, x_test, g_test = data
    short, few = Training(max_steps=3), Sampling(draws=4, warmup=1, thin=1)
    calls = {
        "solve": lambda: solve(x, g, y, 10, temperature=0.1).predict(x_test, g_test),
        "sweep": lambda: solve_sweep(x, g, y, widths=[5, 50], temperature=0.1)[0].predict(x_test, g_test),
        "gp": lambda: gp_limit(x, g, y, depth=1, sigma=1.0).predict(x_test, g_test),
        "train": lambda: train_ensemble(x, g, y, x_test, g_test, width=5, runs=1, seed=0, training=short),
        "relu": lambda: train_relu(x, y, x_test, width=5, runs=1, seed=0, training=short),
        "gibbs": lambda: sample_posterior(x, g, y, x_test, g_test, width=5, temperature=0.1, sampling=few, seed=0),
        "langevin": lambda: langevin(x, g, y, x_test, g_test, width=5, temperature=0.1, sampling=few, seed=0),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = calls[function]()
        except GgdlnError as error:
            explained(error)
            return
    # A doubled array can still be a valid one, and ReLU networks have no gates.
    if isinstance(result, tuple):
        checked(*result, len(x_test))
    else:
        assert result.prediction.sizes["test"] == len(x_test)


@QUIET
@given(data=samples(), width=st.sampled_from([1, 3, 50]), depth=st.integers(1, 3), sigma=sigmas)
def test_training_ends_with_a_status(data, width, depth, sigma):
    """Few steps from any prior: every run is converged, at its floor, diverged or unfinished, and only finite ones count."""
    x, g, y, x_test, g_test = data
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            training = Training("flow" if depth == 1 else "descent", max_steps=5)
            result = train_ensemble(
                x, g, y, x_test, g_test, width=width, depth=depth, sigma=sigma, runs=2, seed=0, training=training
            )
        except GgdlnError as error:
            explained(error)
            return
    assert result.prediction.shape == (2, len(x_test))
    assert set(result.status.values) <= {0, 1, 2, 3}
    fine = result.status.values < 2
    assert np.isfinite(result.prediction.values[fine]).all()


@QUIET
@given(data=samples(), depth=st.integers(1, 2), sigma=sigmas, temperature=st.sampled_from([1e-8, 1e-3, 1.0]))
def test_the_sampler_gives_numbers_or_refuses(data, depth, sigma, temperature):
    x, g, y, x_test, g_test = data
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = sample_posterior(
                x, g, y, x_test, g_test, width=4, depth=depth, sigma=sigma, temperature=temperature,
                sampling=Sampling(chains=2, draws=5, warmup=2), seed=0,
            )  # fmt: skip
        except GgdlnError as error:
            explained(error)
            return
    assert result.prediction.shape == (2, 5, len(x_test))
    fine = result.status.values == 0
    assert np.isfinite(result.prediction.values[fine]).all()


def _part():
    """Some figures of the configuration with all that they show and the claims about one, so that reading it is quick."""
    raw = raw_configuration()
    config = read_config(raw)
    figures = ("fig1", "fig2", "fig7", "figS2", "figS5")
    curves = [curve for figure in figures for curve in config.curves_of(figure)]
    curves += [
        curve for name, claim in config.claims.items() if claim["figure"] == "figS5" for curve in config.curves_of_claim(name)
    ]
    experiments = {name: raw["experiments"][name] for name, _ in curves if name in raw["experiments"]}
    experiments |= {name: entry for name, entry in raw["experiments"].items() if name.startswith("kernel_angle_")}
    more = {"run": "", "digits": raw["digits"], "batch": {"draws": 5, "points": 1, "runs": 10}, "machine": {"memory_mb": 4096}}
    shown = {"figures": {name: raw["figures"][name] for name in figures}, "claims": {"figS5": raw["claims"]["figS5"]}}
    return copy.deepcopy({"seed": 1, "kinds": [], **more, "experiments": experiments, **shown})


CONFIG = _part()
scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-(10**6), 10**6), st.floats(), st.text(max_size=8), st.just([]), st.just({}),
    st.sampled_from(["../../etc/passwd", "/tmp/x", "a/b", "{draws}", "!!python/object:os.system", "1e400", "fig1\n"]),
    st.lists(st.one_of(st.integers(), st.text(max_size=3), st.none()), max_size=3),
)  # fmt: skip


def paths(tree, above=()):
    """All paths of a nested configuration."""
    found = [above] if above else []
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in items:
        found += paths(value, (*above, key))
    return found


PATHS = paths(CONFIG)


@settings(max_examples=4 * EXAMPLES, deadline=None, derandomize="FUZZ_EXAMPLES" not in os.environ)
@given(
    path=st.sampled_from(PATHS), value=scalars, how=st.sampled_from(["replace", "delete", "rename"]), key=st.text(max_size=6)
)
def test_a_mutated_configuration_is_read_or_refused(path, value, how, key):
    """Any one entry replaced, deleted or renamed: the configuration is valid, or a ConfigError says why."""
    config = copy.deepcopy(CONFIG)
    place = config
    for step in path[:-1]:
        place = place[step]
    if how == "replace" or isinstance(place, list):
        place[path[-1]] = value
    else:
        old = place.pop(path[-1])
        if how == "rename":
            place[key] = old
    try:
        read_config(config)
    except ConfigError as error:
        explained(error)


def test_the_configuration_that_is_mutated_is_valid():
    assert set(read_config(CONFIG).figures) == set(CONFIG["figures"])


@pytest.mark.parametrize("text", [
    "!!python/object/apply:os.system ['touch written']", "a: &a [*a]", "a: &a {b: *a}", "figures: &a {fig1: *a}", "a: [1, 2", "\t- x",
    "x: !!binary Zm9v", "x: !!binary ?", "a: *a", "? [1]\n: 2", "1: 2", "null: 1", "seed: 2022-13-01", "seed: " + "9" * 5000, "- a",
    "kinds: [1]", "kinds: {a: 1}", "kinds: [/dev/null]", "experiments: {1: {paper: {}}}", "experiments: {a: {for: {n: [1]}}}",
    "\0", "a: 'x", "%TAG", "{" * 2000,
])  # fmt: skip
def test_yaml_from_elsewhere_runs_nothing(text, tmp_path, monkeypatch):
    """Safe loading refuses tags that construct objects; what it reads is not a configuration, and is refused."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "foreign.yaml").write_text(text)
    with pytest.raises(ConfigError) as error:
        read_config(load([tmp_path / "foreign.yaml"]))
    explained(error.value)
    assert [path.name for path in tmp_path.iterdir()] == ["foreign.yaml"]


def a_solution(kind):
    x = np.random.default_rng(0).standard_normal((30, 4))
    data = x, (x[:, :2] > 0) * 1.0, x[:, 0]
    if kind == "gp":
        return ggdln.gp_limit(*data, temperature=0.1)
    if kind == "exact":
        return ggdln.solve_exact(*data, width=10, temperature=0.1, draws=4, chains=2, seed=1)
    return ggdln.solve(*data, width=10, temperature=0.1, loops=int(kind == "loop"))


@cache
def whole(kind):
    """A file of samples and gates, or of a solution, as it should be: its ending and its content."""
    rng = np.random.default_rng(0)
    x, name = rng.standard_normal((30, 4)), np.array(["one", "other"] * 15)
    gates = (x[:, :2] > 0) * 1.0
    with tempfile.TemporaryDirectory() as folder:
        ending = kind.partition(" ")[0] if kind[0] == "." else ".nc"
        path = Path(folder) / f"whole{ending}"
        if kind == ".npz":
            np.savez(path, x=x, y=name, gates=gates)
        elif kind == ".npz compressed":
            np.savez_compressed(path, x=x, y=name, gates=gates)
        elif kind == ".csv":
            lines = [f"{a},{b},{text}" for (a, b, *_), text in zip(x, name, strict=True)]
            path.write_text("\n".join(["length,width,y", *lines]))
        elif kind[0] == ".":
            days = ("sample", np.arange(30), {"units": "days since 2000-01-01"})
            data = {"x": (("sample", "input"), x), "y": ("sample", x[:, 0]), "gates": (("sample", "gate"), gates), "day": days}
            xr.Dataset(data).to_netcdf(path, engine="scipy" if kind == ".nc classic" else "netcdf4")
        else:
            a_solution(kind).save(path)
        return ending, path.read_bytes()


@st.composite
def damaged(draw, kind):
    """The content of a file after some bits were flipped, and bytes inserted, deleted, overwritten or cut off."""
    content = bytearray(whole(kind)[1])
    for _ in range(draw(st.sampled_from([1, 1, 2, 5, 20]))):
        place = draw(st.integers(0, max(len(content) - 1, 0)))
        how = draw(st.sampled_from(["flip", "flip", "cut", "insert", "delete", "overwrite"]))
        if how == "flip" and content:
            content[place] ^= 1 << draw(st.integers(0, 7))
        elif how == "cut":
            del content[place:]
        elif how == "insert":
            content[place:place] = draw(st.binary(min_size=1, max_size=8))
        elif how == "delete":
            del content[place : place + draw(st.integers(1, 30))]
        elif how == "overwrite":
            content[place : place + 4] = draw(
                st.sampled_from([b"\xff" * 4, b"\0" * 4, b"\x7f\xff\xff\xff", b"\x80\0\0\0", b'",\n,'])
            )
    return bytes(content)


def read_by(kind, path):
    """What is read from a file, by all who read this kind."""
    if kind[0] != ".":
        return [lambda: ggdln.load(path)]
    task = {"kind": "file", "path": str(path), "P": 10, "P_t": 10} | ({} if kind.startswith(".nc") else {"labels": "sign"})
    gates = REGISTRIES["gates"].make({"kind": "file", "path": str(path)})
    return [lambda: ggdln.make_task(task, seed=1), lambda: gates.settled(None)]


@pytest.mark.parametrize("kind", [".npz", ".npz compressed", ".csv", ".nc", ".nc classic", "theory", "loop", "gp", "exact"])
def test_damaged_files_of_the_user_are_read_or_refused(kind, tmp_path):
    """Whatever was done to a file of samples, gates or a solution: numbers, or an error of ours that says what is wrong."""
    for read in read_by(kind, tmp_path / f"whole{whole(kind)[0]}"):
        (tmp_path / f"whole{whole(kind)[0]}").write_bytes(whole(kind)[1])
        if kind != ".csv":  # which has no column of numbers for each gate
            read()

    @QUIET
    @given(content=damaged(kind), name=st.integers(0, 10**9))
    def check(content, name):
        path = tmp_path / f"{name}{whole(kind)[0]}"  # a name of its own, since files are remembered by name, time and size
        path.write_bytes(content)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for read in read_by(kind, path):
                try:
                    read()
                except GgdlnError as error:
                    explained(error)
        path.unlink()

    check()


class Evil:
    """Runs a program when it is unpickled."""

    def __reduce__(self):
        return os.system, ("touch written",)


def header(text):
    """The beginning of a file of one array."""
    line = text.encode() + b" " * 40 + b"\n"
    return b"\x93NUMPY\x01\x00" + len(line).to_bytes(2, "little") + line


def archive(path, **members):
    with zipfile.ZipFile(path, "w") as file:
        for name, content in members.items():
            file.writestr(f"{name}.npy", content)


ENDLESS = header("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000, 4)}")
FOREIGN = {
    "pickled entries": lambda path: np.savez(path, x=np.array([Evil()] * 4, dtype=object), y=np.ones(4)),
    "a pickle": lambda path: path.write_bytes(pickle.dumps(Evil())),
    "pickles in an archive": lambda path: archive(path, x=pickle.dumps(Evil()), y=pickle.dumps(Evil())),
    "a header that calls": lambda path: archive(path, x=header("__import__('os').system('touch written')"), y=b""),
    "a header that is too large": lambda path: archive(path, x=ENDLESS, y=ENDLESS),
    "members elsewhere": lambda path: archive(path, **{"../x": b"", "/tmp/y": b""}),
    "records": lambda path: np.savez(path, x=np.zeros((5, 2), dtype=[("a", "f8")]), y=np.ones(5)),
    "complex numbers": lambda path: np.savez(path, x=np.ones((30, 2), dtype=complex), y=np.ones(30)),
    "dates": lambda path: np.savez(path, x=np.ones((30, 2)), y=np.arange(30).astype("M8[D]")),
    "a single number": lambda path: np.savez(path, x=np.array(3.0), y=np.array(3.0)),
    "text in Latin-1": lambda path: np.savez(path, x=np.ones((30, 2)), y=np.array([b"\xe4", b"a"] * 15)),
}


@pytest.mark.parametrize("case", FOREIGN)
def test_archives_from_elsewhere_run_nothing(case, tmp_path, monkeypatch):
    """Nothing is unpickled, called, or written anywhere; the message says what would be accepted."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "foreign.npz"
    FOREIGN[case](path)
    with pytest.raises(InputError, match=r"task\.path = .foreign\.npz.; accepted: ") as error:
        ggdln.make_task({"kind": "file", "path": path.name, "P": 2, "P_t": 2}, seed=1)
    assert "allow_pickle" not in str(error.value)
    with pytest.raises(FileError, match=r"foreign\.npz: "):
        ggdln.load(path)
    assert [left.name for left in tmp_path.iterdir()] == ["foreign.npz"]


def test_a_file_with_the_right_checksum_that_is_no_solution_is_refused(tmp_path):
    """Whoever writes one can make its checksum fit: what is missing in it is still said by an error of ours."""
    a_solution("theory").save(tmp_path / "whole.nc")
    content = xr.load_dataset(tmp_path / "whole.nc", engine="scipy", decode_cf=False)
    changes = {
        "missing": content.drop_vars("training_x"),
        "another shape": content.assign(training_y=("n", np.ones(3))),
        "another depth": content.assign(training_depth=((), np.int32(50))),
        "another kind": content.assign_attrs(kind="__class__"),
        "no kind": content.assign_attrs(kind=1),
    }
    for name, changed in changes.items():
        changed.attrs["sha256"] = digest(changed)
        changed.to_netcdf(tmp_path / "changed.nc", engine="scipy")
        with pytest.raises(FileError, match=r"changed\.nc: numbers that are no solution"):
            pytest.fail(f"{name}: {ggdln.load(tmp_path / 'changed.nc')}")


BOMB = "a: &a0 [x, x, x, x, x, x, x, x]\n" + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 8)}]\n" for i in range(1, 12))


@pytest.mark.parametrize(("text", "expected"), [
    (BOMB, "at most 200000 values, with what aliases stand for"),
    (BOMB + "experiments: {e: {assumed: {task: *a11}}}\nfigures: *a11", "at most 200000 values"),
    ("a: &a [*a, *a, *a, *a, *a, *a, *a, *a]", "line 1, column 8: \\*a; accepted: no alias to a value that contains it"),
    ("a: " + "[" * 200_000 + "]" * 200_000, "at most 20 levels"),
    ("? " * 50_000 + "a", "at most 20 levels"),
    (f"experiments: {{'e{{a}}': {{for: {[{name: list(range(30))} for name in 'abcdef']}, assumed: {{task: '{{b}}{{c}}{{d}}{{e}}{{f}}'}}}}}}",
     "experiments.e{a}.for = '729000000 entries'; accepted: at most 10000"),
])  # fmt: skip
def test_a_few_lines_of_yaml_dont_keep_the_reader_busy_for_ever(text, expected, tmp_path):
    (tmp_path / "foreign.yaml").write_text(text)
    with pytest.raises(ConfigError, match=expected):
        read_config(load([tmp_path / "foreign.yaml"]))
