from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

import ggdln

x, x_new, y, y_new = train_test_split(*load_diabetes(return_X_y=True), random_state=0)
network = ggdln.GGDLNRegressor(ggdln.RandomGates(M=8), width=50, temperature="evidence").fit(x, y)
mean, std = network.predict(x_new, return_std=True)
assert mean.shape == std.shape == y_new.shape
assert network.score(x_new, y_new) > 0.2
