"""How a trained network ended."""

CONVERGED, FLOOR, DIVERGED, UNFINISHED = range(4)
STATUS = ("converged", "floor", "diverged", "unfinished")
