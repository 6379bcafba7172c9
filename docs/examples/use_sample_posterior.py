import numpy as np

import ggdln

rng = np.random.default_rng(0)
x, x_new = rng.standard_normal((30, 20)), rng.standard_normal((5, 20))
gates = ggdln.fit_gates({"kind": "random", "M": 3, "b": 0.0}, x, seed=1)
data = x, gates(x), np.sign(x[:, 0]), x_new, gates(x_new)
chains = ggdln.sample_posterior(*data, temperature=0.01, seed=1, width=30)
assert chains.prediction.dims == ("chain", "draw", "test")
assert chains.attrs["mixed"] == 1  # by R-hat and effective sample size
