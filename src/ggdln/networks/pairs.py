"""Arrays over inputs, and over pairs of an input and an output.

A network with C outputs on P inputs is one with a single output on the P C pairs (x^mu, c), numbered mu C + c: f, labels,
residuals and the tangent kernel are kept over pairs, so that integrators and samplers need not know of outputs. What the
hidden layers compute depends on the input alone and is kept once for each; here the two meet. With C = 1 they are the same.
"""


def dot(h, b):
    """h.b of the units of a layer, for h (R, P, N) and b (R, P C, N): (R, P C)."""
    runs, inputs, units = h.shape
    return (h[:, :, None] * b.view(runs, inputs, -1, units)).sum(-1).view(runs, -1)


def outer(u, h):
    """u_c h_i for u (R, P C) and h (R, P, N), with column c N + i: (R, P, C N)."""
    runs, inputs, _ = h.shape
    return (u.view(runs, inputs, -1, 1) * h[:, :, None]).flatten(-2)


def over_outputs(u, b, outputs):
    """The sum over outputs of u_c b_c, for u (R, P C) and b (R, P C, N): (R, P, N)."""
    product = u[:, :, None] * b
    return product if outputs == 1 else product.unflatten(1, (-1, outputs)).sum(2)


def repeated(values, outputs):
    """Rows of inputs (P, ...) as rows of pairs (P C, ...)."""
    return values if outputs == 1 else values.repeat_interleave(outputs, dim=0)


def mul_(matrix, gram):
    """A matrix over pairs (R, P C, P C), multiplied in place by that over inputs, (P, P) or (R, P, P), for all outputs."""
    _blocks(matrix, gram).mul_(gram[..., :, None, :, None])
    return matrix


def add_(matrix, gram):
    """A matrix over pairs (R, P C, P C), to which that over inputs (R, P, P) is added in place for equal outputs."""
    _blocks(matrix, gram).diagonal(dim1=-3, dim2=-1).add_(gram[..., None])
    return matrix


def _blocks(matrix, gram):
    """A view of a matrix over pairs by input, output, input and output: (R, P, C, P, C)."""
    inputs, outputs = gram.shape[-1], matrix.shape[-1] // gram.shape[-1]
    return matrix.view(-1, inputs, outputs, inputs, outputs)
