import ggdln

runtime = ggdln.Runtime(device="cpu", dtype="float64", checkpoint="state.pt", progress=True)
assert runtime.checkpoint_seconds == 60  # a call that was cut short goes on from the file
