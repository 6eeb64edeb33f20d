"""What one privacy unit may contribute: a contribution bound, enforced by truncation, never assumed.

A contribution bound is a value, the spec's `constraint`. `transforms.aggregation.contribution_bounding` enforces it and
`privacy.planning.sensitivity` prices it; both read the same value, so that what is priced is what was enforced. The
rules (docs/design.md, "Rules of contribution bounding"):

* `AtMost(k)`: per query, the first k projected changes of the unit count; later ones are dropped and every
  entry keeps the value that it had, for ever.
* `AtMost(k, entries=n)`, for owners: as above, and nothing counts from the first instant on at whose end the first k
  changes have put more than n entries of the unit into the query.
* `Within(span)`: changes up to `span` after the unit's first mutation count; later ones are dropped.
* `AtOnce(n)`: nothing is cut off for good. What counts of a unit is its state at the end of each window: of an owner's
  entries that are in the query then, the first n by their keys. It bounds what a unit is at any one time, not how
  often it changes, and so it is for what protects a span of time (privacy.protection).
* `AtOnce(n, changes=k, block=v)`: the same, and in each block of time what counts of a unit changes at most k times: at
  the ends of k windows, with all of its entries at once. What goes beyond is held back until the block ends, and not
  for ever: there the unit is as it is.
* `ByClass`: the unit's class is read once, from its first state; the class's own constraint holds.
  A unit of a class that is not listed contributes nothing.

Truncation looks at the unit's own history only, so neighbouring changelogs stay neighbours.
"""

from dataclasses import dataclass

from privacy.checks import at_least


@dataclass(frozen=True, slots=True)
class AtMost:
    """At most `changes` projected changes of a unit per query, insertion and deletion included.

    Attributes:
        entries: how many entries of an owner its changes that count may put into the query at once; None: any number.
    """

    changes: int
    entries: int | None = None

    def __post_init__(self) -> None:
        at_least("at_most", self.changes, 1)
        if self.entries is not None:
            at_least("entries", self.entries, 1)


@dataclass(frozen=True, slots=True)
class Within:
    """Only changes within `span` microseconds (inclusive) of the unit's first mutation."""

    span: int

    def __post_init__(self) -> None:
        at_least("within", self.span, 0)


@dataclass(frozen=True, slots=True)
class AtOnce:
    """What a unit is at the end of each window, whatever it was before: at most `entries` of its entries.

    Attributes:
        changes: of a unit that count in each block of time; None: all. What its entries change by the end of one window
            is one change. What goes beyond is held back, and caught up at the end of the block's last window, which is
            one of them.
        block: how long a block is, in microseconds: whole windows, counted from the start.
    """

    entries: int = 1
    changes: int | None = None
    block: int | None = None

    def __post_init__(self) -> None:
        at_least("entries", self.entries, 1)
        if (self.changes is None) != (self.block is None):
            raise ValueError("give changes with the block that they are counted in")
        if self.changes is not None and self.block is not None:
            at_least("at_most", self.changes, 2)
            at_least("block", self.block, 1)


@dataclass(frozen=True, slots=True)
class ByClass:
    """A constraint for each class; `column` of the unit's first state says the class.

    >>> ByClass("fare", (("multi", AtMost(20)), ("pass", Within(31 * 86_400_000_000)))).names
    ('multi', 'pass')
    """

    column: str
    classes: tuple[tuple[str, AtMost | Within], ...]

    def __post_init__(self) -> None:
        at_least("number of classes", len(self.classes), 1)
        if len(set(self.names)) < len(self.classes):
            raise ValueError("classes: each class may be listed once")

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.classes)


Constraint = AtMost | Within | ByClass | AtOnce


def parts(constraint: Constraint) -> tuple[AtMost | Within, ...]:
    """The plain constraints on changes that a unit may fall under: one, or one for each class."""
    if isinstance(constraint, AtOnce):
        raise ValueError("what a unit is at once is bounded, and not its changes")
    if isinstance(constraint, ByClass):
        return tuple(part for _, part in constraint.classes)
    return (constraint,)
