"""Protection of a privacy unit: the dimension in which neighbours differ.

    Everything      everything that a unit ever does. Neighbours: changelogs with and without all its mutations.
    Span(length)    everything that a unit does in any `length` of time (w-event privacy, Kellaris et al., VLDB 2014).
                    Neighbours: changelogs in which all units have the same states at all times, except one unit within
                    one span, in which that unit is absent from one of them. So one results from the other if the
                    unit is removed in that time. Longer differences are protected less: s spans of difference cost s
                    times epsilon (group privacy).

With `near` the neighbours are others: in that time a unit is in each query in both changelogs or in neither, in states
that differ only in the named columns, and there by at most the stated distance (delta-neighbourhood, Fang and Chang).
The presence of a unit is then not protected. A distance s times as large is protected s times less.

Times are effective ones: a late mutation counts when it arrives (transforms.aggregation.shard_kernel).
"""

from dataclasses import dataclass
from typing import ClassVar

from privacy.problems import RuleError


@dataclass(frozen=True, slots=True)
class Everything:
    """Protects everything that a unit ever does."""

    span: ClassVar[None] = None


@dataclass(frozen=True, slots=True)
class Span:
    """Protects everything that a unit does in any `length` microseconds, or only its place, up to some distance.

    Attributes:
        near: names of columns, each with a distance in readable form; empty: everything that the unit does.
    """

    length: int
    near: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        if self.length < 1:
            raise RuleError("expected a duration above zero, such as 14d", "span")

    @property
    def span(self) -> "Span":
        """The protected span of time."""
        return self

    def boundaries(self, window: int, slack: int = 0) -> int:
        """Return the largest number of consecutive ends of windows at which neighbours can differ.

        Args:
            window: mean length of a window, in microseconds.
            slack: m consecutive windows are at least m * window - slack long (docs/proofs/strategies.md#calendars).

        >>> Span(14).boundaries(1), Span(14).boundaries(10), Span(14).boundaries(20), Span(14).boundaries(1, slack=1)
        (14, 2, 1, 15)
        """
        return -(-(self.length + slack) // window)


Protection = Everything | Span

EVERYTHING = Everything()
