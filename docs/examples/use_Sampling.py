import ggdln

sampling = ggdln.Sampling(chains=8, draws=1000)  # what isn't given is the sampler's own
assert (sampling.chains, sampling.warmup) == (8, None)
