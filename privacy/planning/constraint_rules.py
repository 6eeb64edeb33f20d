"""Rules of the bound on a unit's contribution, for plans made in Python and for specs.

Paths start at `privacy.constraint` of a spec.
"""

from collections.abc import Iterator

from privacy.constraint import Constraint
from privacy.problems import RuleError

NO_CHANGES = "bounds changes, which is not needed with protects: {span: ...}"
"""Message of a bound on changes for a release that protects a span of time."""


def constraint_problems(constraint: Constraint, *, owner: bool, span: bool) -> Iterator[RuleError]:
    """Yield why a constraint does not bound the protected activity.

    Levels that are published adaptively need no bound of changes (`change_problems`).

    Args:
        constraint: the constraint.
        owner: whether a unit may own several entries.
        span: whether what a unit does in a span of time is protected, which needs a bound of its entries at one time.
    """
    if span and constraint.at_once is None:
        yield RuleError(NO_CHANGES)
    if span or constraint.at_once is not None or not owner:
        return
    places = [()] if constraint.column is None else [("classes", name) for name in constraint.names]
    for place, part in zip(places, constraint.parts, strict=True):
        if part.span is not None:
            yield RuleError("an owner's entries are not bounded by a time span; use at_most", *place, "within")


def change_problems(constraint: Constraint) -> Iterator[RuleError]:
    """Yield why a constraint does not bound a unit's changes, for numbers that need it if everything is protected."""
    if constraint.at_once is not None:
        yield RuleError("goes with a number of changes", "entries")
