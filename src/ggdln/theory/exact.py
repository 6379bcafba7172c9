"""The posterior of a network of finite width, without approximation: Hamiltonian Monte Carlo on the matrices of `posterior`.

Given a draw of the order parameters the output is a Gaussian process, so the predictor is a mixture of Gaussian processes: its
mean and variance follow from the draws without any noise of sampled outputs, <f> = E[mean] and var f = E[variance] + Var[mean].
"""

import math
from contextlib import suppress
from functools import cached_property, partial
from typing import Unpack

import numpy as np
import xarray as xr

from ggdln.core import checks, seeds
from ggdln.core.blas import threads_for
from ggdln.core.diagnostics import rhat_and_ess
from ggdln.core.errors import ConvergenceError, InputError
from ggdln.core.progress import Progress, reporter
from ggdln.core.types import (
    Gatings,
    GivenDraw,
    Inputs,
    Labels,
    NetworkKeywords,
    OrderParameter,
    OtherGatings,
    OtherInputs,
    Told,
)
from ggdln.core.variables import NUMBER, Variable, described
from ggdln.theory.evidence import log_evidence
from ggdln.theory.montecarlo import Pace, Walker, fitted_form, log_volume
from ggdln.theory.posterior import Posterior
from ggdln.theory.predictor import Predictor
from ggdln.theory.probe import DrawnProbe, NewInputs, Probe
from ggdln.theory.solution import NetworkShape, Solver, in_gate_basis, saddle_point, solver_of
from ggdln.theory.training import Training

RHAT_LIMIT, ESS_LIMIT = 1.05, 100
"""Chains have mixed if R-hat is at most, and the effective sample size at least this."""

COEXISTING = 10.0
"""Minima of H no further than this above the lowest have chains of their own."""

SMOOTH = 0.03
"""Error of gradients in single precision up to which kicks go by them. It moves the energy of a trajectory by about as much."""

ALIKE = 1e-3
"""Error of predictions in single precision, in standard deviations and as a share of variances, up to which they are used: that
of a thousand draws is ten times as large."""

ROUGHLY = 1.0
"""How far above its minimum the energy may be, about, at the centre of the quadratic form: less than its spread."""

ENERGY = Variable("energy of the order parameters, up to a constant", "E", units=NUMBER)


def solve_exact(
    x: Inputs,
    gates: Gatings | None = None,
    y: Labels | None = None,
    *,
    temperature: float,
    draws: int = 100,
    chains: int = 4,
    rounds: int = 1,
    seed: int = 0,
    solver: Solver | None = None,
    progress: Told | None = None,
    **network: Unpack[NetworkKeywords],
) -> "ExactSolution":
    """The posterior at any width, sampled: an `ExactSolution`.

    x, gates, y      as for `solve`, blocks included
    temperature      T > 0, down to 1e-8 times the prior variance of the output
    draws, chains    draws kept of each chain, and independent chains, after a warm-up in which they learn their steps
    rounds           chains that haven't mixed go on for as many draws again, until they have or have made so many rounds
    seed             of the random numbers of all chains
    solver           a `Solver` for the saddle point, from which the coordinates are chosen
    progress         True, or a function (done, total, rate, seconds_left)
    network          width, depth=1 and sigma=1.0, as for `solve`; widths are whole numbers

    Draws are nearly independent whatever the width, and cost two or three factorizations of the kernel each.
    """
    solver, report = solver_of(solver), reporter("progress", progress)
    draws, chains = checks.integer("draws", draws, 4), checks.integer("chains", chains, 1)
    rounds = checks.integer("rounds", rounds, 1)
    temperature = checks.number("temperature", temperature, 0, exclusive=True)
    _check_keywords(network)
    shape = _shape(**network)
    training = Training.of(x, gates, y, depth=shape.depth, basis=solver.basis, form=solver.form)
    solution = saddle_point(training, shape, temperature, solver)
    with threads_for(solution.likelihood.form.side):
        modes = [_Mode(Posterior(solution, layers), seed) for layers in solution.coexisting(COEXISTING)]
        found = [_Chain(modes[i % len(modes)], seeds.rng(seed, "solve_exact", i)) for i in range(chains)]
        for made in range(rounds):
            told = Progress("solve_exact", "draws", (made + 1) * chains * draws, report, done=made * chains * draws)
            for number, chain in enumerate(found):
                chain.run(draws, (made * chains + number) * draws, told)
            # Energies are at hand, order parameters have to be made. Chains at different minima needn't ever meet.
            last = made + 1 == rounds or len(modes) > 1
            if last or _mixing(np.stack([chain.energies for chain in found])[..., None])[2]:
                exact = ExactSolution(solution, modes, found, seed)
                if last or exact.mixed:
                    break
    return exact


def _mixing(traces):
    """The largest R-hat and the least effective sample size of traces (chain, draw, trace), and whether chains have mixed."""
    rhat, ess = (np.asarray(values) for values in rhat_and_ess(traces))
    return float(rhat.max()), float(ess.min()), bool(rhat.max() <= RHAT_LIMIT and ess.min() >= ESS_LIMIT)


def _check_keywords(network):
    unknown = set(network) - set(NetworkKeywords.__annotations__)
    if unknown:
        accepted = ", ".join(NetworkKeywords.__annotations__)
        raise InputError(f"{sorted(unknown)[0]}: solve_exact has no such keyword; accepted for the network: {accepted}")
    if "width" not in network:
        raise InputError("width: solve_exact needs the number of units of a layer, a whole number >= 1")


def _shape(*, width, depth=1, sigma=1.0):
    """The `NetworkShape`, with whole widths. Editors find the keywords of `solve_exact` by way of this call."""
    depth, whole = checks.integer("depth", depth, 1), partial(checks.integer, low=1)
    width = checks.one_or_each("width", width, whole, "a whole number >= 1", depth, "hidden layers")
    return NetworkShape(width, sigma, depth)


def _trace(level):
    """The `Variable` of the trace of a layer."""
    return Variable(f"mean diagonal entry of V_{level}, relative to the prior", f"tr V_{level} / r_{level}", units=NUMBER)


class _Mode:
    """A `Posterior` in the coordinates of one of its modes, with the quadratic `Form` there."""

    def __init__(self, posterior, seed):
        self.posterior, centre = posterior, posterior.mode(ROUGHLY)
        rng = seeds.rng(seed, "solve_exact", "form")
        self.form = fitted_form(posterior.energy, centre, posterior.prior_curvature(centre), rng)
        self.pace = Pace()
        rough = posterior.likelihood.halves and self.roughness(rng.standard_normal(posterior.size)) < SMOOTH
        self.energy, self.force = (posterior.rough_energy, posterior.rough_gradient) if rough else (posterior.energy, None)

    def roughness(self, s):
        """The error of gradients in single precision at a point like those of the posterior, in units of its widths."""
        u = self.form.outward(s)
        found = self.posterior.rough_gradient(u), self.posterior.rough_energy(u)[1], self.posterior.energy(u)[1]
        if any(gradient is None for gradient in found):
            return math.inf
        *rough, true = (self.form.pulled(gradient) for gradient in found)
        return max(float(np.linalg.norm(gradient - true)) for gradient in rough)


class _Chain:
    """One chain: its draws u (draw, D), their energies, and how it went."""

    def __init__(self, mode, rng):
        self.mode, self.posterior, self.rng, self.walker, self.rates = mode, mode.posterior, rng, None, []
        self.u, self.energies = np.empty((0, mode.posterior.size)), np.empty(0)

    def run(self, draws, before, told):
        """Keep so many more draws, at first after a warm-up; told: the Progress of all chains, which have made `before`."""
        if self.walker is None:
            self.walker = self._started()
        walker, posterior = self.walker, self.posterior
        u, energies = np.empty((draws, posterior.size)), np.empty(draws)
        for k in range(draws):
            self.rates.append(walker.move())
            u[k] = posterior.upright(self.mode.form.outward(walker.s))
            energies[k] = walker.value
            told.update(before + k + 1)
        self.u, self.energies = np.concatenate([self.u, u]), np.concatenate([self.energies, energies])
        self.acceptance, self.kicks = float(np.mean(self.rates)), walker.pace.kicks

    def _started(self):
        """The `Walker`, warmed up. Its start is as wide as the posterior, so there is little to forget."""
        walker = Walker(self.mode.energy, self.mode.form, self.rng, pace=self.mode.pace, force=self.mode.force)
        for spread in (1.0, 0.5, 0.25, 0.1, 0.0):
            if walker.place(spread * self.rng.standard_normal(self.posterior.size)):
                break
        else:
            raise ConvergenceError("the energy is not finite at its minimum: the temperature is too small for these data")
        walker.warm_up()  # the first chain learns for all
        return walker


class ExactSolution(Predictor):
    """Draws from the posterior of the order parameters, and the predictor that they make.

    saddle          the `Solution` of the theory for the same network
    traces          a Dataset over chain and draw: energy, and tr V_l / r_l of every level
    acceptance      share of accepted trajectories; kicks: gradients in each
    rhat, ess       the largest R-hat and the least effective sample size of the traces
    mixed           whether R-hat is at most 1.05 and the effective sample size at least 100
    evaluations     factorizations of the kernel
    """

    traces: xr.Dataset

    def __init__(self, saddle, modes, chains, seed):
        self.saddle, self.training, self.shape, self.temperature = saddle, saddle.training, saddle.shape, saddle.temperature
        self.width, self.sigma, self.depth, self.dead = saddle.width, saddle.sigma, saddle.depth, saddle.dead
        self.likelihood, self.seed, self._modes, self._chains = saddle.likelihood, seed, modes, chains
        self.acceptance = float(np.mean([chain.acceptance for chain in chains]))
        self.kicks = max(chain.kicks for chain in chains)
        self.evaluations = saddle.evaluations + sum(mode.posterior.evaluations for mode in modes)
        self.traces = self._traces()
        self.rhat, self.ess, self.mixed = _mixing(np.stack([self.traces[name] for name in self.traces], axis=-1))

    def _each(self):
        """Number of chain and draw, and the `Chain` of order parameters, of every draw."""
        for number, chain in enumerate(self._chains):
            for k, u in enumerate(chain.u):
                yield number, k, chain.posterior.chain(u)

    def _traces(self):
        shape = len(self._chains), len(self._chains[0].u)
        self._means, traces = [0.0] * self.depth, [np.empty(shape) for _ in range(self.depth)]
        for number, k, chain in self._each():
            for level, v in enumerate(chain.v):
                traces[level][number, k] = np.trace(v) / len(v)
                self._means[level] = self._means[level] + v / math.prod(shape)
        energies = np.stack([chain.energies for chain in self._chains])
        found = {"energy": energies} | {f"order_parameter_{level + 1}": trace for level, trace in enumerate(traces)}
        dataset = xr.Dataset({name: (("chain", "draw"), values) for name, values in found.items()})
        return described(dataset, dict(zip(found, (ENERGY, *map(_trace, range(1, self.depth + 1))), strict=True)))

    @property
    def log_evidence(self) -> float:
        """log p(y), see `ggdln.theory.evidence`; found on first use, by sampling between a Gaussian and the posterior.

        That takes some times as long as the draws. It is no better than these: chains that haven't mixed give a wrong one.
        """
        return self._evidence[0]

    @property
    def log_evidence_error(self) -> float:
        """Standard error of `log_evidence`."""
        return self._evidence[1]

    @cached_property
    def _evidence(self):
        found = []
        for number, mode in enumerate(self._modes):
            posterior, rng = mode.posterior, seeds.rng(self.seed, "solve_exact", "evidence", number)
            draws = np.concatenate([chain.u for chain in self._chains if chain.mode is mode] or [np.empty((0, posterior.size))])
            volume, error = log_volume(posterior.upright_energy, mode.form, draws, rng)
            energy = posterior.log_prior_volume() - volume + self.likelihood.shift
            found.append((log_evidence(self.training, self.temperature, energy), error))
        values, errors = np.array(found).T
        return float(np.logaddexp.reduce(values)), float(errors[values.argmax()])

    @cached_property
    def order_parameters(self) -> list[OrderParameter]:
        """Means of V_1 ... V_L over the posterior, in the bases of `Solution.order_parameters`."""
        return in_gate_basis(self.training.powers, self._means, self.shape.variances)

    def conditional_everywhere(self, x: OtherInputs, gates: OtherGatings) -> list[GivenDraw]:
        """Mean and variance of the output given each draw, (chain, draw, n), or (chain, draw, n, C), both 0 at dead inputs."""
        x, gates = self._checked(x, gates, "")
        live, sides = self.live(x, gates), self.training.sides
        results = []
        for values in self.conditional(x[live], gates[live]):
            full = np.zeros((*values.shape[:2], len(x), sides))
            full[:, :, live] = values.reshape(*values.shape[:2], -1, sides)
            results.append(full[..., 0] if self.training.outputs is None else full)
        return results

    def conditional(self, x, gates):
        """Mean and variance of the output given each draw, at live inputs, (chain, draw, n) each; n counts outputs too."""
        shape = len(self._chains), len(self._chains[0].u), len(x) * self.training.sides
        means, variances, inputs = np.empty(shape), np.empty(shape), NewInputs(self.training, x, gates)
        rough = False
        for number, k, chain in self._each():
            found = None
            if k > 0 and rough:
                with suppress(FloatingPointError):
                    found = self._given(chain, inputs, (number, k), covariance=False, dtype=np.float32)
            found = found or self._given(chain, inputs, (number, k), covariance=False)
            if k == 0:  # chains may be at different minima
                rough = self._alike(*found, chain, inputs, number)
            means[number, k], variances[number, k] = found
        return means, np.maximum(variances, 0.0)

    def _alike(self, mean, variance, chain, inputs, number):
        """Whether single precision, where it is faster, gives the mean and variance of a chain's first draw too."""
        if not self.likelihood.halves:
            return False
        try:
            rough, spread = self._given(chain, inputs, (number, 0), covariance=False, dtype=np.float32)
        except FloatingPointError:
            return False
        near = np.abs(rough - mean) <= ALIKE * np.sqrt(np.maximum(variance, 0.0))
        return bool(near.all() and (np.abs(spread - variance) <= ALIKE * variance).all())

    def _given(self, chain, inputs, which, *, covariance, dtype=np.float64):
        rng = seeds.rng(self.seed, "solve_exact", "outside", *which)
        probe = DrawnProbe(inputs, chain, self._chains[0].posterior.widths, rng)
        scale = self.shape.scale * probe.scale
        mean, spread = self.likelihood.at(chain.b[-1], dtype).predict(probe, covariance)
        return scale * mean, spread * (np.outer(scale, scale) if covariance else scale**2)

    def moments(self, x, gates, covariance):
        if not covariance:
            means, variances = self.conditional(x, gates)
            return means.mean((0, 1)), variances.mean((0, 1)) + means.var((0, 1), ddof=1)
        means, total, count = [], 0.0, sum(len(chain.u) for chain in self._chains)
        inputs = NewInputs(self.training, x, gates)
        for number, k, chain in self._each():
            mean, spread = self._given(chain, inputs, (number, k), covariance=True)
            means.append(mean)
            total = total + spread / count
        return np.mean(means, axis=0), total + np.cov(np.array(means).T, ddof=1).reshape(total.shape)

    def components(self, x, gates, count, rng):
        draws, inputs = sum(len(chain.u) for chain in self._chains), NewInputs(self.training, x, gates)
        numbers = rng.multinomial(count, np.full(draws, 1 / draws))
        for (number, k, chain), wanted in zip(self._each(), numbers, strict=True):
            if wanted:
                yield *self._given(chain, inputs, (number, k), covariance=True), int(wanted)

    def prediction(self, x: OtherInputs, gates: OtherGatings) -> xr.Dataset:
        """The predictor with its Monte-Carlo errors: a Dataset over the inputs, and outputs if there are several.

        mean, variance; mean_error, variance_error: their standard errors from the finite number of draws; rhat, ess of the
        mean given a draw.
        """
        x, gates = self._checked(x, gates, "")
        live = self.live(x, gates)
        means, variances = self.conditional(x[live], gates[live])
        mean, squares = means.mean((0, 1)), variances + (means - means.mean((0, 1))) ** 2
        rhat, ess = rhat_and_ess(means)
        ess_squares = rhat_and_ess(squares)[1]
        found = {
            "mean": mean,
            "variance": variances.mean((0, 1)) + means.var((0, 1), ddof=1),
            "mean_error": means.std((0, 1), ddof=1) / np.sqrt(ess),
            "variance_error": squares.std((0, 1), ddof=1) / np.sqrt(ess_squares),
            "rhat": rhat,
            "ess": ess,
        }
        attributes = dict(acceptance=self.acceptance, largest_rhat=self.rhat, least_ess=self.ess, mixed=int(self.mixed))
        return self.dataset(found, live, attributes, dead={"rhat": 1.0, "ess": float(means[..., 0].size)})

    def between(self, first, second):
        first, second = (NewInputs(self.training, *pair) for pair in (first, second))
        return np.mean([self._kernel(chain, first, second) for _, _, chain in self._each()], axis=0)

    def _kernel(self, chain, first, second):
        first, second = Probe(first, chain), Probe(second, chain)
        return first.kernel(second) * self.shape.scale**2 * np.outer(first.scale, second.scale)

    def diagonal(self, x, gates):
        inputs = NewInputs(self.training, x, gates)
        probes = (Probe(inputs, chain) for _, _, chain in self._each())
        return np.mean([(self.shape.scale * probe.scale) ** 2 * probe.diagonal() for probe in probes], axis=0)
