"""A trust-region Newton method for the saddle point of `saddle`.

One evaluation of H and its gradient costs a Cholesky factorization and an inverse of the kernel. The Hessian comes from the
model of the data term in `likelihood`, at the cost of a few passes over the kernel; the gradient is exact, so is the
solution. The directions of earlier conjugate-gradient runs precondition the later ones, which matters for many layers: a change
of the same kind in all of them is L times stiffer than one in a single layer, and changes that cancel between layers are soft.
H is not convex: directions of negative curvature are followed, so a stationary point that is not a minimum is left.
"""

import itertools
import math

import numpy as np
from scipy.linalg import lapack

from ggdln.core.errors import ConvergenceError, RankError
from ggdln.theory.saddle import Chain, half_lower

# Directions of earlier conjugate-gradient runs that are kept.
RECYCLED = 100

# Below CLOSE the residual falls fast until rounding stops it: that many evaluations without halving it are a sign.
CLOSE, PATIENCE = 1e-5, 60

# Range of the logs of an order parameter up to which its Hessian is taken in single precision.
WIDEST = 6.0


class Curvature:
    """Products with the Hessian of H at a State, that of the data term by its own model."""

    def __init__(self, problem, state, rng):
        self.problem, self.state = problem, state
        # Single precision loses directions beside others that are amplified far more.
        single = len(state.layers) == 1 and float(np.ptp(state.layers[0].logs)) < WIDEST
        self.data = state.data.curvature(rng, np.float32 if single else np.float64)
        self.forces = state.chain.forces(2 * state.data.v_bar @ state.chain.b[-1])
        # The prior term alone has the diagonal N (v_i + v_j) / 4; with one layer the force N (1 - v) at the saddle
        # point brings it down to N / 2. Of v^0, v^1/2 and v these needed the fewest products, for L = 1 and for L = 12.
        scales = [layer.scales if len(state.layers) > 1 else np.ones(len(layer.logs)) for layer in state.layers]
        parts = zip(problem.widths, scales, strict=True)
        self.preconditioner = np.concatenate([(width / 4 * (v[:, None] + v)).ravel() for width, v in parts])

    def product(self, step):
        """Hessian times `step`, both flat: symmetric matrices, one per layer.

        A difference quotient of dH/dZ along Z Y, Y the lower part of X, that repeats the layers but not the kernel.
        """
        state = self.state
        size = 1e-6 / np.abs(step).max()
        steps = [half_lower(len(x)) * x for x in layered(step, state.layers)]
        changes = [z @ y for z, y in zip(state.z, steps, strict=True)]
        moved = [z + size * change for z, change in zip(state.z, changes, strict=True)]
        ahead = Chain(self.problem.powers, moved, state.chain.bases)
        bar = state.data.v_bar + size * self.data.product((ahead.v[-1] - state.chain.v[-1]) / size)
        forces = ahead.forces(2 * bar @ ahead.b[-1])
        result = np.empty_like(step)
        parts = zip(
            layered(result, state.layers), self.problem.widths, state.layers, steps, changes, forces, self.forces, strict=True
        )
        for part, width, layer, y, change, force, rest in parts:
            # Z^T d(dH/dZ): the data term without the change of Z^T, and N (Z - Z^-T) of the prior.
            total = (force - rest) / size - y.T @ rest + width * (layer.matrix.T @ change + y.T)
            total *= half_lower(len(total))
            # exp(X_ii / 2) to second order.
            diagonal = np.einsum("ii->i", total)
            diagonal += (rest + width * layer.excess).diagonal() * y.diagonal() / 2
            part[...] = (total + total.T) / 2
        return result


def layered(flat, layers):
    """Views of a flat vector as one square matrix per layer."""
    sizes = [len(layer.logs) for layer in layers]
    ends = np.cumsum([size**2 for size in sizes])
    return [flat[end - size**2 : end].reshape(size, size) for size, end in zip(sizes, ends, strict=True)]


class Recycler:
    """Conjugate-gradient directions p and their images q = H p of earlier steps, as a preconditioner.

    They update a diagonal preconditioner D as in limited-memory BFGS, the oldest first,

        D^-1 -> (1 - p q^T) D^-1 (1 - q p^T) + p p^T    with p.q = 1,

    so it stays positive. Only the rows of every X_l in which the order parameter is farthest from its prior are kept,
    twice as many as gates, and those in single precision: the rest of the Hessian is close to D.
    """

    def __init__(self, count):
        self.count, self.frames = count, None

    def attend(self, layers):
        """Forget everything if the frame of a layer has changed."""
        frames = [layer.frame for layer in layers]
        if self.frames is not None and all(a is b for a, b in zip(frames, self.frames, strict=True)):
            return
        self.frames = frames
        rows, columns, factors, offset = [], [], [], 0
        for layer in layers:
            size = len(layer.logs)
            chosen = np.argsort(-np.abs(np.log(layer.scales)), kind="stable")[: self.count]
            inside = np.zeros(size, dtype=bool)
            inside[chosen] = True
            i, j = np.repeat(chosen, size), np.tile(np.arange(size), len(chosen))
            rows.append(offset + i * size + j)
            columns.append(offset + j * size + i)
            # An entry outside the square of chosen rows stands for itself and for its mirror image.
            factors.append(np.where(inside[j], 1.0, math.sqrt(2)))
            offset += size**2
        self.rows, self.columns = np.concatenate(rows), np.concatenate(columns)
        self.factors = np.concatenate(factors)
        self.both = self.factors > 1
        self.columns = self.columns[self.both]
        # Newest first; overlap[i, j] = p_i.q_j for j < i, 1 on the diagonal.
        self.p = self.q = np.zeros((0, len(self.rows)), dtype=np.float32)
        self.overlap = np.zeros((0, 0))

    def keep(self, directions, images, bends):
        """Add pairs, the oldest ones make room."""
        if not bends:
            return
        scales = 1 / np.sqrt(bends[::-1])
        p, q = (
            np.stack([self._part(scale * vector) for scale, vector in zip(scales, reversed(vectors), strict=True)])
            for vectors in (directions, images)
        )
        corner = np.tril(p @ q.T, -1) + np.eye(len(p))
        overlap = np.block([[corner, np.zeros((len(p), len(self.p)))], [self.p @ q.T, self.overlap]])
        self.p, self.q = np.concatenate([p, self.p])[:RECYCLED], np.concatenate([q, self.q])[:RECYCLED]
        self.overlap = np.asfortranarray(overlap[:RECYCLED, :RECYCLED])

    def apply(self, vector, diagonal):
        """The preconditioner applied to a flat vector."""
        if not len(self.p):
            return vector / diagonal
        first, _ = lapack.dtrtrs(self.overlap, self.p @ self._part(vector), lower=1)
        result = self._added(vector.copy(), -first.astype(np.float32) @ self.q)
        result /= diagonal
        second, _ = lapack.dtrtrs(self.overlap, first - self.q @ self._part(result), lower=1, trans=1)
        return self._added(result, second.astype(np.float32) @ self.p)

    def _part(self, vector):
        return (vector[self.rows] * self.factors).astype(np.float32)

    def _added(self, vector, part):
        part = part / self.factors
        vector[self.rows] += part
        vector[self.columns] += part[self.both]
        return vector


def model_step(curvature, gradient, radius, accuracy, limit, recycler=None):
    """Minimise the quadratic model within |step| <= radius by preconditioned conjugate gradients (Steihaug).

    A Recycler improves the preconditioner and takes in the directions of this run. Returns the step, the decrease of H
    that the model predicts, the norm of the step and whether it is on the boundary.
    """
    if recycler is not None:
        recycler.attend(curvature.state.layers)
    diagonal = curvature.preconditioner

    def preconditioned(vector):
        return vector / diagonal if recycler is None else recycler.apply(vector, diagonal)

    directions, images, bends = [], [], []
    step, bent = np.zeros_like(gradient), np.zeros_like(gradient)
    remainder = -gradient
    direction = preconditioned(remainder)
    rho = start = float(remainder @ direction)
    edge = False
    for _ in range(limit):
        image = curvature.product(direction)
        bend = float(direction @ image)
        dd, sd, ss = float(direction @ direction), float(step @ direction), float(step @ step)
        length = rho / bend if bend > 0 else math.inf
        if bend > 0:
            directions.append(direction)
            images.append(image)
            bends.append(bend)
        if not ss + 2 * length * sd + length**2 * dd < radius**2:
            length = (-sd + math.sqrt(sd**2 + dd * (radius**2 - ss))) / dd
            edge = True
        step, bent = step + length * direction, bent + length * image
        if edge:
            break
        remainder = remainder - length * image
        solved = preconditioned(remainder)
        previous, rho = rho, float(remainder @ solved)
        if rho < accuracy**2 * start:
            break
        direction = solved + rho / previous * direction
    if recycler is not None:
        recycler.keep(directions, images, bends)
    return step, -float(gradient @ step + step @ bent / 2), math.sqrt(step @ step), edge


def minimise(problem, layers, *, tolerance, limit, seed=0, told=None):
    """Descend from `layers` (Whitened) to a minimum of H: the State at which the residual is below `tolerance`.

    told: a `Progress`, in decades of the residual. Raises ConvergenceError after `limit` evaluations, or when rounding keeps
    the residual above `tolerance`; the `state` of the error is where the descent ended.
    """
    rng = np.random.default_rng(seed)
    state = problem.evaluate(layers)
    if state is None:
        raise RankError("the kernel at the starting point is not positive definite to working precision")
    # A typical change of log V_L of 0.3 per direction: those of all layers add up.
    radius = 0.3 * math.sqrt(sum(len(z) for z in state.z)) / len(state.z)
    recycler = Recycler(2 * problem.powers.gates.shape[1] * problem.powers.outputs)
    state = state.graded()
    best, improved = state.residual, problem.evaluations
    while state.residual > tolerance:
        curvature = Curvature(problem, state, rng)
        gradient = np.concatenate([(g / 2).ravel() for g in state.gradient])
        # Far from the minimum the model is rough, and solving it well would be wasted. With several layers a product
        # costs nearly as much as an evaluation, and a rough solution is the cheaper one throughout.
        close, rough = (1e-2, 0.02) if len(state.layers) == 1 else (1e-3, 0.1)
        accuracy = rough if state.residual < close else 0.3
        # Directions from far away mislead, and with one layer there is nothing to gain.
        memory = recycler if len(state.layers) > 1 and state.residual < 3e-2 else None
        try:
            step, predicted, norm, edge = model_step(curvature, gradient, radius, accuracy, 60, memory)
        except FloatingPointError as error:
            text = f"{error}: gates are nearly dependent, or a direction of them was amplified too far"
            raise _failure(state, text) from error
        del curvature
        # Below this the difference of two values of H is rounding, and the residual decides.
        rounding = 1e-11 * state.magnitude
        # The residual is also small near a stationary point that is left again: then H still falls.
        falling = predicted > 10 * rounding
        for attempt in itertools.count():
            if best < CLOSE and (attempt > 20 or (problem.evaluations - improved > PATIENCE and not falling)):
                text = f"rounding keeps the residual at {best:.1e}, above the tolerance {tolerance:.1e}: the kernel is nearly "
                raise _failure(state, text + "singular; raise tolerance or temperature")
            if problem.evaluations >= limit or attempt > 20:
                text = f"saddle point not found in {problem.evaluations} evaluations: residual {state.residual:.1e}, "
                text += f"tolerance {tolerance:.1e}; raise max_evaluations or tolerance, or start from a nearby solution"
                raise _failure(state, text)
            trial = problem.evaluate(state.layers, layered(step, state.layers))
            if trial is None:
                ratio = -math.inf
            elif predicted > rounding:
                ratio = (state.value - trial.value) / predicted
            else:
                ratio = 1.0 if trial.residual < state.residual else -math.inf
            if ratio > 0.05:
                break
            step, norm, predicted = 0.3 * step, 0.3 * norm, 0.3 * predicted
            radius = norm
        if ratio > 0.75 and edge:
            radius *= 2
        elif ratio < 0.25:
            radius = norm / 2
        state = trial.graded()
        if told is not None:
            told.update(min(told.total, max(0, math.floor(-math.log10(max(state.residual, 1e-300))))))
        if state.residual < best / 2:
            best, improved = state.residual, problem.evaluations
    return _finished(state)


def _finished(state):
    """The State with layers in the basis of the features, and with the residual of the coordinates of the descent."""
    try:
        finished = state.in_bases([None] * len(state.layers))
    except FloatingPointError as error:
        raise _failure(state, f"{error}: gates are nearly dependent") from error
    finished.residual = state.residual
    return finished


def _failure(state, text):
    error = ConvergenceError(text)
    error.state = state
    return error
