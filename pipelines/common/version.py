"""The version of the program that runs."""

from importlib.metadata import PackageNotFoundError, version


def program() -> str:
    """Return the version of the installed program."""
    try:
        return version("slackwater")
    except PackageNotFoundError:
        return "of a checkout that is not installed"
