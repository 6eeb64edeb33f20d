"""Rules of a query's numbers and of its share of the budget, for plans made in Python and for specs.

Paths start at a query of the spec.
"""

from collections.abc import Callable, Iterator, Mapping

from privacy.checks import POSITIVE
from privacy.problems import RuleError


def split_problems(
    *, ratio: bool, expected: float | None, weight: float, weighted: bool, relative: bool = False
) -> Iterator[RuleError]:
    """Yield the reasons why a query has no share of the budget.

    Args:
        ratio: whether the query is a mean, a second moment or a variance.
        expected: typical size of its numbers; None: not given.
        weight: its weight.
        weighted: whether the weight is given.
        relative: whether the budget is split by relative errors.
    """
    yield from POSITIVE.problems("expected", expected)
    yield from POSITIVE.problems("weight", weight)
    if not relative:
        if expected is not None and ratio:
            message = "is for counts and sums, since the error of a ratio depends on the data; remove it"
            yield RuleError(message, "expected")
        return
    if ratio:
        yield RuleError(
            "its error depends on the data; privacy.split: relative_error is for counts and sums", "measure"
        )
    if expected is None:
        yield RuleError(
            "missing; privacy.split: relative_error needs a typical size of the numbers, add expected: 100", "expected"
        )
    if weighted:
        message = "the shares follow from expected with privacy.split: relative_error; remove one of the two"
        yield RuleError(message, "weight")


def sliding_problems(widths: Mapping[int, int], windows: int | None, text: Callable[[int], str]) -> Iterator[RuleError]:
    """Yield the sliding sums that are longer than the release.

    Args:
        widths: widths of sliding sums, in windows, by their places among the published numbers.
        windows: number of windows of the release; None without an end.
        text: returns a number of windows in words.
    """
    for place, width in widths.items():
        if windows is not None and width > windows:
            yield RuleError(f"longer than the release; use at most {text(windows)}", "publish", place, "sliding")


def near_problems(*, moves: bool) -> Iterator[RuleError]:
    """Yield the reason why numbers do not protect the place of a unit alone.

    Args:
        moves: whether arrivals or departures are published.
    """
    if moves:
        message = "entered and left reveal where a unit was before, near or not; use level or change"
        yield RuleError(message, "publish")


def near_changes(*, counted: bool) -> Iterator[RuleError]:
    """Yield the reason why a bound on changes does not protect the place of a unit alone; the path is of the spec.

    Args:
        counted: whether the changes of a unit are bounded.
    """
    if counted:
        message = "units that are near each other may use up their changes at different times; remove at_most"
        yield RuleError(message, "privacy", "constraint", "at_most")
