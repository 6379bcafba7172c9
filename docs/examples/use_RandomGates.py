import numpy as np

import ggdln

x = np.random.default_rng(0).standard_normal((100, 12))
gates = ggdln.RandomGates(M=8, b=0.0, random_state=1).fit(x)
assert gates.transform(x).shape == (100, 8)
assert set(np.unique(gates.transform(x))) == {0.0, 1.0}  # half-spaces
