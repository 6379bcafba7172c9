import numpy as np

import ggdln

x = np.random.default_rng(0).standard_normal((60, 30))
gates = ggdln.fit_gates({"kind": "random", "M": 8, "b": 0.0}, x, seed=1)
limit = ggdln.gp_limit(x, gates(x), np.sign(x[:, 0]), depth=3)
assert limit.train_error < 1e-12  # below capacity everything is fitted
mean, variance = limit.predict(x, gates(x))
found = limit.prediction(x, gates(x))  # the same with names
assert np.array_equal(found["mean"], mean)
assert (found["variance"].dims, found["variance"].units) == (("input",), "labels^2")
