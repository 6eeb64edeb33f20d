"""Interface of the filter of a Toeplitz factorisation, which two classes of kernels implement.

A kernel turns integer leaves into integer nodes (forward), and noisy nodes into levels (back). It remembers earlier
leaves and nodes in named arrays, each [rows, cells].
"""

from collections.abc import Mapping
from typing import Any, Protocol

from privacy.series import Ints
from privacy.strategies.base import Floats

Integers = Mapping[str, Ints]
Reals = Mapping[str, Floats]


class Kernel(Protocol):
    """A filter C. `horizon` is the number of leaves, including a released initial level; None if there is no end."""

    def __hash__(self) -> int: ...

    @property
    def form(self) -> str:
        """Name of the form in a spec."""
        ...

    @property
    def parameters(self) -> dict[str, Any]:
        """Chosen parameters, as JSON values of a plan."""
        ...

    @property
    def endless(self) -> bool:
        """Whether the release needs no end: earlier leaves fade from the filter's nodes."""
        ...

    @property
    def bounded(self) -> bool:
        """Whether the size of the remembered arrays stays bounded however many leaves there are."""
        ...

    def settled(self, horizon: int | None) -> "Kernel":
        """Return the kernel with all numbers written out that a later version might compute otherwise."""
        ...

    def sized(self, size: int) -> "Kernel":
        """Return the kernel for units whose state has at most this size, in steps."""
        ...

    def coefficients(self, horizon: int | None) -> Floats:
        """Return the coefficients of the linear part of C, exactly, float64 [n]; without an end, no trailing zeros."""
        ...

    def response(self, leaves: int, horizon: int | None) -> Floats:
        """Return the weights of the noise of the first nodes in a level, float64 [leaves], newest first."""
        ...

    def rounding(self, changes: int, horizon: int | None) -> float:
        """Return how far rounding moves one cell's nodes between neighbours, in L2, beyond the linear part, in steps.

        Args:
            changes: number of leaves in which a unit can move the cell.
            horizon: number of leaves; None without an end.
        """
        ...

    def start(self, cells: int) -> tuple[Integers, Reals]:
        """Return the remembered arrays before the first leaf."""
        ...

    def remembered(self, leaves: int, horizon: int | None) -> int:
        """Return the number of remembered rows after a number of leaves."""
        ...

    def forward(self, kept: Integers, leaves: Ints, horizon: int | None) -> tuple[Ints, Integers]:
        """Return the nodes of leaves, int64 [rows, cells], and the remembered arrays after them.

        Args:
            kept: remembered arrays before the leaves.
            leaves: int64 [rows, cells].
            horizon: number of leaves; None without an end.

        Raises:
            OverflowError: a level exceeds the range of 64 bits.
        """
        ...

    def back(self, kept: Reals, level: Floats, noisy: Floats, horizon: int | None) -> tuple[Floats, Reals]:
        """Return levels from noisy nodes, float64 [rows, cells], and the remembered arrays after them.

        Args:
            kept: remembered arrays before the nodes.
            level: the level before the nodes, float64 [cells].
            noisy: noisy nodes, float64 [rows, cells].
            horizon: number of leaves; None without an end.
        """
        ...
