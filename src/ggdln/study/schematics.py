"""Schematic panels: Fig. 1a (architecture), Fig. 2a (teachers and student) and Fig. 7a (two tasks).

Every panel is drawn in inches of its nominal size, with text in points: at that size one data unit is one inch, and in a
larger or smaller panel the drawing scales while the text keeps its size. No data, no randomness.
"""

from functools import wraps

from ggdln.study.style import BLUE, GREY, INK, ORANGE, RED, TEAL

PALE = "#d5dbe5"  # connections in the background

DRAWINGS = {}
"""All drawings by name: functions of the axes to draw in."""

SUBSETS = (ORANGE, BLUE, TEAL, RED, GREY)  # of the input dimensions; the first is the preferred one

TEXT, SMALL = 8, 7  # points

_LINES, _WIRES, _UNITS, _MARKS = 1, 2, 4, 5  # drawing order


# Parts shared by the panels.


def _drawing(width, height):
    """A function that draws in axes of this nominal size in inches, one data unit an inch, and is known by its name."""

    def known(draw):
        @wraps(draw)
        def prepared(ax):
            ax.set_xlim(0, width)
            ax.set_ylim(0, height)
            ax.set_aspect("equal")
            ax.axis("off")
            draw(ax)

        DRAWINGS[draw.__name__] = prepared
        return prepared

    return known


def _disc(ax, x, y, radius, **style):
    from matplotlib.patches import Circle

    ax.add_patch(Circle((x, y), radius, **style))


def _box(ax, x, y, width, height, **style):
    """A box with round corners; x, y: its lower left corner."""
    from matplotlib.patches import FancyBboxPatch

    ax.add_patch(FancyBboxPatch((x, y), width, height, boxstyle="round,pad=0,rounding_size=0.06", lw=0.6, **style))


def _label(ax, x, y, text, *, size=TEXT, color=INK, ha="center", va="center", **style):
    ax.text(x, y, text, fontsize=size, color=color, ha=ha, va=va, linespacing=1.1, zorder=_MARKS, **style)


def _line(ax, points, *, color=PALE, width=0.6, zorder=_LINES, **style):
    """A polyline through the points."""
    xs, ys = zip(*points, strict=True)
    style = {"solid_capstyle": "round", "solid_joinstyle": "round"} | style
    ax.plot(xs, ys, color=color, lw=width, zorder=zorder, **style)


def _arrow(ax, start, end, *, color=INK, width=0.8):
    style = {"arrowstyle": "-|>,head_width=0.13,head_length=0.26", "color": color, "lw": width}
    style |= {"shrinkA": 0, "shrinkB": 0}
    ax.annotate("", xy=end, xytext=start, arrowprops=style, zorder=_WIRES)


def _neuron(ax, x, y, *, radius=0.09, face="white", edge=INK, text="", width=0.8):
    """One unit, with an optional letter inside."""
    _disc(ax, x, y, radius, facecolor=face, edgecolor=edge, lw=width, zorder=_UNITS)
    if text:
        _label(ax, x, y - 0.005, text, size=SMALL, color=_ink(face))


def _ink(face):
    """The colour of a letter on this face."""
    return INK if face in (GREY, "white") else "white"


def _layer(ax, xs, y, *, texts=None, **style):
    """A row of units; returns their positions."""
    for k, x in enumerate(xs):
        _neuron(ax, x, y, text=texts[k] if texts else "", **style)
    return [(x, y) for x in xs]


def _connect(ax, sources, targets, **style):
    """All lines from the sources to the targets."""
    for start in sources:
        for end in targets:
            _line(ax, [start, end], **style)


def _dots(ax, x, y, *, gap=0.05):
    """Three dots: more of the same."""
    for k in (-1, 0, 1):
        _disc(ax, x + k * gap, y, 0.011, color=INK, lw=0, zorder=_UNITS)


def _dendrites(ax, soma, xs, tip, *, radius=0.09, color=INK, bend=0.16, width=0.9):
    """The dendrites of one unit: from just under the soma out to each x, then straight down to the tip's height."""
    x0, y0 = soma
    for x in xs:
        _line(ax, [(x0, y0 - radius), (x, y0 - radius - bend), (x, tip)], color=color, width=width, zorder=_WIRES)
    return [(x, tip) for x in xs]


def _gate_mark(ax, x, y, color, *, radius=0.04):
    """The place where a dendrite is multiplied by a gate: a coloured disc with a cross (a product sign)."""
    _disc(ax, x, y, radius, facecolor=color, edgecolor="white", lw=0.4, zorder=_MARKS)
    _cross(ax, x, y, 0.55 * radius, color="white", width=0.6)


def _cross(ax, x, y, half, *, color, width):
    """A diagonal cross, over everything else."""
    for dy in (-half, half):
        _line(ax, [(x - half, y - dy), (x + half, y + dy)], color=color, width=width, zorder=_MARKS + 1)


def _junction(ax, x, y, color):
    """A wire that branches here (wires that only cross have none)."""
    _disc(ax, x, y, 0.016, color=color, lw=0, zorder=_WIRES)


# The panels.


@_drawing(2.6, 3.0)
def architecture(ax):
    """Fig. 1a: a GGDLN with two hidden layers, drawn from the input (bottom) to the output (top).

    Each unit of hidden layer 2, and the output, has M dendrites. Dendrite m is multiplied by the gate g_m(x), which
    is fixed and is the same for all units and all layers: the gating units (lower right), driven by the input, send
    one wire each past all the dendrites. The weights onto one dendrite are in orange. The first weights have no gates.
    """
    columns, spread = (0.57, 1.06, 1.66), 0.13
    gates = [(r"$g_1$", BLUE), (r"$g_m$", TEAL), (r"$g_M$", RED)]
    gate_xs, gate_y = (1.98, 2.22, 2.46), 0.80
    y_in, y_one, y_two, y_out = 0.20, 0.80, 1.80, 2.82

    inputs = _layer(ax, columns, y_in, face=GREY)
    one = _layer(ax, columns, y_one, texts=("", "$j$", ""))
    two = _layer(ax, columns, y_two, texts=("", "$i$", ""))
    output = (columns[1], y_out)
    _neuron(ax, *output, radius=0.10)
    for y in (y_in, y_one, y_two):
        _dots(ax, (columns[1] + columns[2]) / 2, y)

    # First weights: no gates.
    _connect(ax, inputs, one, color=GREY)

    # Hidden layer 2 and the output: dendrites, and the weights that reach them.
    tips = [_dendrites(ax, soma, [soma[0] + k * spread for k in (-1, 0, 1)], y_two - 0.54) for soma in two]
    _connect(ax, one, [tip for unit in tips for tip in unit])
    _connect(ax, one, [tips[1][1]], color=ORANGE, width=1.3, zorder=_WIRES)
    _line(ax, [tips[1][1], (columns[1], y_two - 0.09)], color=ORANGE, width=1.5, zorder=_WIRES)
    wide = [output[0] + k * 0.36 for k in (-1, 0, 1)]
    out_tips = _dendrites(ax, output, wide, y_out - 0.58, radius=0.10)
    _connect(ax, two, out_tips, color=GREY)

    # Gating units: driven by x, one wire each to dendrite m of every unit.
    bar = y_in + 0.28
    _line(ax, [(columns[2] + 0.09, y_in), (gate_xs[1], y_in), (gate_xs[1], bar)], color=INK, width=0.8, zorder=_WIRES)
    _line(ax, [(gate_xs[0], bar), (gate_xs[2], bar)], color=INK, width=0.8, zorder=_WIRES)
    for m, ((name, color), x) in enumerate(zip(gates, gate_xs, strict=True)):
        _arrow(ax, (x, bar), (x, gate_y - 0.11))
        _neuron(ax, x, gate_y, radius=0.11, face=color, edge=color, text=name)
        low, high = y_two - 0.30 - 0.09 * m, y_out - 0.34 - 0.09 * m
        _line(ax, [(x, gate_y), (x, high)], color=color, width=0.9, zorder=_WIRES)
        _line(ax, [(x, low), (columns[0] + (m - 1) * spread, low)], color=color, width=0.9, zorder=_WIRES)
        _line(ax, [(x, high), (wide[m], high)], color=color, width=0.9, zorder=_WIRES)
        _junction(ax, x, low, color)
        for soma in two:
            _gate_mark(ax, soma[0] + (m - 1) * spread, low, color)
        _gate_mark(ax, wide[m], high, color)

    # Names.
    for y, name in ((y_in, r"$\mathbf{x}$"), (y_one, r"$\mathbf{x}_1$"), (y_two, r"$\mathbf{x}_2$")):
        _label(ax, 0.21, y, name)
    _label(ax, 0.21, 0.56, r"$W_{1,ij}$")
    _label(ax, 0.24, 0.41, "no gates", size=SMALL)
    _label(ax, 0.21, 1.22, r"$W^{m}_{l,ij}$", color=ORANGE)
    _label(ax, 0.21, 1.04, "$l=2$", size=SMALL, color=ORANGE)
    _label(ax, 0.38, 2.10, r"$a_{m,i}$")
    _label(ax, 0.02, 2.72, "$M$ dendrites\nper neuron", size=SMALL, ha="left")
    _label(ax, output[0] + 0.15, y_out, r"$f(\mathbf{x})$", ha="left")
    _label(ax, 2.58, 2.77, "fixed gates $g_m(\\mathbf{x})$,\nshared by all\nneurons and layers", size=SMALL, ha="right")


@_drawing(2.6, 3.2)
def teachers_and_student(ax):
    """Fig. 2a: two ReLU teachers (top) and the student (bottom); the five subsets of input dimensions in colour.

    Left: the teacher's input weights are of one size. Right: they are larger for one preferred subset (bold). Bottom:
    a GGDLN with one hidden layer; each gate sees one subset of the input and gates one dendrite of the output.
    """
    _teacher(ax, 0.66, 2.12, "ReLU teacher", "equal weights", preferred=None)
    _teacher(ax, 1.96, 2.12, "ReLU teacher", "preferred inputs", preferred=0)
    _line(ax, [(0.05, 1.90), (2.55, 1.90)], color=PALE, width=0.8)
    _student(ax)


def _subset_inputs(ax, centre, y, *, pitch, gap, radius, per=2):
    """A row of input units in five coloured subsets; returns their positions, subset by subset."""
    rows = []
    for s, color in enumerate(SUBSETS):
        middle = centre + (s - 2) * gap
        xs = [middle + (k - (per - 1) / 2) * pitch for k in range(per)]
        rows.append(_layer(ax, xs, y, radius=radius, face=color, edge=color, width=0.4))
    return rows


def _teacher(ax, centre, bottom, title, subtitle, *, preferred):
    """A ReLU network with one hidden layer; bold connections from the preferred subset, if there is one."""
    subsets = _subset_inputs(ax, centre, bottom, pitch=0.095, gap=0.235, radius=0.038)
    hidden = _layer(ax, [centre + k * 0.26 for k in (-1.5, -0.5, 0.5, 1.5)], bottom + 0.42, radius=0.075)
    for x, y in hidden:
        _line(ax, [(x - 0.04, y - 0.02), (x, y - 0.02), (x + 0.035, y + 0.035)], color=INK, zorder=_MARKS)
    for s, (subset, color) in enumerate(zip(subsets, SUBSETS, strict=True)):
        bold = s == preferred
        width = 0.6 if preferred is None else 1.5 if bold else 0.25
        _connect(ax, subset, hidden, color=color, width=width, zorder=_WIRES if bold else _LINES)
    output = (centre, bottom + 0.70)
    _connect(ax, hidden, [output], color=INK)
    _neuron(ax, *output, radius=0.075)
    _label(ax, centre + 0.12, output[1] + 0.01, "$y$", ha="left")
    _label(ax, centre, bottom + 0.99, title)
    _label(ax, centre, bottom + 0.865, subtitle, size=SMALL)
    if preferred is None:
        _label(ax, centre, bottom - 0.11, r"$\mathbf{x}$ in five subsets", size=SMALL)
    else:
        left = subsets[preferred][0][0] - 0.04
        _label(ax, left, bottom - 0.11, "preferred", size=SMALL, color=SUBSETS[preferred], ha="left")


def _student(ax):
    """A GGDLN with one hidden layer and gates with localized receptive fields."""
    centre, y_gate, y_in, y_hidden, y_out = 1.20, 0.30, 0.62, 1.02, 1.68
    subsets = _subset_inputs(ax, centre, y_in, pitch=0.10, gap=0.36, radius=0.04, per=3)
    hidden = _layer(ax, [centre + k * 0.42 for k in (-1.5, -0.5, 0.5, 1.5)], y_hidden, radius=0.075)
    _connect(ax, [unit for subset in subsets for unit in subset], hidden, width=0.5)
    output = (centre, y_out)
    _neuron(ax, *output, radius=0.08)
    wide = [centre + (s - 2) * 0.24 for s in range(5)]
    tips = _dendrites(ax, output, wide, y_hidden + 0.24, radius=0.08, bend=0.1)
    _connect(ax, hidden, tips, width=0.5)
    for s, (subset, color) in enumerate(zip(subsets, SUBSETS, strict=True)):
        x = centre + (s - 2) * 0.36
        _connect(ax, subset, [(x, y_gate)], color=color, width=1.0, zorder=_WIRES)
        _neuron(ax, x, y_gate, radius=0.09, face=color, edge=color, text=f"$g_{s + 1}$")
        right, low, high = 2.20 + 0.05 * s, 0.03 + 0.035 * s, y_out - 0.22 - 0.045 * s
        route = [(x, y_gate), (x, low), (right, low), (right, high), (wide[s], high)]
        _line(ax, route, color=color, width=0.8, zorder=_WIRES)
        _gate_mark(ax, wide[s], high, color)
    _label(ax, 0.04, y_out, "student\nGGDLN", ha="left")
    _label(ax, 0.16, y_in, r"$\mathbf{x}$")
    _label(ax, centre + 0.13, y_out, r"$f(\mathbf{x})$", ha="left")
    _label(ax, 2.58, y_out, "each gate sees\none input subset", size=SMALL, ha="right")


@_drawing(2.6, 3.0)
def two_tasks(ax):
    """Fig. 7a: one GGDLN with one hidden layer, doing two tasks on the same inputs.

    The task signal (top-down) permits some gates and forbids others (crossed: set to 0, the dendrite not connected);
    the state of a permitted gate then depends on x (bottom-up, the step). The tasks' permitted sets overlap (teal).
    """
    tasks = ("task 1", BLUE, {0, 1, 3, 4}), ("task 2", ORANGE, {1, 2, 4, 5})
    shared = tasks[0][2] & tasks[1][2]
    for centre, (name, color, permitted) in zip((0.65, 1.95), tasks, strict=True):
        colors = [TEAL if m in shared else color if m in permitted else None for m in range(6)]
        _task(ax, centre, name, color, colors)

    _task_gate(ax, 0.12, 0.27, BLUE)
    _task_gate(ax, 0.27, 0.27, ORANGE)
    _label(ax, 0.38, 0.27, r"permitted: $g_m(\mathbf{x})$", size=SMALL, ha="left")
    _task_gate(ax, 1.64, 0.27, None)
    _label(ax, 1.75, 0.27, "forbidden: 0", size=SMALL, ha="left")
    _task_gate(ax, 0.27, 0.09, TEAL)
    _label(ax, 0.38, 0.09, "permitted in both tasks", size=SMALL, ha="left")


def _task_gate(ax, x, y, color):
    """A permitted gate (a coloured disc with a step: its state depends on x) or, with no colour, a forbidden one."""
    radius = 0.066
    _neuron(ax, x, y, radius=radius, face=color or "white", edge=color or GREY)
    if color is None:
        _cross(ax, x, y, 0.7 * radius, color=GREY, width=0.9)
    else:
        step = [(x - 0.038, y - 0.026), (x, y - 0.026), (x, y + 0.028), (x + 0.038, y + 0.028)]
        _line(ax, step, color="white", width=0.8, zorder=_MARKS)


def _task(ax, centre, name, color, colors):
    """The network during one task; ``colors`` holds the colour of each gate, None where the task forbids it."""
    y_in, y_hidden, y_gate, y_out, y_task = 0.58, 1.06, 1.68, 2.28, 2.84
    half = 0.48  # width of the box of gates
    units = [centre + k * 0.31 for k in (-1, 0, 1)]
    gates = [centre + (m - 2.5) * 0.155 for m in range(len(colors))]
    inputs = _layer(ax, units, y_in, face=GREY, radius=0.075)
    hidden = _layer(ax, units, y_hidden, radius=0.075)
    output = (centre, y_out)
    _neuron(ax, *output, radius=0.085)
    _connect(ax, inputs, hidden, color=GREY)

    _box(ax, centre - half, y_gate - 0.10, 2 * half, 0.20, zorder=_LINES - 0.5, facecolor="#f3f5f8", edgecolor=GREY)
    for x, gate in zip(gates, colors, strict=True):
        _task_gate(ax, x, y_gate, gate)
        tip = (x, y_gate - 0.17)
        _line(ax, [output, (x, y_gate + 0.19), tip], color=gate or PALE, width=1.0, zorder=_WIRES if gate else _LINES)
        if gate:
            _connect(ax, hidden, [tip], color=gate, width=0.6)

    # The two signals that reach the gates.
    left, right = centre - 0.61, centre + 0.61
    _box(ax, centre - 0.27, y_task - 0.09, 0.54, 0.18, zorder=_UNITS, facecolor=color, edgecolor=color)
    _label(ax, centre, y_task - 0.005, name, color="white")
    _line(ax, [(centre - 0.27, y_task), (left, y_task), (left, y_gate)], color=color, width=1.0, zorder=_WIRES)
    _line(ax, [(units[-1], y_in), (right, y_in), (right, y_gate)], color=INK, width=0.8, zorder=_WIRES)
    _arrow(ax, (left, y_gate), (centre - half, y_gate), color=color, width=1.0)
    _arrow(ax, (right, y_gate), (centre + half, y_gate))
    _label(ax, right - 0.09, (y_hidden + y_in) / 2 + 0.2, "bottom-up", size=SMALL, rotation=90)
    _label(ax, left + 0.05, y_task - 0.2, "top-down", size=SMALL, color=color, ha="left")
    _label(ax, units[0] - 0.13, y_in, r"$\mathbf{x}$", ha="right")
    _label(ax, output[0] + 0.12, y_out + 0.04, r"$f(\mathbf{x})$", ha="left")
