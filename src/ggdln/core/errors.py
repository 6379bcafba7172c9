"""The errors that a user can act on. Each message names the argument, its value and what is accepted."""


class GgdlnError(Exception):
    """Anything that ggdln refuses to do."""


class InputError(GgdlnError, ValueError):
    """An argument has the wrong shape, type or value."""


class RankError(GgdlnError):
    """The kernel lacks the rank that the requested solution needs."""


class ConvergenceError(GgdlnError):
    """An iteration ended without meeting its tolerance."""


class ConfigError(GgdlnError):
    """The configuration is not valid."""


class FileError(GgdlnError):
    """A file is missing, truncated, damaged or not one of ours."""
