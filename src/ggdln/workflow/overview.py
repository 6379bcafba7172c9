"""What a configuration says to a reader: the parameters of each experiment, where each comes from and what it means."""

from ggdln.core.trees import leaves
from ggdln.workflow.config import SECTIONS, description, join


def parameter_tables(config, figure):
    """For each experiment of a figure its parameters by section: rows of key, value and meaning, all as text."""
    found = []
    for name in dict.fromkeys(experiment for experiment, _ in config.figures[figure].shown()):
        sections = config.written[name]
        values = join(sections)
        tables = {section: parameter_rows(values, sections.get(section) or {}) for section in SECTIONS}
        found.append({"name": name, "tables": {section: rows for section, rows in tables.items() if rows}})
    return found


def parameter_rows(values, section):
    """Rows of the parameters in one section of an experiment whose joined values are `values`."""
    rows = []
    for path, value in leaves(section):
        name = f"{path[1]} (swept)" if path[0] == "sweep" and len(path) > 1 else ".".join(path)
        text = ", ".join(map(str, value)) if isinstance(value, list) else "none" if value in (None, {}) else str(value)
        rows.append({"key": name, "value": text, "meaning": description(values, path) if value is not None else ""})
    return rows
