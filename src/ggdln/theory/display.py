"""What a solution shows of itself, and its order parameters as a plot."""

from typing import Any


def facts(solution: Any) -> dict[str, Any]:
    """What a solution is, by the symbols of the paper."""
    training = solution.training
    count = training.count // training.sides + training.dead
    found = {"P": count, "N0": training.shape[0], "M": training.shape[1], "L": solution.depth, "N": solution.width}
    found |= {"sigma": solution.sigma, "T": solution.temperature}
    if training.outputs is not None:
        found["C"] = training.outputs
    for name in ("rank", "dead", "residual", "branch", "stiffness", "acceptance", "rhat", "ess"):
        if getattr(solution, name, 0) not in (0, "prior"):
            found[name] = getattr(solution, name)
    return found


def plot_eigenvalues(solution: Any, ax: Any = None) -> Any:
    """The eigenvalues of every order parameter relative to its prior mean, in descending order; a line at that of the prior."""
    import matplotlib.pyplot as plt
    from matplotlib import ticker

    ax = plt.subplots(layout="constrained")[1] if ax is None else ax
    sigmas = solution.shape.sigmas[:0:-1]
    for level, (values, sigma) in enumerate(zip(solution.eigenvalues, sigmas, strict=True), start=1):
        (drawn,) = ax.plot(range(1, len(values) + 1), values[::-1], "o-", markersize=3, label=f"$V_{level}$")
        ax.axhline(sigma**2, color=drawn.get_color(), linewidth=0.8, linestyle=":")
    ax.set(xlabel="rank", ylabel="eigenvalue of $V_l G_l^{-1}$", yscale="log")
    low, high = ax.get_ylim()
    if high < 20 * low:  # less than two decades would have one or two ticks
        ax.yaxis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0) if high > 3 * low else range(1, 10)))
        ax.yaxis.set_major_formatter(ticker.FormatStrFormatter("%g"))
        ax.yaxis.set_minor_formatter(ticker.NullFormatter())
    if len(sigmas) > 1:
        ax.legend(frameon=False)
    return ax
