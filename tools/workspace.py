"""A copy of the project with the environment of this one: commands of the documents are run in it as they stand there."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
STAMPS = ("ready", "ready-test", "ready-docs")


def copy_project(root, folder):
    """Copy what git knows or would add."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=root, capture_output=True, text=True, check=True
    )
    for name in listed.stdout.splitlines():
        if (root / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(root / name, folder / name, follow_symlinks=False)


def link_environment(folder):
    """Let the environment that runs this be the .venv of a copy, ready for all that make does."""
    (folder / ".venv").mkdir()
    for name in ("bin", "lib", "pyvenv.cfg"):
        (folder / ".venv" / name).symlink_to(Path(sys.prefix) / name)
    for stamp in STAMPS:
        (folder / ".venv" / stamp).touch()


def enter():
    """Go into a new copy of the project, in an activated environment; for the cells of a tutorial."""
    from IPython import get_ipython

    # Cells are run in a temporary folder that goes with the build, and the copy with it.
    here = Path.cwd()
    folder = Path(tempfile.mkdtemp(prefix="ggdln-", dir=None if here.is_relative_to(ROOT) else here)) / "ggdln"
    folder.mkdir()
    copy_project(ROOT, folder)
    link_environment(folder)
    os.chdir(folder)
    os.environ["PATH"] = f"{folder}/.venv/bin:{os.environ['PATH']}"
    os.environ["OMP_NUM_THREADS"] = "1"
    for name in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS"):  # those of the make that builds the site
        os.environ.pop(name, None)
    get_ipython().system = show  # what a line with an exclamation mark calls


NOISE = re.compile(
    r"^(Select jobs|Execute \d+ jobs|Using (shell|workflow)|Building DAG|Assuming unrestricted|Conda|Complete log|Elapsed).*\n"
    r"|^SNAKEMAKE\n=+\n(  .*\n)*",
    re.M,
)


def show(command):
    """Run a command, not on a terminal, and print what it says but for Snakemake's own lines about machine and scheduling."""
    done = subprocess.run(command, shell=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if text := re.sub(r"\n{3,}", "\n\n", NOISE.sub("", done.stdout)).strip("\n"):
        print(text)
