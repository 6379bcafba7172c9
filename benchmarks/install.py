"""What an install takes: seconds, megabytes and packages, for the library alone and with each of its extras.

    python benchmarks/install.py [--light]

A wheel is built from this checkout and installed into an empty environment far from it, in the versions of constraints.txt; a
program then solves the theory there. Writes docs/benchmarks/install.md; with --light only the install without extras is tried,
and nothing is written. Seconds depend on the network and on what pip has kept, megabytes on neither.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from importlib.metadata import Distribution
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OUTPUT = ROOT / "docs/benchmarks/install.md"
EXTRAS = ("", "networks", "networks,workflow", "networks,workflow,test", "networks,workflow,docs")
PROGRAM = """
import json, sys, time
begin = time.perf_counter()
import numpy as np, ggdln
rng = np.random.default_rng(0)
x = rng.standard_normal((100, 30))
gates = ggdln.fit_gates({"kind": "random", "M": 8, "b": 0.0}, x, seed=1)
ready = time.perf_counter()
solution = ggdln.solve(x, gates(x), np.sign(x[:, 0] * x[:, 1]), width=50, depth=2)
told = {"import": ready - begin, "solve": time.perf_counter() - ready, "residual": solution.residual}
print(json.dumps(told | {"version": ggdln.__version__, "file": ggdln.__file__, "torch": "torch" in sys.modules}))
"""


def wheel(folder):
    """The wheel of this checkout."""
    command = [sys.executable, "-m", "build", "--wheel", "--outdir", folder, ROOT]
    subprocess.run(command, check=True, capture_output=True, text=True)
    (found,) = Path(folder).glob("*.whl")
    return found


def python(environment):
    return Path(environment) / "bin/python"


def install(wheel, extras, environment):
    """Install a wheel with extras into a new environment: {"seconds", "packages": {name: megabytes}}."""
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    wanted = f"{wheel}[{extras}]" if extras else str(wheel)
    command = [python(environment), "-m", "pip", "install", "--quiet", "-c", ROOT / "constraints.txt", wanted]
    begin = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, text=True)
    seconds = time.perf_counter() - begin
    (folder,) = Path(environment).glob("lib/python*/site-packages")
    return {"seconds": seconds, "packages": sizes(folder)}


def sizes(folder):
    """Megabytes of each package in a folder, with what Python has compiled of it; pip is left out."""
    found = {}
    for path in folder.glob("*.dist-info"):
        distribution = Distribution.at(path)
        files = [folder / file for file in distribution.files or []]
        found[distribution.name] = sum(file.stat().st_size for file in files if file.is_file()) / 1e6
    return {name: size for name, size in sorted(found.items(), key=lambda item: -item[1]) if name not in ("pip", "setuptools")}


def run(environment, program=PROGRAM):
    """What a program prints that runs in an environment, in an empty folder and without the variables of this one."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    with tempfile.TemporaryDirectory() as folder:
        command = [python(environment), "-c", program]
        done = subprocess.run(command, cwd=folder, env=kept | {"OMP_NUM_THREADS": "1"}, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return done.stdout


def light(found):
    """What each package of the light install adds, as lines of a table, those below a megabyte together."""
    large = {name: size for name, size in found["packages"].items() if size >= 1}
    rest = sum(found["packages"].values()) - sum(large.values())
    lines = [f"| {name} | {size:.0f} |" for name, size in large.items()]
    return [*lines, f"| {len(found['packages']) - len(large)} smaller ones | {rest:.0f} |"]


def document(measured, told, wheel_kilobytes):
    lines = [
        "# What an install takes",
        "",
        "Written by `python benchmarks/install.py`: a wheel in an empty environment, versions of `constraints.txt`, one run",
        "beside other work. Seconds are those of pip, which fetches and compiles packages; torch is the build without GPU.",
        "",
        "| install | packages | MB | s |",
        "|---|--:|--:|--:|",
    ]
    for extras, found in measured.items():
        name = f"`pip install 'ggdln[{extras}]'`" if extras else "`pip install ggdln`"
        size = sum(found["packages"].values())
        lines.append(f"| {name} | {len(found['packages'])} | {size:.0f} | {found['seconds']:.0f} |")
    lines += [
        "",
        f"The wheel has {wheel_kilobytes:.0f} kB. In the light install importing the theory takes {told['import']:.1f} s,",
        f"and a first solution with P = 100, M = 8, L = 2 another {told['solve']:.2f} s; torch is not imported.",
        "",
        "## The light install",
        "",
        "| package | MB |",
        "|---|--:|",
        *light(measured[""]),
    ]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--light", action="store_true", help="only the install without extras; write nothing")
    only_light = parser.parse_args().light
    measured, told = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        built = wheel(folder)
        for number, extras in enumerate(EXTRAS[:1] if only_light else EXTRAS):
            environment = Path(folder) / str(number)
            measured[extras] = install(built, extras, environment)
            told[extras] = json.loads(run(environment))
            size = sum(measured[extras]["packages"].values())
            print(extras or "alone", f"{size:.0f} MB", f"{measured[extras]['seconds']:.0f} s", flush=True)
        if not only_light:
            OUTPUT.write_text(document(measured, told[""], built.stat().st_size / 1e3))


if __name__ == "__main__":
    main()
