import numpy as np

import ggdln

rng = np.random.default_rng(0)
x, x_new = rng.standard_normal((100, 30)), rng.standard_normal((50, 30))
gates = ggdln.fit_gates({"kind": "random", "M": 8, "b": 0.0}, x, seed=1)
solution = ggdln.solve(x, gates(x), np.tanh(x[:, 0] * x[:, 1]), width=50, depth=2)
mean, variance = solution.predict(x_new, gates(x_new))
assert mean.shape == variance.shape == (50,)
assert solution.residual < 1e-8  # the certificate
assert solution.order_parameters[0].shape == (8, 8)  # U_1
