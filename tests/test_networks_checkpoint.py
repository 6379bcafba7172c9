"""A killed calculation goes on from its last saved state and gives the bits of an unbroken one."""

import os
import re
import subprocess
import sys
import textwrap
import warnings

import numpy as np
import pytest

from ggdln.networks.gibbs import sample_posterior
from ggdln.networks.langevin import langevin
from ggdln.networks.settings import Runtime, Sampling, Training
from ggdln.networks.training import train_ensemble, train_relu

rng = np.random.default_rng(0)
X, Y, X_TEST = rng.standard_normal((20, 12)), np.sign(rng.standard_normal(20)), rng.standard_normal((7, 12))
G, G_TEST = (X[:, :3] > 0) + 0.1, (X_TEST[:, :3] > 0) + 0.1
DATA = X, G, Y, X_TEST, G_TEST
COMMON = dict(width=9, sigma=0.7, seed=5)
# name: (function, arguments, save before which the process is killed)
JOBS = {
    "flow": (train_ensemble, DATA, dict(runs=3), 22),
    "descent": (train_ensemble, DATA, dict(runs=3, training=Training("descent", tolerance=0.1)), 100),
    "descent deep": (train_ensemble, DATA, dict(runs=2, depth=2, training=Training("descent", tolerance=0.3)), 40),
    "relu": (train_relu, (X, Y, X_TEST), dict(runs=3, width=60), 42),
    "gibbs": (sample_posterior, DATA, dict(temperature=1e-4, sampling=Sampling(chains=3, draws=20, warmup=5)), 40),
    "langevin": (langevin, DATA, dict(temperature=0.1, sampling=Sampling(chains=3, draws=9, warmup=60, thin=11)), 100),
    # in the second of three rounds
    "gibbs rounds": (sample_posterior, DATA, dict(temperature=1e-4, sampling=Sampling(3, 6, 5, 1, rounds=3)), 45),
    "langevin rounds": (langevin, DATA, dict(temperature=0.1, sampling=Sampling(3, 6, 30, 5, rounds=3)), 80),
}


def run(name, path, seconds=0.0):
    function, data, arguments, _ = JOBS[name]
    # so little memory that Gibbs samples chain after chain
    runtime = Runtime(checkpoint=path, checkpoint_seconds=seconds, memory_mb=0.1 if "gibbs" in name else 4096)
    return function(*data, **(COMMON | arguments), runtime=runtime)


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """Checkpoints left by processes that were killed with SIGKILL in the middle; one child process per job."""
    folder = tmp_path_factory.mktemp("checkpoints")
    script = """
        import os, signal, sys
        sys.path.insert(0, sys.argv[1])
        import test_networks_checkpoint as jobs
        from ggdln.networks.checkpoint import Checkpoint

        for name, (*_, limit) in jobs.JOBS.items():
            child = os.fork()
            if not child:
                save, count = Checkpoint.save, 0

                def counted(self, state):
                    global count
                    count += 1
                    if count == limit:
                        os.kill(os.getpid(), signal.SIGKILL)
                    save(self, state)

                Checkpoint.save = counted
                jobs.run(name, os.path.join(sys.argv[2], name))
                os._exit(0)
            print(name, os.waitpid(child, 0)[1], sep=",", flush=True)
    """
    command = [sys.executable, "-c", textwrap.dedent(script), os.path.dirname(__file__), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return folder, dict(line.split(",") for line in done.stdout.split("\n") if line)


@pytest.mark.parametrize("name", JOBS)
def test_a_killed_job_resumes_with_the_same_bits(name, killed):
    """SIGKILL half-way, then the same call: it starts from the saved state, and every number is the unbroken run's."""
    folder, ends = killed
    assert ends[name] == "9"
    path = folder / name
    with np.load(path) as saved:
        half_way = "chain" in saved.files or ((saved["status"] < 0).any() and (saved["status"] >= 0).any())
    assert half_way
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)  # an ignored checkpoint would warn
        resumed = run(name, path, seconds=1e9)
    unbroken = run(name, None)
    assert resumed.identical(unbroken)
    assert np.isfinite(unbroken.prediction).all()


def test_a_finished_checkpoint_answers_without_computing(tmp_path, monkeypatch):
    """A second call with the file of a finished one gives the same dataset, taking no step."""
    first = run("flow", tmp_path / "state.npz")
    monkeypatch.setattr("ggdln.networks.flow.Flow.advance", lambda *_: pytest.fail("computed again"))
    assert run("flow", tmp_path / "state.npz").identical(first)
    assert [p.name for p in tmp_path.iterdir()] == ["state.npz"]


@pytest.mark.parametrize("damage", ["truncated", "flipped", "text", "method", "other"])
def test_a_damaged_or_foreign_checkpoint_is_ignored_with_a_warning(damage, tmp_path, killed):
    """The result is that of a fresh run, and a warning says why the file was not used."""
    path = tmp_path / "state.npz"
    content = bytearray((killed[0] / "flow").read_bytes())
    if damage == "truncated":
        content = content[: len(content) // 2]
    elif damage == "flipped":
        content[::97] = bytes(255 - b for b in content[::97])
    elif damage == "method":  # the directory of the archive names a compression that doesn't exist
        content[content.rindex(b"PK\1\2") + 10] = 77
    elif damage == "text":
        content = b"not a checkpoint"
    else:
        content = (killed[0] / "descent").read_bytes()
    path.write_bytes(content)
    with pytest.warns(RuntimeWarning, match="other arguments" if damage == "other" else "cannot be read"):
        result = run("flow", path)
    assert result.identical(run("flow", None))


def test_progress_reports_rate_and_time_left():
    """The callback hears of the end: all runs done, a positive rate, no time left."""
    calls = []
    train_ensemble(*DATA, **COMMON, runs=2, runtime=Runtime(progress=lambda *call: calls.append(call)))
    done, total, rate, left = calls[-1]
    assert (done, total, left) == (2, 2, 0)
    assert rate > 0


@pytest.mark.parametrize("progress", [True, None])
def test_progress_is_a_line_of_the_terminal_or_of_the_log(progress, capsys, caplog):
    """True prints to the standard error stream the line that otherwise is logged, and then nothing is logged."""
    with caplog.at_level("INFO", logger="ggdln"):
        train_ensemble(*DATA, **COMMON, runs=2, runtime=Runtime(progress=progress))
    printed, logged = capsys.readouterr().err.splitlines(), [record.getMessage() for record in caplog.records]
    lines, others = (printed, logged) if progress else (logged, printed)
    assert not others
    assert re.fullmatch(r"train_ensemble: 2 of 2 runs, \S+ per second, 0 s left", lines[-1])
