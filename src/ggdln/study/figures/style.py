"""One look for all figures: colours, line styles, labels, and byte-stable files."""

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

RC = {
    "font.family": "DejaVu Sans",
    "mathtext.fontset": "dejavusans",
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "lines.linewidth": 1.3,
    "lines.markersize": 3.5,
    "pdf.fonttype": 42,
    "savefig.dpi": 200,
}

INK, BLUE, ORANGE, RED, TEAL, GREY = "#1a1a1a", "#2b6cb0", "#dd6b20", "#c53030", "#2c7a7b", "#a0aec0"
COLOURS = {"ink": INK, "blue": BLUE, "orange": ORANGE, "red": RED, "teal": TEAL, "grey": GREY}
HUES = (BLUE, ORANGE, TEAL, RED, INK, GREY)

METHODS = {
    "theory": {"color": INK, "linestyle": "-", "marker": "", "label": "theory"},
    "gp": {"color": BLUE, "linestyle": "--", "marker": "", "label": "infinite width"},
    "gd": {"color": ORANGE, "linestyle": "", "marker": "o", "label": "gradient descent"},
    "langevin": {"color": BLUE, "linestyle": "", "marker": "o", "label": "Langevin"},
    "posterior": {"color": TEAL, "linestyle": "", "marker": "s", "markerfacecolor": "white", "label": "exact posterior"},
    "relu": {"color": INK, "linestyle": "--", "marker": "", "label": "ReLU network"},
}
"""One look for each method, the same in all figures: lines for theory, markers for simulations."""

CAVEATS = {
    "runs failed": {"color": RED, "size": 8, "of": lambda data: data.runs_failed > 0 if "runs_failed" in data else None},
    "not mixed": {"color": GREY, "size": 6.5, "of": lambda data: ~data.mixed if "mixed" in data else None},
    "at training floor": {
        "color": INK,
        "size": 5.5,
        "of": lambda data: data.runs_at_floor > 0 if "runs_at_floor" in data else None,
    },
}
"""What a reader must know about a simulated point: which dataset entries say so, and the ring that shows it."""

SYMBOLS = {"M": "$M$", "L": "$L$", "N": "$N$", "sigma": r"$\sigma$", "b": "$b$", "P": "$P$", "N0": "$N_0$"}
"""How the axes of a sweep are written."""

LABELS = {
    "M": "number of gates $M$",
    "L": "depth $L$",
    "N": "width $N$",
    "sigma": r"prior standard deviation $\sigma$",
    "b": "gate threshold $b$",
    "P": "training samples $P$",
    "N0": "input dimension $N_0$",
    "theta": r"angle $\theta$",
}

KERNEL_OF_PAIRS = r"normalized kernel $\mathcal{K}_L(\mathbf{x}, \mathbf{y})$"
KERNEL_OF_ANGLE = r"normalized kernel $\mathcal{K}_L(\theta)$"

QUANTITIES = {
    "block_ratio": "preferred / other blocks of $|U_1|$",
    "flat_fraction": r"share of elements $\leq 0.05$",
    "correlation_ratio": "diagonal / off-diagonal of $C$",
    "kernel_ratio": "same-task / cross-task $|\\tilde{K}|$",
}
"""Short axis labels where the full name of a variable is too long."""

AXES_OF = {
    "order_parameter": ("gate $m$", "gate $n$"),
    "task_correlation": ("tested permutation $p$", "trained permutation $q$"),
    "kernel_picture": ("task, input", "task, input"),
}
"""Names of rows and columns of pictured matrices."""


def shades(n):
    """n blues from dark to light."""
    return plt.get_cmap("Blues_r")(np.linspace(0.05, 0.72, n))


def save(figure, pdf, png):
    """Write the figure as PDF and PNG; the same figure gives the same bytes."""
    figure.savefig(pdf, metadata={"CreationDate": None, "ModDate": None})
    figure.savefig(png, metadata={"Software": None})
    plt.close(figure)
