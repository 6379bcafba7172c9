import ggdln

task = ggdln.make_task({"kind": "mnist_parity", "P": 100, "P_t": 500}, seed=0, draw=3)
assert task.x.shape == (100, 784)
assert set(task.y) == {-1.0, 1.0}  # odd and even
