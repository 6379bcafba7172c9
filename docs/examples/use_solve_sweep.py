import math

import numpy as np

import ggdln

x = np.random.default_rng(0).standard_normal((60, 30))
gates = ggdln.fit_gates({"kind": "random", "M": 8, "b": 0.0}, x, seed=1)
widths = [10, 100, 1000, math.inf]
solutions = ggdln.solve_sweep(x, gates(x), np.sign(x[:, 0] * x[:, 1]), widths=widths)
largest = [solution.eigenvalues[0].max() for solution in solutions]
assert largest[0] > largest[1] > largest[2] > largest[3]  # narrow networks select; sigma^2 = 1 in the limit
