"""The exact posterior, by Gibbs sampling of the layers."""

from typing import ClassVar

from ggdln.core.kinds import Costs, Look
from ggdln.experiments.methods._sampled import Sampled
from ggdln.networks.settings import weight_count


class Posterior(Sampled):
    """Exact posterior, by Gibbs sampling of the layers"""

    look: ClassVar[Look] = Look("exact posterior", "teal", marker="s", markerfacecolor="white")
    costs: ClassVar[Costs] = Costs(
        {"factors": 0.0244, "points": 0.0188, "products": 0.296, "start": 1.18},
        {"inputs": 1.0, "networks": 1.0, "samples": 13.2, "start": 204.0},
    )

    def sample(self, arrays, **settings):
        from ggdln.networks.gibbs import sample_posterior

        return sample_posterior(*arrays, **settings)

    def work(self, sweeps, sizes, M, network):
        products = network.depth * sizes.pairs * network.width + weight_count(sizes.N0, M, network, sizes.C)
        factors = (network.depth + 1) * sizes.pairs**3
        return {"factors": sweeps * factors / 1e9, "products": sweeps * sizes.pairs * products / 1e9}
