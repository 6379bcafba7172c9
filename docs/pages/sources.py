"""Roles that lead from a sentence or an equation to the code behind it: what computes it, and which test checks it.

    {computed}`theory.kernels.gp_kernel`    {checked}`test_gp.test_kernel_is_the_covariance_of_random_networks`

A name that isn't there is an error of the build. Lines are those of the commit that the site is built from.
"""

import ast
from functools import cache

from docutils import nodes

from pages import REPOSITORY, ROOT


@cache
def tree(path):
    return ast.parse((ROOT / path).read_text())


def find(path, names):
    """The line on which a function, class or method of a module is defined."""
    body, line = tree(path).body, 1
    for name in names:
        node = next((n for n in body if getattr(n, "name", None) == name), None)
        if node is None:
            raise ValueError(f"{path} has no {'.'.join(names)}")
        body, line = getattr(node, "body", []), node.lineno
    return line


def place(name, folder):
    """Path and line of a dotted name: modules first, then what they define."""
    parts = name.split(".")
    for i in range(len(parts), 0, -1):
        path = f"{folder}/{'/'.join(parts[:i])}"
        for file in (f"{path}.py", f"{path}/__init__.py"):
            if (ROOT / file).is_file():
                return file, find(file, parts[i:])
    raise ValueError(f"{folder} has no {name}")


def role(folder, prefix, words):
    def made(name, rawtext, text, lineno, inliner, options=None, content=None):
        try:
            file, line = place(text, folder)
        except ValueError as error:
            message = inliner.reporter.error(str(error), line=lineno)
            return [inliner.problematic(rawtext, rawtext, message)], [message]
        link = nodes.reference("", "", refuri=f"{REPOSITORY}/{file}#L{line}", classes=["source", prefix])
        link += nodes.literal(text=words(text))
        return [link], []

    return made


ROLES = {
    "computed": role("src/ggdln", "computed", lambda text: text.rsplit(".", 1)[-1] if "." in text else text),
    "checked": role("tests", "checked", lambda text: text.rsplit(".", 1)[-1].removeprefix("test_").replace("_", " ")),
}
