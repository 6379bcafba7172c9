"""Langevin dynamics."""

from typing import ClassVar, Literal

from pydantic import Field

from ggdln.core.kinds import Costs, Look
from ggdln.experiments.methods._sampled import Sampled
from ggdln.networks.settings import pass_count, weight_count


class Langevin(Sampled):
    """Langevin dynamics"""

    look: ClassVar[Look] = Look("Langevin", "blue", marker="o")
    itemsize: ClassVar[int] = 4
    costs: ClassVar[Costs] = Costs(
        {"points": 0.0188, "start": 1.18, "steps": 0.1, "noise": 10.0},
        {"inputs": 1.0, "networks": 1.0, "samples": 13.2, "start": 204.0},
    )

    step: float = Field(gt=0, le=2, description="Step size epsilon times the largest tangent eigenvalue")
    noise: Literal["fresh", "averaged"] = Field(
        "fresh", description="fresh: new noise in each step; averaged: its mean with the last, right to second order"
    )

    def sample(self, arrays, **settings):
        from ggdln.networks.langevin import langevin
        from ggdln.networks.settings import Step

        return langevin(*arrays, step=Step(self.step, self.noise), **settings)

    def work(self, sweeps, sizes, M, network):
        made_of = sizes.N0, M, network, sizes.C
        return {"steps": sweeps * pass_count(sizes.P, *made_of) / 1e9, "noise": sweeps * weight_count(*made_of) / 1e9}
