import numpy as np

import ggdln

rng = np.random.default_rng(0)
x, x_new = rng.standard_normal((30, 20)), rng.standard_normal((5, 20))
data = x, np.ones((30, 1)), x[:, 0], x_new, np.ones((5, 1))  # one open gate: a linear network
training = ggdln.Training(integrator="descent", step=0.5, tolerance=1e-2)
networks = ggdln.train_ensemble(*data, runs=2, seed=0, width=40, training=training)
assert (networks.train_mse <= 1e-2).all()
