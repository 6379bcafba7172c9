"""A configuration file for a question of one's own, to be changed: python workflow/new.py my_question

It is workflow/template.yaml under another name. Nothing that is there is overwritten.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

from ggdln.workflow.files import default_files, load


def main(name):
    if not re.fullmatch(r"[a-zA-Z][a-zA-Z0-9_]*", name):
        return f"NAME={name} can't be the name of a figure; accepted: letters, digits and _, a letter first, as in my_question"
    known = load(default_files(ROOT))
    if name in known["figures"] or name in known["experiments"]:
        return f"NAME={name} is a figure or an experiment of the paper; accepted: another name"
    file = Path(f"{name}.yaml")
    if file.exists():
        return f"{file} is there already and was left as it is; accepted: another name"
    template = (ROOT / "workflow/template.yaml").read_text(encoding="utf-8")
    file.write_text(template.replace("NAME", name), encoding="utf-8")
    print(f"{file} is made; change it, and then: make figures/{name}.pdf CONFIG={file}")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2] or [""]))
