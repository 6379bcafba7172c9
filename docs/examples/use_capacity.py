import ggdln

assert ggdln.capacity(30, M=8, L=1) == 30 * 8
assert ggdln.capacity(30, M=8, L=2) == 30 * 36  # N0 times the pairs of gates
assert ggdln.capacity(30, M=8, L=3) > ggdln.capacity(30, M=8, L=3, binary=True)  # g^2 = g for 0/1 gates
