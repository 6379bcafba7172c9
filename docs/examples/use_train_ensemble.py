import numpy as np

import ggdln

rng = np.random.default_rng(0)
x, x_new = rng.standard_normal((40, 20)), rng.standard_normal((10, 20))
gates = ggdln.fit_gates({"kind": "random", "M": 8, "b": 0.0}, x, seed=1)
data = x, gates(x), np.sign(x[:, 0]), x_new, gates(x_new)
networks = ggdln.train_ensemble(*data, runs=6, seed=1, width=50, depth=2)
assert networks.prediction.dims == ("run", "test")
assert networks.attrs["failed"] == 0  # all have reached the training error at which they stop
