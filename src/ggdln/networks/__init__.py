"""Networks that learn: gradient descent and flow, Langevin dynamics, the exact posterior sampler, the ReLU baseline."""
