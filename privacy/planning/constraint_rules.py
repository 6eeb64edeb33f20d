"""Rules of a bound on the changes of a unit, for plans made in Python and for specs.

Paths start at `privacy.constraint` of a spec.
"""

from collections.abc import Iterator

from privacy.constraint import Constraint
from privacy.problems import RuleError


def constraint_problems(constraint: Constraint, *, owner: bool) -> Iterator[RuleError]:
    """Yield the parts of a constraint that do not bound the changes of a unit."""
    if constraint.at_once is not None or not owner:
        return
    places = [()] if constraint.column is None else [("classes", name) for name in constraint.names]
    for place, part in zip(places, constraint.parts, strict=True):
        if part.span is not None:
            yield RuleError("an owner's entries are not bounded by a time span; use at_most", *place, "within")
