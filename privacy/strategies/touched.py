"""Where one entry can move a release: m of the theorems, next to its radius r and diameter D (privacy.states).

What a strategy's norms rest on is how large an entry's states are (r), how far from each other (D), and in how many
leaves they can change (m): nothing else of a constraint, or of what is protected.
"""

from dataclasses import dataclass

from privacy.constraint import AtMost, Within


@dataclass(frozen=True, slots=True)
class Touched:
    """How many disjoint windows an entry can move, at most: leaves, or the nodes of one layer.

    Attributes:
        appearing: by an entry that starts from nothing.
        present: by one that was there at the start.
        in_a_row: whether they lie next to each other.
    """

    appearing: int
    present: int
    in_a_row: bool

    def nodes(self, leaves: int, there_are: float) -> "Touched":
        """The same of nodes of so many leaves each, if there are so many nodes (infinity: no end).

        L leaves in a row meet at most ceil((L - 1) / leaves) + 1 nodes (erratum of Pan's theorem 4.3).

        >>> at_most(3).nodes(10, 2), Touched(3, 3, in_a_row=True).nodes(2, 9)
        (Touched(appearing=2, present=2, in_a_row=False), Touched(appearing=2, present=2, in_a_row=True))
        """
        return Touched(
            self._met(self.appearing, leaves, there_are), self._met(self.present, leaves, there_are), self.in_a_row
        )

    def _met(self, moved: int, leaves: int, there_are: float) -> int:
        if self.in_a_row and moved > 0:
            moved = -(-(moved - 1) // leaves) + 1
        return int(min(moved, there_are))


def at_most(changes: int) -> Touched:
    """So many changes, wherever they lie; being there at the start used up one of them."""
    return Touched(changes, changes - 1, in_a_row=False)


def touched(part: AtMost | Within, window: int, slack: int = 0) -> Touched:
    """The leaves, of `window` microseconds each, that a constraint leaves to an entry.

    A span of B microseconds meets at most ceil((B + slack) / window) + 1 of them.

    Args:
        slack: m leaves in a row are at least m * window - slack long (docs/proofs/strategies.md#calendars).

    >>> touched(Within(15), 10), touched(Within(20), 10, slack=1)
    (Touched(appearing=3, present=3, in_a_row=True), Touched(appearing=4, present=4, in_a_row=True))
    """
    if isinstance(part, AtMost):
        return at_most(part.changes)
    met = -(-(part.span + slack) // window) + 1
    return Touched(met, met, in_a_row=True)
