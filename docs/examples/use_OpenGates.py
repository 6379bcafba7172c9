import numpy as np

import ggdln

x = np.random.default_rng(0).standard_normal((100, 12))
gates = ggdln.OpenGates(M=1).fit(x)
assert gates.transform(x).shape == (100, 1)
assert (gates.transform(x) == 1).all()  # a deep linear network
