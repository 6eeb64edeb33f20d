"""What of a privacy unit is protected: the dimension in which neighbours differ.

    Everything      all that a unit ever does. Neighbours: with and without all its mutations.
    Span(length)    whatever a unit does in any `length` of time (w-event privacy, Kellaris et al., VLDB 2014).
                    Neighbours: changelogs whose units are in the same states at all times but those of one unit, within
                    one span; and at no moment of it is that unit there in both (one of them can be had from the other
                    by taking it out). What differs longer than a span is protected less: s spans of difference cost
                    s times epsilon (group privacy).

With `near` neighbours are others: in that time a unit is in each query by both changelogs or by neither, in states that
differ in the named columns alone, where they are so far from each other at most (delta-neighbourhood, Fang and Chang).
That a unit is there is then not protected. What is s times as far is protected s times less.

Times are effective ones: a mutation that comes late counts when it comes (transforms.aggregation.shard_kernel).
"""

from dataclasses import dataclass

from privacy.checks import at_least


@dataclass(frozen=True, slots=True)
class Everything:
    """All that a unit ever does."""


@dataclass(frozen=True, slots=True)
class Span:
    """Whatever a unit does in any `length` microseconds, or only where it is, up to some distance.

    Attributes:
        near: names of columns, each with a distance as people read it; empty: whatever it does.
    """

    length: int
    near: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        at_least("span", self.length, 1)

    def boundaries(self, window: int, slack: int = 0) -> int:
        """At how many consecutive ends of windows of that length neighbours can differ.

        Args:
            slack: m windows in a row are at least m * window - slack long (docs/proofs/strategies.md#calendars).

        >>> Span(14).boundaries(1), Span(14).boundaries(10), Span(14).boundaries(20), Span(14).boundaries(1, slack=1)
        (14, 2, 1, 15)
        """
        return -(-(self.length + slack) // window)


Protection = Everything | Span

EVERYTHING = Everything()
