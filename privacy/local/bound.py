"""What of a person's changes counts, enforced by the person's own device.

    at_most     the first k changes
    within      the changes in the window of the first one and in so many windows after it

A change is what differs between the ends of two windows; to be there at all is one. After the last that counts, the
answer stays as it is for ever, and the device goes on reporting 'no change'.
"""

from dataclasses import dataclass

from privacy.checks import between
from privacy.local.chance import Flags, Ints

MOST_COUNTED = 1_000_000_000
"""Largest number of changes, or of windows, that a bound can name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalBound:
    """Exactly one of the two, in windows."""

    at_most: int | None = None
    within: int | None = None

    def __post_init__(self) -> None:
        if (self.at_most is None) == (self.within is None):
            raise ValueError("give at_most or within, one of them")
        if self.at_most is not None:
            between("at_most", self.at_most, 1, MOST_COUNTED)
        if self.within is not None:
            between("within", self.within, 0, MOST_COUNTED)

    def counts(self, used: Ints, first: Ints, window: int) -> Flags:
        """Whether a change in this window counts.

        Args:
            used: how many of a person's changes have counted.
            first: the window of the first of them, where there is one.
        """
        if self.at_most is not None:
            return used < self.at_most
        counts: Flags = (used == 0) | (window - first <= (self.within or 0))
        return counts

    def changed(self, span: int, nodes: int) -> int:
        """How many of so many nodes of `span` windows each one person can change: the corrected ceilings.

        >>> LocalBound(within=4).changed(4, 100), LocalBound(within=5).changed(4, 100)
        (2, 3)
        """
        if self.at_most is not None:
            return min(self.at_most, nodes)
        within = self.within or 0
        return min(-(-within // span) + 1, within + 1, nodes)


def differing(bound: LocalBound, span: int, nodes: int) -> int:
    """In how many of the nodes two people can differ: twice, but for the end of the nodes."""
    return min(2 * bound.changed(span, nodes), nodes)


def loss_of_all_layers(bound: LocalBound, *, windows: int, arity: int, layers: int, epsilon: float) -> float:
    """The paper's corollaries 5.1 to 5.3, corrected: what a report on every node of every layer costs in all.

    Each report is randomised response with `epsilon`; with one layer this is the disjoint release. The paper drops the
    ceiling of B / (c^i W) in each layer, and counts differences in windows that do not exist. For reports on sliding
    windows (5.4 and 5.5), which are not sent here, see `privacy.planning.paper.sliding_windows_met`.

    >>> loss_of_all_layers(LocalBound(within=1), windows=64, arity=2, layers=3, epsilon=0.5)  # the paper: 2 * 4.75 / 2
    6.0
    """
    spans = [arity**layer for layer in range(layers)]
    return epsilon * sum(differing(bound, span, windows // span) for span in spans)
