"""Errors for rules of a spec that the library checks, with the place in the spec that must change."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

SpecPath = tuple[str | int, ...]
"""Keys and positions that lead to a value of a spec, such as `("queries", 0, "strategy")`."""


class RuleError(ValueError):
    """A rule that a spec, or values made in Python, break. A check yields these errors; the first one may be raised.

    A mechanism names its own keys. The object that contains the mechanism prepends its own place (`below`), and the
    code that reads specs adds file and line.

    >>> str(RuleError("needs a last window", "strategy").below("queries", 0))
    'queries.0.strategy: needs a last window'
    """

    def __init__(self, message: str, *path: str | int) -> None:
        super().__init__(": ".join(filter(None, (".".join(map(str, path)), message))))
        self.message = message
        self.path: SpecPath = path

    def below(self, *above: str | int) -> "RuleError":
        """Return the same problem with `above` prepended to its path."""
        return RuleError(self.message, *above, *self.path)


def enforce(problems: Iterable[RuleError]) -> None:
    """Raise the first problem, if there is one.

    Raises:
        RuleError: a rule is broken.
    """
    for problem in problems:
        raise problem


@contextmanager
def placed(*above: str | int) -> Iterator[None]:
    """Prepend a place to the path of each problem that is raised within.

    Raises:
        RuleError: a rule is broken; errors without a path get `above`.
    """
    try:
        yield
    except RuleError as problem:
        raise problem.below(*above) from None
    except ValueError as error:
        raise RuleError(str(error), *above) from None
