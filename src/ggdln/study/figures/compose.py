"""A figure from its layout and its numbers."""

import matplotlib.pyplot as plt

from ggdln.study.figures import style
from ggdln.study.figures.panels import KINDS


def compose(layout, data, experiments):
    """Draw a figure: `layout` as in the configuration, `data` by "experiment/method", `experiments` their parameters."""
    with plt.rc_context(style.RC):
        figure, axes = plt.subplot_mosaic([list(row) for row in layout["mosaic"]], figsize=layout["size"], layout="constrained")
        for letter, ax in axes.items():
            panel = layout["panels"][letter]
            KINDS[panel["kind"]](ax, panel, data, experiments)
            # Beside the title, not in the axes: it never covers data.
            ax.set_title(panel.get("label", letter), loc="left", fontweight="bold", fontsize=10)
            if "title" in panel:
                ax.set_title(panel["title"])
        figure.draw_without_rendering()
        return figure
