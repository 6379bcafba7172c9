"""A copy of the project with the environment of this one: commands of the documents are run in it as they stand there."""

import os
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
    folder = Path(tempfile.mkdtemp(prefix="ggdln-")) / "ggdln"
    folder.mkdir()
    copy_project(ROOT, folder)
    link_environment(folder)
    os.chdir(folder)
    os.environ["PATH"] = f"{folder}/.venv/bin:{os.environ['PATH']}"
    os.environ["OMP_NUM_THREADS"] = "1"
