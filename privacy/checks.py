"""Checks of single parameters; None, for one that is not given, passes. A message states the rule and the value.

Specs have the same rules: a parameter's name is the path of its key, relative to what has the parameter.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from privacy.problems import RuleError, enforce


@dataclass(frozen=True, slots=True)
class Limits:
    """Range of a number: `least` and `most` are in it, `above` and `below` are not.

    A section of a spec names the limits of the library next to a key's type, for the reference; it does not check them.
    """

    least: float = -math.inf
    most: float = math.inf
    above: float = -math.inf
    below: float = math.inf

    def problems(self, name: str, value: float | None) -> Iterator[RuleError]:
        """Yield why a number is outside the range, as NaN is; the path is `name`, a step for each part between dots."""
        if value is None:
            return
        if self.above > -math.inf and not value > self.above:
            yield _expected(f"a number above {_text(self.above)}", name, value)
        elif not value >= self.least:
            yield _expected(f"at least {_text(self.least)}", name, value)
        elif value > self.most:
            yield _expected(f"at most {_text(self.most)}", name, value)
        elif value >= self.below < math.inf:
            yield _expected(f"a number below {_text(self.below)}", name, value)

    def check(self, name: str, value: float | None) -> None:
        """Raise the problem of a number, if it has one.

        >>> Limits(1, 65_535).check("answers", 10**20)
        Traceback (most recent call last):
        privacy.problems.RuleError: answers: expected at most 65535, not 100000000000000000000
        """
        enforce(self.problems(name, value))


POSITIVE = Limits(above=0)

PROPORTION = Limits(above=0, below=1)

DELTA = Limits(least=0, below=1)
"""Range of the parameter delta."""


def between(name: str, value: float | None, least: float, most: float) -> None:
    """Refuse a number below `least` or above `most`."""
    if value is not None and not least <= value <= most:
        Limits(least, most).check(name, value)


def at_least(name: str, value: float | None, least: float) -> None:
    """Refuse a number below `least`."""
    between(name, value, least, math.inf)


def positive(name: str, value: float) -> None:
    """Refuse zero, negative numbers, infinity and NaN.

    >>> positive("scale", float("nan"))
    Traceback (most recent call last):
    privacy.problems.RuleError: scale: expected a number above 0, not nan
    """
    POSITIVE.check(name, value)
    if value == math.inf:
        raise _expected("a finite number", name, value)


def proportion(name: str, value: float) -> None:
    """Refuse numbers that are not strictly between 0 and 1.

    >>> proportion("confidence", 1.0)
    Traceback (most recent call last):
    privacy.problems.RuleError: confidence: expected a number below 1, not 1
    """
    PROPORTION.check(name, value)


def _expected(what: str, name: str, value: float) -> RuleError:
    return RuleError(f"expected {what}, not {_text(value)}", *name.split("."))


def _text(number: float) -> str:
    return str(number).removesuffix(".0")
