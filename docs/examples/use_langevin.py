import numpy as np

import ggdln

rng = np.random.default_rng(0)
x, x_new = rng.standard_normal((30, 20)), rng.standard_normal((5, 20))
gates = ggdln.fit_gates({"kind": "random", "M": 3, "b": 0.0}, x, seed=1)
data = x, gates(x), np.sign(x[:, 0]), x_new, gates(x_new)
sampling = ggdln.Sampling(chains=2, draws=50, warmup=200, thin=2)
chains = ggdln.langevin(*data, temperature=0.1, seed=1, width=30, sampling=sampling)
assert chains.prediction.shape == (2, 50, 5)
