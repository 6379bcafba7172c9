import numpy as np

import ggdln

x = np.random.default_rng(0).standard_normal((100, 30))
gates = ggdln.fit_gates({"kind": "random", "M": 8, "b": 0.0}, x, seed=1)
assert gates(x).shape == (100, 8)  # and the same gates at any other inputs: gates(x_new)
