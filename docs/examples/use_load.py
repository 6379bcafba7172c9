import tempfile
from pathlib import Path

import numpy as np

import ggdln

rng = np.random.default_rng(0)
x, x_new = rng.standard_normal((40, 10)), rng.standard_normal((5, 10))
gates = ggdln.fit_gates({"kind": "random", "M": 4, "b": 0.0}, x, seed=1)
solution = ggdln.solve(x, gates(x), x[:, 0] * x[:, 1], width=20, temperature=0.01)
with tempfile.TemporaryDirectory() as folder:
    solution.save(Path(folder) / "mine.nc")
    again = ggdln.load(Path(folder) / "mine.nc")
assert np.allclose(again.predict(x_new, gates(x_new)), solution.predict(x_new, gates(x_new)))
