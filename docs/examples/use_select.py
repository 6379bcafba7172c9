import numpy as np

import ggdln

x = np.random.default_rng(0).standard_normal((60, 30))
gates = ggdln.fit_gates({"kind": "random", "M": 8, "b": 0.0}, x, seed=1)
found = ggdln.select(x, gates(x), np.sign(x[:, 0]), width=[10, 100], M=[4, 8])  # sigma and temperature are free
assert found.curve.log_evidence.dims == ("M", "width")
assert found.solution.log_evidence == found.curve.log_evidence.max()
