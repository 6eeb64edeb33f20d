"""Contribution bounds: limits for the contribution of one privacy unit, enforced by truncation, never assumed.

A contribution bound is a value, the spec's `constraint`. `transforms.aggregation.contribution_bounding` enforces it and
`privacy.planning.sensitivity` prices it; both read the same value, so that the priced bound is the enforced bound. The
rules (docs/design.md, "Rules of contribution bounding"):

* `AtMost(k)`: per query, the first k projected changes of the unit count; later ones are dropped, and every entry
  keeps its last counted value permanently.
* `AtMost(k, entries=n)`, for owners: as above, and nothing counts from the first instant on at whose end the first k
  changes have put more than n entries of the unit into the query.
* `Within(span)`: changes up to `span` after the unit's first mutation count; later ones are dropped.
* `AtOnce(n)`: no change is dropped permanently. A unit counts with its state at the end of each window: of an owner's
  entries that are in the query then, the first n by their keys. It bounds the state of a unit at any one time, not the
  number of its changes, so it is for protection of a span of time (privacy.protection).
* `AtOnce(n, changes=k, block=v)`: as `AtOnce(n)`, and in each block of time the counted state of a unit changes at most
  k times: at the ends of k windows, with all of its entries at once. Excess changes are held back until the block ends,
  when the unit counts with its current state.
* `ByClass`: the unit's class is read once, from its first state; the class's own constraint holds.
  A unit of a class that is not listed contributes nothing.

Truncation depends only on the unit's own history, so neighbouring changelogs remain neighbours.
"""

from dataclasses import dataclass
from typing import ClassVar, NoReturn

from privacy.checks import Limits, at_least
from privacy.problems import RuleError
from privacy.touched import Touched, at_most

MOST_COUNTED = 1_000_000_000

COUNTED = Limits(1, MOST_COUNTED)
"""Limits of the numbers of changes and of entries in a contribution bound."""


@dataclass(frozen=True, slots=True)
class AtMost:
    """At most `changes` projected changes of a unit per query, insertion and deletion included.

    Attributes:
        entries: largest number of entries of an owner that its counted changes may put into the query at once; None:
            no limit.
    """

    at_once: ClassVar[None] = None
    column: ClassVar[None] = None
    span: ClassVar[None] = None
    changes: int
    entries: int | None = None

    def __post_init__(self) -> None:
        COUNTED.check("at_most", self.changes)
        COUNTED.check("entries", self.entries)

    @property
    def parts(self) -> tuple["AtMost"]:
        return (self,)

    def together(self) -> int:
        """Largest number of entries of an owner that can be present at once, or move in one leaf."""
        return self.changes if self.entries is None else min(self.entries, self.changes)

    def touched(self, window: int, slack: int = 0) -> Touched:
        """Return the windows of `window` microseconds that an entry can move, whenever its changes occur."""
        return at_most(self.changes)


@dataclass(frozen=True, slots=True)
class Within:
    """Only changes within `span` microseconds (inclusive) of the unit's first mutation."""

    at_once: ClassVar[None] = None
    column: ClassVar[None] = None
    changes: ClassVar[None] = None
    span: int

    def __post_init__(self) -> None:
        at_least("within", self.span, 0)

    @property
    def parts(self) -> tuple["Within"]:
        return (self,)

    def together(self) -> int:
        """Largest number of entries of an owner at once, which a span of time does not bound.

        Raises:
            ValueError: always.
        """
        raise ValueError("a time span does not bound an owner's entries; use at_most")

    def touched(self, window: int, slack: int = 0) -> Touched:
        """Return the windows of `window` microseconds that an entry can move.

        A span of B microseconds meets at most ceil((B + slack) / window) + 1 of them.

        Args:
            window: mean length of a window, in microseconds.
            slack: m consecutive windows are at least m * window - slack long (docs/proofs/strategies.md#calendars).

        >>> Within(15).touched(10), Within(20).touched(10, slack=1)
        (Touched(appearing=3, present=3, in_a_row=True), Touched(appearing=4, present=4, in_a_row=True))
        """
        met = -(-(self.span + slack) // window) + 1
        return Touched(met, met, in_a_row=True)


@dataclass(frozen=True, slots=True)
class AtOnce:
    """The state of a unit at the end of each window, independent of earlier states: at most `entries` of its entries.

    Attributes:
        changes: number of changes of a unit that count in each block of time; None: all. All changes of its entries by
            the end of one window are one change. Excess changes are held back, and applied at the end of the block's
            last window, which counts as one change.
        block: length of a block in microseconds: whole windows, counted from the start.
    """

    column: ClassVar[None] = None
    span: ClassVar[None] = None
    entries: int = 1
    changes: int | None = None
    block: int | None = None

    def __post_init__(self) -> None:
        COUNTED.check("entries", self.entries)
        if (self.changes is None) != (self.block is None):
            raise ValueError("give changes with the block that they are counted in")
        if self.changes is not None and self.block is not None:
            if self.changes < 2:
                raise RuleError(
                    "one state in a span is a window of that length; use schedule.every, or at_most: 2", "at_most"
                )
            at_least("block", self.block, 1)

    @property
    def at_once(self) -> "AtOnce":
        """The bound of a unit at one time; None for bounds of its changes."""
        return self

    @property
    def parts(self) -> NoReturn:
        """Refuse to name constraints on changes: an empty list of them would have no sensitivity.

        Raises:
            ValueError: always.
        """
        raise ValueError("the state of a unit at one time is bounded, and not its changes")


@dataclass(frozen=True, slots=True)
class ByClass:
    """A constraint for each class; `column` of the unit's first state gives the class.

    >>> ByClass("fare", (("multi", AtMost(20)), ("pass", Within(31 * 86_400_000_000)))).names
    ('multi', 'pass')
    """

    at_once: ClassVar[None] = None
    span: ClassVar[None] = None
    changes: ClassVar[None] = None
    column: str
    classes: tuple[tuple[str, AtMost | Within], ...]

    def __post_init__(self) -> None:
        at_least("classes", len(self.classes), 1)
        if len(set(self.names)) < len(self.classes):
            raise ValueError("classes: each class may be listed once")

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.classes)

    @property
    def parts(self) -> tuple[AtMost | Within, ...]:
        """Constraints on changes, one for each class, that a unit may be subject to."""
        return tuple(part for _, part in self.classes)


Constraint = AtMost | Within | ByClass | AtOnce


def alone(constraint: Constraint) -> bool:
    """Return whether at most one entry of an owner can be in a query at a time.

    >>> alone(AtMost(4, entries=1)), alone(AtMost(4)), alone(AtOnce(2)), alone(Within(10))
    (True, False, False, False)
    """
    if constraint.at_once is not None:
        return constraint.at_once.entries == 1
    return all(part.changes is not None and part.together() == 1 for part in constraint.parts)
