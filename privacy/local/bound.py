"""Contribution bound of a person's changes, enforced by the person's own device.

    at_most     the first k changes
    within      the changes in the window of the first one and in `within` windows after it

A change is a difference between the ends of two windows; appearing is a change. After the last counted change, the
answer stays as it is permanently, and the device continues to report 'no change'.
"""

from dataclasses import dataclass
from fractions import Fraction

from privacy.checks import between
from privacy.constraint import MOST_COUNTED
from privacy.local.chance import Flags, Ints
from privacy.problems import RuleError


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalBound:
    """Bound of the counted changes; exactly one of the two attributes is given, `within` in windows."""

    at_most: int | None = None
    within: int | None = None

    def __post_init__(self) -> None:
        if (self.at_most is None) == (self.within is None):
            raise RuleError("expected one of at_most: 4 and within: 14d")
        between("at_most", self.at_most, 1, MOST_COUNTED)
        between("within", self.within, 0, MOST_COUNTED)

    def counts(self, used: Ints, first: Ints, window: int) -> Flags:
        """Return whether a change in this window counts, bool [people].

        Args:
            used: number of a person's changes that have counted, int64 [people].
            first: the window of the first of them, int64 [people]; any value if there is no change.
            window: number of the window, from 0.
        """
        if self.at_most is not None:
            return used < self.at_most
        counts: Flags = (used == 0) | (window - first <= (self.within or 0))
        return counts

    def changed(self, span: int, nodes: int) -> int:
        """Return how many of `nodes` nodes of `span` windows one person can change: the corrected ceilings.

        >>> LocalBound(within=4).changed(4, 100), LocalBound(within=5).changed(4, 100)
        (2, 3)
        """
        if self.at_most is not None:
            return min(self.at_most, nodes)
        within = self.within or 0
        return min(-(-within // span) + 1, within + 1, nodes)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportTerms:
    """Reports on a layer, which its randomiser must cover.

    Attributes:
        changed: largest number of reports that one person can change.
        symbols: number of symbols that a report distinguishes; None if symbols of the layer's nodes do not add up.
        epsilon: parameter of everything that a person reports.
        of_each: epsilon and delta of each report in which two people can differ.
    """

    changed: int
    symbols: int | None
    epsilon: Fraction
    of_each: tuple[Fraction, Fraction]


def differing(bound: LocalBound, span: int, nodes: int) -> int:
    """Return the largest number of nodes in which two people can differ: twice one person's, but at most all nodes.

    Args:
        bound: contribution bound.
        span: number of windows of a node.
        nodes: number of nodes.
    """
    return min(2 * bound.changed(span, nodes), nodes)


def loss_of_all_layers(bound: LocalBound, *, windows: int, arity: int, layers: int, epsilon: float) -> float:
    """Return the loss of a report on every node of every layer: the paper's corollaries 5.1 to 5.3, corrected.

    Each report is randomised response with `epsilon`; with one layer this is the disjoint release. The paper omits the
    ceiling of B / (c^i W) in each layer, and counts differences in windows that do not exist. This program does not
    report on sliding windows (5.4 and 5.5).

    Args:
        bound: contribution bound.
        windows: number of windows.
        arity: children of a node.
        layers: number of layers.
        epsilon: epsilon of one report.

    >>> loss_of_all_layers(LocalBound(within=1), windows=64, arity=2, layers=3, epsilon=0.5)  # the paper: 2 * 4.75 / 2
    6.0
    """
    spans = [arity**layer for layer in range(layers)]
    return epsilon * sum(differing(bound, span, windows // span) for span in spans)
