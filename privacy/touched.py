"""Windows in which one entry can move a release: m of the theorems; r and D are in privacy.states.

A strategy's norms depend on the size of an entry's states (r), on their distance (D), and on the number of leaves in
which they can change (m): on nothing else of a constraint or a protection.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Touched:
    """Largest number of disjoint windows that an entry can move: leaves, or the nodes of one layer.

    Attributes:
        appearing: number for an entry without a state at the start.
        present: number for an entry that was present at the start.
        in_a_row: whether the windows are adjacent.
    """

    appearing: int
    present: int
    in_a_row: bool

    def nodes(self, leaves: int, there_are: float) -> "Touched":
        """Return the largest number of touched nodes of `leaves` leaves each, if there are `there_are` nodes.

        Without an end `there_are` is infinite. L leaves in a row meet at most ceil((L - 1) / leaves) + 1 nodes (erratum
        of Pan's theorem 4.3).

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
    """Return the leaves of a number of changes at any times; presence at the start used up one change."""
    return Touched(changes, changes - 1, in_a_row=False)
