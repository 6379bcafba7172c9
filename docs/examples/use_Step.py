import ggdln

step = ggdln.Step(0.4, "averaged")  # twice as long as the usual one, without its bias
assert (step.size, step.noise) == (0.4, "averaged")
