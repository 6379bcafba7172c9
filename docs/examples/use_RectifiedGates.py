import numpy as np

import ggdln

x = np.random.default_rng(0).standard_normal((100, 12))
gates = ggdln.RectifiedGates(M=8, random_state=1).fit(x)
assert gates.transform(x).shape == (100, 8)
assert len(np.unique(gates.transform(x))) > 2  # they grow with their input
