import numpy as np

import ggdln

rng = np.random.default_rng(0)
x, x_new = rng.standard_normal((40, 20)), rng.standard_normal((10, 20))
networks = ggdln.train_relu(x, np.sign(x[:, 0]), x_new, width=100, runs=3, seed=1)
assert (networks.train_mse <= 1e-3).all()
