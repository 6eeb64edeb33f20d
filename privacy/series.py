"""Series of published numbers, and the position of each number on the line of windows.

Windows are numbered 1, 2, ..., n; boundary t is the end of window t, boundary 0 the start of the release. A number of a
series is the net change between two boundaries or, for a level, all changes up to one boundary.
"""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from privacy.checks import at_least

Family = Literal["net", "entered", "left"]
SeriesKind = Literal["change", "level", "sliding", "entered", "left"]
KINDS: tuple[SeriesKind, ...] = ("change", "level", "sliding", "entered", "left")

Ints = NDArray[np.int64]

BEFORE_ALL = -1
"""Boundary before the initial level: numbers that begin here include everything before the start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Series of numbers of one kind.

    Attributes:
        kind: the kind of the numbers.
        width, every: of sliding windows, in windows: number j spans windows j * every + 1 to j * every + width,
            so that none begins before the start. Both are 1 for the other kinds.

    >>> week = Series(kind="sliding", width=7, every=2)
    >>> week.begins(12).tolist(), week.ends(12).tolist()
    ([0, 2, 4], [7, 9, 11])
    """

    kind: SeriesKind
    width: int = 1
    every: int = 1

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"kind={self.kind!r} is not one of {', '.join(KINDS)}")
        at_least("width", self.width, 1)
        at_least("every", self.every, 1)
        if self.kind != "sliding" and (self.width, self.every) != (1, 1):
            raise ValueError(f"{self.kind} has no width; only sliding numbers have one")

    @property
    def family(self) -> Family:
        """The family of leaf sums that the numbers are made from.

        >>> Series(kind="level").family
        'net'
        """
        return self.kind if self.kind == "entered" or self.kind == "left" else "net"

    def merged(self, leaf: int) -> "Series":
        """Return the same series in units of `leaf` windows.

        >>> Series(kind="sliding", width=14, every=7).merged(7)
        Series(kind='sliding', width=2, every=1)
        """
        if self.width % leaf or self.every % leaf:
            raise ValueError(f"{leaf} windows in one do not fit into {self.kind} numbers of {self.width}")
        return replace(self, width=self.width // leaf, every=self.every // leaf)

    def ends(self, windows: int) -> Ints:
        """Return the increasing boundaries at which the numbers of the first `windows` windows end, int64 [numbers]."""
        count = max(0, (windows - self.width) // self.every + 1)
        return np.arange(count, dtype=np.int64) * self.every + self.width

    def begins(self, windows: int) -> Ints:
        """Return the boundaries at which they begin, int64 [numbers]; `BEFORE_ALL` for levels."""
        ends = self.ends(windows)
        return np.full_like(ends, BEFORE_ALL) if self.kind == "level" else ends - self.width

    def open_begins(self, windows: int) -> Ints:
        """Return the boundaries, up to the last one, at which open numbers begin; empty for levels.

        >>> Series(kind="sliding", width=7, every=2).open_begins(12).tolist()
        [6, 8, 10, 12]
        """
        if self.kind == "level":
            return np.zeros(0, dtype=np.int64)
        return np.arange(len(self.ends(windows)), windows // self.every + 1, dtype=np.int64) * self.every


def totals(series: Series, leaves: Ints) -> Ints:
    """Return the exact numbers, [numbers, cells], of leaf sums [1 + windows, cells] whose row 0 is the initial level.

    >>> totals(Series(kind="level"), np.array([[5], [1], [-2]])).ravel().tolist()
    [6, 4]
    """
    windows = len(leaves) - 1
    level = np.cumsum(leaves, axis=0)
    ends: Ints = level[series.ends(windows)]
    if series.kind != "level":
        ends = ends - level[series.begins(windows)]
    return ends
