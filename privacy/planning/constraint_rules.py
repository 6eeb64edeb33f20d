"""Rules of a bound on the changes of a unit, for plans made in Python and for specs.

Paths start at `privacy.constraint` of a spec.
"""

from collections.abc import Iterator

from privacy.constraint import Constraint
from privacy.problems import RuleError

ALONE = "an entry is one at any time; name the owner under privacy.unit, or remove it"
"""Why the number of a unit's entries is not bounded if the unit is an entry."""


def constraint_problems(constraint: Constraint, *, owner: bool) -> Iterator[RuleError]:
    """Yield the reasons why a bound on all changes of a unit is not one for the kind of unit.

    Args:
        constraint: the bound.
        owner: whether a unit may own several entries.
    """
    if constraint.at_once is not None:
        return
    places = [()] if constraint.column is None else [("classes", name) for name in constraint.names]
    for place, part in zip(places, constraint.parts, strict=True):
        if owner and part.span is not None:
            yield RuleError("an owner's entries are not bounded by a time span; use at_most", *place, "within")
        if not owner and part.entries is not None:
            yield RuleError(ALONE, *place, "entries")
