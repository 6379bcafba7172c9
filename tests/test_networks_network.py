"""The tangent map of the networks, written by hand, against the definition of the network and autograd."""

import math

import numpy as np
import pytest
import torch

from ggdln.networks.device import Place
from ggdln.networks.network import GatedNetwork, ReluNetwork
from ggdln.networks.settings import Network, floats_per_run, weight_count

P, N0, M, N = 7, 4, 3, 5
PLACE = Place(torch.device("cpu"), torch.float64)


def gated_by_definition(weights, x, g, depth):
    """f of one gated network, one gate at a time, as the model is printed (with 1/sqrt(N M) in every gated layer)."""
    sizes = [N * N0, *[N * M * N] * (depth - 1), M * N]
    first, *hidden, readout = torch.split(weights, sizes)
    h = x @ first.view(N, N0).T / math.sqrt(N0)
    for layer in hidden:
        blocks = layer.view(N, M, N)
        h = sum(g[:, m : m + 1] * (h @ blocks[:, m].T) for m in range(M)) / math.sqrt(N * M)
    a = readout.view(M, N)
    return sum(g[:, m] * (h @ a[m]) for m in range(M)) / math.sqrt(N * M)


def relu_by_definition(weights, x):
    first, readout = torch.split(weights, [N * N0, N])
    return torch.relu(x @ first.view(N, N0).T / math.sqrt(N0)) @ readout / math.sqrt(N)


def cases():
    rng = np.random.default_rng(0)
    x, g = rng.standard_normal((P, N0)), rng.standard_normal((P, M))
    tx, tg = torch.tensor(x), torch.tensor(g)
    for depth in (1, 2, 3):
        network = GatedNetwork.of(x, g, Network(N, depth), PLACE)
        yield f"gated-{depth}", network, lambda w, depth=depth: gated_by_definition(w, tx, tg, depth)
    yield "relu", ReluNetwork.of(x, None, Network(N), PLACE), lambda w: relu_by_definition(w, tx)


def by_products():
    """With many units for its gates, so that the layers are multiplied with each other first."""
    rng = np.random.default_rng(1)
    x, g = rng.standard_normal((P, N0)), rng.standard_normal((P, 1))
    network = GatedNetwork.of(x, g, Network(50), PLACE)
    assert network.products_pay
    a = 50 * N0
    tx, tg = torch.tensor(x), torch.tensor(g[:, 0])
    return "products", network, lambda w: tg * (tx @ w[:a].view(50, N0).T @ w[a:]) / math.sqrt(50 * N0)


@pytest.mark.parametrize(("network", "definition"), [pytest.param(n, d, id=i) for i, n, d in [*cases(), by_products()]])
def test_tangent_map_is_that_of_autograd(network, definition):
    """f, J v, J^T u and J J^T of two weight vectors at once equal the definition's values and autograd Jacobian."""
    generator = torch.Generator().manual_seed(1)
    weights = torch.randn(2, network.size, generator=generator, dtype=torch.float64)
    u = torch.randn(2, P, generator=generator, dtype=torch.float64)
    v = torch.randn(2, network.size, generator=generator, dtype=torch.float64)
    local = network.linearize(weights)
    jacobian = torch.stack([torch.autograd.functional.jacobian(definition, w) for w in weights])
    torch.testing.assert_close(local.f, torch.stack([definition(w) for w in weights]))
    torch.testing.assert_close(network.predict(weights), local.f)
    torch.testing.assert_close(local.jvp(v), torch.einsum("rpd,rd->rp", jacobian, v))
    torch.testing.assert_close(local.vjp(u), torch.einsum("rpd,rp->rd", jacobian, u))
    torch.testing.assert_close(local.kernel(), jacobian @ jacobian.mT)


@pytest.mark.parametrize("network", [pytest.param(n, id=i) for i, n, _ in [*cases(), by_products()]])
def test_dual_coordinates_describe_the_same_descent(network):
    """Three gradient steps in dual coordinates lead to the weights of three ordinary gradient steps."""
    start = torch.randn(2, network.size, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    view, coordinates = network.dual(start)
    weights = start
    for _ in range(3):
        for net, point in ((network, weights), (view, coordinates)):
            local = net.linearize(point)
            point -= 0.05 * local.vjp(local.f - 1.0)
    torch.testing.assert_close(view.predict(coordinates), network.predict(weights))
    assert not torch.equal(weights, torch.randn(2, network.size, generator=torch.Generator().manual_seed(2)).double())


def test_readout_statistics_are_the_readout_overlaps():
    """U[m, n] = sum_i a_{m,i} a_{n,i} / N, with a the last M N weights."""
    _, network, _ = next(cases())
    weights = torch.randn(2, network.size, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    overlap = network.readout_statistics(weights)
    for run in range(2):
        a = weights[run, -M * N :].reshape(M, N)
        for m in range(M):
            for n in range(M):
                assert overlap[run, m, n].item() == pytest.approx(sum(a[m, i] * a[n, i] for i in range(N)).item() / N)


@pytest.mark.parametrize(
    ("network", "depth", "gate_count"), [(n, int(i[-1]), M) if i != "relu" else (n, 1, 1) for i, n, _ in cases()]
)
def test_weights_are_counted_without_making_them(network, depth, gate_count):
    """The count of weights is the size of the network, and a run keeps several such vectors and (P, P) matrices."""
    shape = Network(N, depth)
    assert weight_count(N0, gate_count, shape) == network.size
    assert floats_per_run(P, N0, gate_count, shape) > 6 * network.size + 5 * P**2
