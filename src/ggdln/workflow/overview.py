"""What a configuration says to a reader: parameters, where each comes from and what it means, and what jobs took."""

import csv

from ggdln.core.trees import leaves
from ggdln.workflow.choices import calibrated
from ggdln.workflow.sections import SECTIONS, description, join


def parameter_tables(config, figure):
    """For each experiment of a figure its parameters by section: rows of key, value and meaning, all as text."""
    found = {}
    for name in dict.fromkeys(experiment for experiment, _ in config.curves_of(figure)):
        sections = config.written[name]
        values = join(sections)
        chosen = calibrated(config.calibration, name)
        tables = {section: parameter_rows(values, sections.get(section) or {}, chosen) for section in SECTIONS}
        found[name] = {section: rows for section, rows in tables.items() if rows}
    return found


def parameter_rows(values, section, chosen=()):
    """Rows of the parameters in one section of an experiment whose joined values are `values`; chosen: calibrated keys."""
    rows = []
    for path, value in leaves(section):
        if value == {} and path[0] != "methods":  # a variant that changes nothing here
            continue
        name = f"{path[1]} (swept)" if path[0] == "sweep" and len(path) > 1 else ".".join(path)
        text = ", ".join(map(str, value)) if isinstance(value, list) else "on" if value == {} else str(value)
        meaning = description(values, path) if value is not None else ""
        rows.append({"key": name, "value": text, "meaning": f"{meaning}; calibrated" if ".".join(path) in chosen else meaning})
    return rows


def measured_cost(jobs):
    """What jobs took, as far as there are benchmark files; jobs: (benchmark file, predicted seconds) of each."""
    known = [(predicted, values) for file, predicted in jobs if (values := read_benchmark(file))]
    return {
        "jobs": len(jobs),
        "measured": len(known),
        "wall": sum(values["s"] for _, values in known),
        "cpu": sum(values["cpu_time"] for _, values in known),
        "memory": max((values["max_rss"] for _, values in known), default=0),
        "predicted": sum(predicted for predicted, _ in known),
        "predicted_all": sum(predicted for _, predicted in jobs),
    }


def read_benchmark(path):
    """Measured values of one job, the last time it ran: s, cpu_time, max_rss (MB). None if there are none."""
    try:
        with open(path) as file:
            row = list(csv.DictReader(file, delimiter="\t"))[-1]
        return {key: float(row[key]) for key in ("s", "cpu_time", "max_rss")}
    except (OSError, IndexError, KeyError, ValueError):
        return None
