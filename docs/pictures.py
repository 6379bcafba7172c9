"""Keep small copies of the figures in docs/figures, for README and site: a PNG and the curves as CSV, each below 150 kB.

    python docs/pictures.py [FOLDER]        FOLDER: where figures/ and results/ are, this repository unless given

`make docs` does so for figures that have been made here. A copy changes only where the figure does. CSV files have what lines show,
their mean or median with its range, and no single draws: those are in the NetCDF files that a run leaves behind. Of densities and
profiles, lines of many points, they have every second or third point and so on, as many as there is room for.
"""

import csv
import io
import itertools
import sys
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src")]

from ggdln.experiments import store
from ggdln.study.panels._text import plain
from ggdln.workflow.config import read_config
from ggdln.workflow.files import default_files, load

OUTPUT = ROOT / "docs/figures"
MOST_BYTES = 150_000
WIDEST = 1500
LONG = 50
"""Points from which on a line may be thinned out."""
HEAD = ["panel", "shows", "experiment", "method", "series", "axis", "x", "centre", "low", "high"]


def small(picture):
    """A PNG of at most so many bytes: narrower if need be, with a palette of its own."""
    image = Image.open(picture).convert("RGB")
    width = min(image.width, WIDEST)
    while True:
        shrunk = image.resize((width, round(image.height * width / image.width)), Image.Resampling.LANCZOS)
        file = io.BytesIO()
        shrunk.quantize(128, dither=Image.Dither.NONE).save(file, "PNG", optimize=True)
        if file.tell() <= MOST_BYTES:
            return file.getvalue()
        width = width * 9 // 10


def numbers(layout, data, experiments):
    """The lines of a figure, and the cells of its heatmaps as lines of one y each: a row for each point."""
    letters = layout.letters()
    for key, panel in layout.panels.items():
        head, *rows = panel.table(data, experiments) or [[]]
        place = letters[key], plain(panel.heading())
        if head[:3] == HEAD[2:5]:
            yield from ([*place, *row[:3], head[3], *row[3:7]] for row in rows)
        elif head[2:3] == ["quantity"]:
            yield from ([*place, *row[:2], f"{head[4]} = {row[4]}", head[3], row[3], *row[5:8]] for row in rows)


def small_table(rows):
    """A CSV file of at most so many bytes: of long lines every k-th point, from the first to the last, with the least k that does."""
    lines = {}
    for row in rows:
        lines.setdefault(tuple(row[:6]), []).append(row)
    for k in itertools.count(1):
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(HEAD)
        for line in lines.values():
            writer.writerows(line[:-1:k] + line[-1:] if len(line) >= LONG else line)
        content = text.getvalue().encode()
        if len(content) <= MOST_BYTES or k >= max(map(len, lines.values()), default=1):
            return content


def copies(folder, figures=None):
    """Path under docs/figures -> bytes, of all figures that have been made in a folder."""
    config = read_config(load(figures or default_files(ROOT)))
    found = {}
    for name, layout in config.figures.items():
        picture, file = folder / f"figures/{name}.png", folder / f"results/{name}.nc"
        if picture.exists():
            found[f"{name}.png"] = small(picture)
        if file.exists():
            names = dict.fromkeys(experiment for experiment, _ in config.curves_of(name))
            experiments = {experiment: config.experiments[experiment].parameters() for experiment in names}
            found[f"{name}.csv"] = small_table(numbers(layout, store.groups(file), experiments))
    return found


def main(folder=ROOT):
    OUTPUT.mkdir(exist_ok=True)
    gallery = ROOT / "config/gallery.yaml"
    found = copies(Path(folder), [*default_files(ROOT), gallery] if gallery.exists() else None)
    for name, content in found.items():
        (OUTPUT / name).write_bytes(content)
        print(f"docs/figures/{name}, {len(content) / 1000:.0f} kB")


if __name__ == "__main__":
    main(*sys.argv[1:2])
