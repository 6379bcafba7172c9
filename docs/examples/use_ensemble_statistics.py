import numpy as np

import ggdln

predictions = np.random.default_rng(0).normal([1.0, -1.0, 1.0], 0.3, (20, 3))  # (run, test)
found = ggdln.ensemble_statistics(predictions, np.array([1.0, -1.0, 1.0]))
assert found["used"] == 20
assert abs(found["variance"] - 0.09) < 4 * found["variance_error"]
