import numpy as np

import ggdln

x = np.random.default_rng(0).standard_normal((100, 12))
gates = ggdln.SoftKMeansGates(M=4, stiffness=3.0, random_state=1).fit(x)
assert gates.transform(x).shape == (100, 4)
assert np.allclose(gates.transform(x).sum(axis=1), 1)  # shares of the clusters
