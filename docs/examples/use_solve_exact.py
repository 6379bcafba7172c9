import numpy as np

import ggdln

x = np.random.default_rng(0).standard_normal((40, 10))
gates = ggdln.fit_gates({"kind": "random", "M": 3, "b": 0.0}, x, seed=1)
exact = ggdln.solve_exact(x, gates(x), np.sign(x[:, 0]), width=8, temperature=0.1)  # eight neurons
assert exact.mixed
found = exact.prediction(x, gates(x))
assert (found.mean_error < 0.1 * found.variance**0.5 + 0.01).all()
