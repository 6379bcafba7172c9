from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split

import ggdln

x, x_new, y, y_new = train_test_split(*load_wine(return_X_y=True), random_state=0)
network = ggdln.GGDLNClassifier(ggdln.SoftKMeansGates(M=4), width=50, temperature="evidence").fit(x, y)
assert network.predict_proba(x_new).shape == (len(x_new), 3)
assert network.score(x_new, y_new) > 0.8
