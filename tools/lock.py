"""The versions that everything is made and tested with: lock.toml, from which constraints.txt and environment.yml are exported.

    python tools/lock.py                              resolve what pyproject.toml asks for; what is locked and still fits stays
    python tools/lock.py --upgrade                    the newest of everything, but for what is held
    python tools/lock.py --upgrade numpy torch==2.14.0      of these only; a version may be given

pip resolves, in a dry-run, and tells which package needs which; so the lock also knows what each install consists of. It names
versions alone, no addresses and no hashes, since the same version comes as other files from other indexes. torch is held: an
open range may pull gigabytes of GPU packages.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "lock.toml"
HELD = ("torch", "torchvision")
RUNNING = ("base", "networks", "workflow")
"""What running needs; the tests and the site bring more."""
PYTHON = "3.11"

HEAD = f"""\
# The versions that everything is made and tested with, on Linux with Python {PYTHON}. Written by `make lock` (tools/lock.py);
# constraints.txt and environment.yml are exported from it. `of`: the install alone (base) or the extras that bring a package.

python = "{PYTHON}"

[packages]
"""
CONSTRAINTS = """\
# The versions of lock.toml, for pip: pip install -c constraints.txt -e '.[networks,workflow]'. Written by `make docs`.
"""
ENVIRONMENT = f"""\
# For conda: conda env create -f environment.yml && conda activate ggdln && pip install --no-deps -e .
# What running needs, as pyproject.toml asks for it, in the versions of lock.toml. Written by `make docs`.
name: ggdln
channels: [conda-forge, nodefaults]
dependencies:
  - python={PYTHON}
  - pip
  - pip:
"""


def asked(root=ROOT):
    """What pyproject.toml asks for: group -> requirements, the group of the install alone being "base"."""
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    return {"base": project["dependencies"]} | project["optional-dependencies"]


def read():
    """Name -> {version, of}, for each package of the lock."""
    return tomllib.loads(LOCK.read_text())["packages"]


def constraints():
    """The text of constraints.txt."""
    return CONSTRAINTS + "".join(f"{name}=={package['version']}\n" for name, package in read().items())


def environment():
    """The text of environment.yml."""
    locked, groups = read(), asked()
    versions = {name: locked[canonicalize_name(Requirement(name).name)]["version"] for g in RUNNING for name in groups[g]}
    return ENVIRONMENT + "".join(f"      - {name}=={version}\n" for name, version in versions.items())


def resolve(pins):
    """Name -> (version, requirements), of all packages that pip would install with the versions in `pins`."""
    needed = dict.fromkeys(name for group in asked().values() for name in group)
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.writelines(f"{name}=={version}\n" for name, version in pins.items())
        file.flush()
        command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--quiet", "--report", "-"]
        report = subprocess.run([*command, "-c", file.name, *needed], stdout=subprocess.PIPE, text=True, check=True).stdout
    found = (package["metadata"] for package in json.loads(report)["install"])
    return {canonicalize_name(p["name"]): (p["version"].split("+")[0], p.get("requires_dist", [])) for p in found}


def needed_by(requirements, packages):
    """Names of all packages that a list of requirements brings, with the extras that are asked for."""
    found, queue = set(), [Requirement(text) for text in requirements]
    while queue:
        requirement = queue.pop()
        name = canonicalize_name(requirement.name)
        for extra in ("", *requirement.extras):
            if (name, extra) not in found and name in packages:
                found.add((name, extra))
                more = map(Requirement, packages[name][1])
                queue += [r for r in more if r.marker is None or r.marker.evaluate({"extra": extra})]
    return {name for name, _ in found}


def text(packages):
    """The lock, of what `resolve` gives."""
    groups = {group: needed_by(requirements, packages) for group, requirements in asked().items()}
    lines = []
    for name in sorted(packages):
        of = [group for group, names in groups.items() if name in names]
        of = ["base"] if "base" in of else of
        lines.append(f"{name} = {{ version = {json.dumps(packages[name][0])}, of = {json.dumps(of)} }}\n")
    return HEAD + "".join(lines)


def pins_after(upgrade):
    """The versions to keep: those locked, without what is to be upgraded, or with the version that is asked for."""
    pins = {name: package["version"] for name, package in read().items()} if LOCK.exists() else {}
    if upgrade is None:
        return pins
    if not upgrade:
        return {name: version for name, version in pins.items() if name in HELD}
    for wanted in upgrade:
        name, _, version = wanted.partition("==")
        pins.pop(canonicalize_name(name), None)
        if version:
            pins[canonicalize_name(name)] = version
        elif name in HELD:
            sys.exit(f"{name} is held; name a version, as in --upgrade {name}==2.13.0")
    return pins


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--upgrade", nargs="*", metavar="NAME", help="packages that may change; all if none is named")
    packages = resolve(pins_after(parser.parse_args().upgrade))
    LOCK.write_text(text(packages))
    (ROOT / "constraints.txt").write_text(constraints())
    (ROOT / "environment.yml").write_text(environment())
    print(f"lock.toml has {len(packages)} packages; constraints.txt and environment.yml are exported from it.")


if __name__ == "__main__":
    main()
