"""Write docs/agreement.md: simulations beside the theory, from the numbers behind Figs. 2 and S2.

    python docs/compare.py [results]

Needs results/fig2.nc and results/figS2.nc, so it runs after `make figures`.
"""

import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

from ggdln.experiments import store

TABLES = {
    ("fig2", "teacher_regular"): ("Fig. 2b: regular inputs, theory at T = 0", ["gd"]),
    ("fig2", "teacher_preferred"): ("Fig. 2c: preferred inputs, theory at T = 0", ["gd"]),
    ("figS2", "posterior_regular"): ("Fig. S2, regular inputs, all at T = 0.01", ["langevin", "posterior"]),
    ("figS2", "posterior_preferred"): ("Fig. S2, preferred inputs, all at T = 0.001", ["langevin", "posterior"]),
}
QUANTITIES = {"bias": "bias", "variance": "variance", "generalization_error": "generalization error"}
NAMES = {"gd": "gradient descent", "langevin": "Langevin", "posterior": "exact posterior"}


def measured(values):
    """Mean and standard error over draws."""
    values = np.asarray(values)
    return values.mean(), values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan


def with_error(mean, error, digits):
    return f"{mean:.{digits}f} ± {error:.{digits}f}" if np.isfinite(error) else f"{mean:.{digits}f}"


def table(groups, experiment, methods):
    """Rows of a Markdown table: theory and simulations over the same draws, and their relative difference."""
    theory = groups[f"{experiment}/theory"]
    header = ["N", "quantity"]
    for method in methods:
        header += [f"theory ({draws_of(theory, groups[f'{experiment}/{method}'])} draws)", NAMES[method], "difference"]
    lines = [f"| {' | '.join(header)} |", "|---" * len(header) + "|"]
    for quantity, name in QUANTITIES.items():
        for width in groups[f"{experiment}/{methods[0]}"].N.values:
            row = [f"{width:g}", name]
            for method in methods:
                simulated = groups[f"{experiment}/{method}"][quantity].sel(N=width)
                predicted = theory[quantity].sel(N=width, draw=simulated.draw)
                difference = 100 * (simulated.values / predicted.values - 1)
                row += [with_error(*measured(predicted), 4), with_error(*measured(simulated), 4)]
                row.append(with_error(*measured(difference), 1) + " %")
            lines.append(f"| {' | '.join(row)} |")
    return lines


def draws_of(theory, simulated):
    """Number of draws that both have."""
    return len(np.intersect1d(theory.draw, simulated.draw))


def diagnostics(groups, experiment, methods):
    """A sentence on each sampler's mixing and each training's failures."""
    lines = []
    for method in methods:
        data = groups[f"{experiment}/{method}"]
        failed = int(data.runs_failed.sum())
        text = f"{NAMES[method]}: {int(data.runs_used.isel(draw=0, N=0))} runs or chains a point, {failed} failed"
        if "mixed" in data:
            rhat, ess = float(data.largest_rhat.max()), float(data.least_ess.min())
            text += f"; largest R-hat {rhat:.2f}, least effective sample size {ess:.0f}"
        lines.append(f"- {text}.")
    return lines


def main():
    """Write the page."""
    results = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "results"
    lines = [
        "# Simulations beside the theory",
        "",
        "Written by `python docs/compare.py` from the numbers behind the figures. Errors are standard errors over independent",
        "draws of data and gates; the difference is that of simulation and theory in the same draw, relative to the theory.",
    ]
    for (figure, experiment), (title, methods) in TABLES.items():
        groups = store.groups(results / f"{figure}.nc")
        lines += ["", f"## {title}", "", *table(groups, experiment, methods), "", *diagnostics(groups, experiment, methods)]
    (ROOT / "docs/agreement.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
