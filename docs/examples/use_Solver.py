import numpy as np

import ggdln

x = np.random.default_rng(0).standard_normal((60, 30))
gates = ggdln.fit_gates({"kind": "random", "M": 4, "b": 0.0}, x, seed=1)
solver = ggdln.Solver(tolerance=1e-6, check_starts=2)  # and two more starting points
solution = ggdln.solve(x, gates(x), np.sign(x[:, 0]), width=20, temperature=0.1, solver=solver)
assert solution.hamiltonian <= min(solution.starts.values()) + 1e-9
