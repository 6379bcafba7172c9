import numpy as np

import ggdln

x = np.random.default_rng(0).standard_normal((100, 12))
gates = ggdln.LocalGates(M=8, subsets=4, random_state=1).fit(x)
assert gates.transform(x).shape == (100, 8)
assert not np.array_equal(gates.transform(x), ggdln.LocalGates(M=8, subsets=2, random_state=1).fit(x).transform(x))
