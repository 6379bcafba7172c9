import numpy as np

import ggdln

found = ggdln.predictor_statistics(mean=np.array([0.9, -0.8]), variance=np.array([0.1, 0.2]), y=np.array([1.0, -1.0]))
assert np.isclose(found["bias"], 0.025)
assert np.isclose(found["generalization_error"], found["bias"] + found["variance"])
