"""Rules of a split of the budget by relative errors."""

from collections.abc import Iterator

from privacy.problems import RuleError


def relative_error_problems(*, ratio: bool, expected: float | None) -> Iterator[RuleError]:
    """Yield the reasons why a query has no share of the budget, with paths relative to the query.

    Args:
        ratio: whether the query is a mean, a second moment or a variance.
        expected: typical size of its numbers; None: not given.
    """
    if ratio:
        yield RuleError(
            "its error depends on the data; privacy.split: relative_error is for counts and sums", "measure"
        )
    if expected is None:
        yield RuleError(
            "missing; privacy.split: relative_error needs a typical size of the numbers, add expected: 100", "expected"
        )
