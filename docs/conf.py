"""The site: Markdown by MyST, tutorials executed by MyST-NB, pages from code by docs/pages. `make docs` builds it, offline.

Warnings are errors. Nothing is loaded from other hosts: MathJax comes from a package and is copied to the site, fonts are those of
the reader's system.
"""

import importlib.util
import os
import shutil
import subprocess
import sys
from importlib.metadata import version as installed
from pathlib import Path

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
sys.path[:0] = [str(ROOT / "src"), str(DOCS)]
# The cells of tutorials find tools/workspace.py, and their plots are the same on every machine.
os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "tools"), os.environ.get("PYTHONPATH", "")])
os.environ |= {"OMP_NUM_THREADS": "1", "PYDEVD_DISABLE_FILE_VALIDATION": "1"}

import pages
from pages.sources import ROLES


def commit():
    """The commit that the site is built from; nothing where there is no history."""
    command = ["git", "describe", "--always", "--dirty=+changes", "--exclude=*"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""


project, author = "ggdln", "The ggdln developers"
version = release = installed("ggdln")
project_copyright = f"{author}. Version {version}" + (f", built from commit {commit()}" if commit() else "")

extensions = ["myst_nb", "sphinx.ext.mathjax", "sphinx_copybutton", "sphinx_design"]
exclude_patterns = ["_build", "pages", "examples"]
nitpicky = True
# Types of other packages have no page here.
nitpick_ignore_regex = [("py:class", r"(numpy|xarray|os)\..*|PathLike")]
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 110

myst_enable_extensions = ["amsmath", "attrs_block", "attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
myst_links_external_new_tab = False
nb_execution_mode = "force"
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_execution_timeout = 900
nb_merge_streams = True

mathjax_path = "mathjax/tex-svg.js"
mathjax3_config = {
    "options": {"enableMenu": False},
    "tex": {"macros": {"E": [r"\left\langle #1 \right\rangle", 1], "tr": r"\operatorname{tr}"}},
}

# Links to files of this repository are checked by tests and by the roles that make them; GitHub answers few of so many at a time.
linkcheck_ignore = [r"https://github\.com/ggdln/ggdln/blob/", r"(?!https?:)"]
linkcheck_timeout = 30
linkcheck_retries = 2

html_theme = "furo"
html_title = "ggdln"
html_favicon = html_logo = "_static/ggdln.svg"
html_static_path = ["_static", "_build/static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False
html_theme_options = {
    "source_repository": "https://github.com/ggdln/ggdln/",
    "source_branch": "main",
    "source_directory": "docs/",
    "light_css_variables": {"color-brand-primary": "#2b6cb0", "color-brand-content": "#2b6cb0"},
    "dark_css_variables": {"color-brand-primary": "#7ab8f0", "color-brand-content": "#7ab8f0"},
}
copybutton_exclude = ".linenos, .gp, .go"


def prepare(app):
    """Write the generated pages, and put MathJax beside the static files."""
    (package,) = importlib.util.find_spec("sphinx-mathjax-offline").submodule_search_locations
    target = DOCS / "_build/static/mathjax"
    target.mkdir(parents=True, exist_ok=True)
    shutil.copy(Path(package) / "static/mathjax/tex-svg.js", target)
    pages.write()


def leave_alone(app, pagename, templatename, context, doctree):
    """Pages that are generated can't be edited on GitHub, where they aren't."""
    if f"{pagename}.md" in pages.PAGES:
        context["theme_source_branch"] = ""


def setup(app):
    for name, role in ROLES.items():
        app.add_role(name, role)
    app.connect("config-inited", lambda app, config: prepare(app))
    app.connect("html-page-context", leave_alone)
    return {"parallel_read_safe": True}
