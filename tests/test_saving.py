"""Solutions in files and on the screen: what is loaded predicts the same bit by bit, and everything shows itself in a line."""

import numpy as np
import pytest

import ggdln
from ggdln.core.errors import FileError, InputError

rng = np.random.default_rng(0)
X, NEW = rng.standard_normal((60, 8)), rng.standard_normal((20, 8))
X[5] = 0
FITTED = ggdln.fit_gates({"kind": "random", "M": 5, "b": 0.3}, X, seed=1)
G, G_NEW = FITTED(X), FITTED(NEW)
Y = np.tanh(X[:, 0] * X[:, 1])
TWO = np.column_stack([Y, X[:, 1] ** 2])


def blocks():
    yield from ((X[i : i + 20], G[i : i + 20], Y[i : i + 20]) for i in range(0, 60, 20))


DEEP = {"width": (30, 20), "depth": 2, "sigma": (1.0, 0.9, 1.1), "temperature": 0.1}
CASES = {
    "theory": lambda: ggdln.solve(np.asfortranarray(X), G, Y, width=30, temperature=0.1),
    "no noise": lambda: ggdln.solve(X[:20], G[:20], Y[:20], width=30),
    "deep": lambda: ggdln.solve(X, G, TWO, solver=ggdln.Solver(check_starts=2, basis="span"), **DEEP),
    "infinite": lambda: ggdln.solve(X, G, Y, width=np.inf, temperature=0.1),
    "blocks": lambda: ggdln.solve(blocks(), width=30, temperature=0.1),
    "gp": lambda: ggdln.gp_limit(X, G, TWO, temperature=0.1),
    "gp, no noise": lambda: ggdln.gp_limit(X, G, Y),
    "gp, blocks": lambda: ggdln.gp_limit(blocks(), temperature=0.1, sigma=(1.0, 2.0)),
    "loop": lambda: ggdln.solve(X, G, Y, width=30, temperature=0.1, loops=1),
    "exact": lambda: ggdln.solve_exact(X, G, Y, width=10, temperature=0.1, draws=10, chains=2, seed=3),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_loaded_predicts_the_same_bit_by_bit(case, tmp_path):
    solution = CASES[case]()
    solution.save(tmp_path / "solution.nc")
    loaded = ggdln.load(tmp_path / "solution.nc")
    for covariance in (False, True):
        for one, other in zip(*(s.predict(NEW, G_NEW, covariance=covariance) for s in (solution, loaded)), strict=True):
            np.testing.assert_array_equal(one, other)
    assert solution.log_evidence == loaded.log_evidence
    assert repr(solution) == repr(loaded)
    assert repr(solution).count("\n") == 0
    assert solution._repr_html_().startswith("<table>")
    np.testing.assert_array_equal(solution.sample(NEW, G_NEW, 2), loaded.sample(NEW, G_NEW, 2))
    assert [path.name for path in tmp_path.iterdir()] == ["solution.nc"]


def test_files_that_are_no_solutions_are_named(tmp_path):
    path = tmp_path / "solution.nc"
    with pytest.raises(FileError, match="there is no folder"):
        ggdln.gp_limit(np.eye(2), np.ones((2, 1)), np.ones(2)).save(tmp_path / "absent/x.nc")
    with pytest.raises(FileError, match="no such file"):
        ggdln.load(path)
    CASES["theory"]().save(path)
    content = bytearray(path.read_bytes())
    path.write_bytes(content[:500])
    with pytest.raises(FileError, match="truncated, damaged or not a file of a solution"):
        ggdln.load(path)
    content[-9] ^= 1
    path.write_bytes(content)
    with pytest.raises(FileError, match="checksum"):
        ggdln.load(path)


def test_other_objects_in_a_line():
    task = ggdln.make_task(
        {"kind": "noisy_teacher", "N0": 5, "P": 10, "P_t": 4, "N_T": 3, "gamma": 0.5, "epsilon": 0.1}, seed=0
    )
    chosen = ggdln.select(X, G, Y, width=30, sigma=[0.5, 1.0], temperature=0.1)
    assert repr(FITTED) == "FittedGates(kind=random, M=5, b=0.3)"
    assert repr(task).startswith("TaskData(P=10, P_t=4, N0=5")
    assert repr(chosen).startswith("Selection(width=30, sigma=")
    for shown in (FITTED, task, chosen, ggdln.Solver()):
        assert "\n" not in repr(shown)


def test_plots_of_eigenvalues():
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    solution = CASES["deep"]()
    ax = solution.plot()
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), solution.eigenvalues[0][::-1])
    plt.close("all")
    with pytest.raises(InputError, match="no order parameters"):
        CASES["gp"]().plot()
