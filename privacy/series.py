"""What is published again and again, and where each number lies on the line of windows.

Windows are numbered 1, 2, ..., n; boundary t is the end of window t, boundary 0 the start of the release. A number of a
series is what happened between two boundaries, or, for a level, all that happened up to one.
"""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from privacy.checks import at_least

Family = Literal["net", "entered", "left"]
Kind = Literal["change", "level", "sliding", "entered", "left"]
KINDS: tuple[Kind, ...] = ("change", "level", "sliding", "entered", "left")

Ints = NDArray[np.int64]

BEFORE_ALL = -1
"""The boundary before the initial level: what begins here includes everything before the start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Numbers of one kind.

    Attributes:
        kind: what they are.
        width, every: of sliding windows, in windows: number j spans windows j * every + 1 to j * every + width,
            so that none reaches back before the start. Both 1 for the other kinds.

    >>> week = Series(kind="sliding", width=7, every=2)
    >>> week.begins(12).tolist(), week.ends(12).tolist()
    ([0, 2, 4], [7, 9, 11])
    """

    kind: Kind
    width: int = 1
    every: int = 1

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"kind={self.kind!r} is not one of {', '.join(KINDS)}")
        at_least("width", self.width, 1)
        at_least("every", self.every, 1)
        if self.kind != "sliding" and (self.width, self.every) != (1, 1):
            raise ValueError(f"{self.kind} has no width of its own; only sliding numbers have one")

    @property
    def family(self) -> Family:
        """The family of leaf sums that the numbers are made from.

        >>> Series(kind="level").family
        'net'
        """
        return self.kind if self.kind == "entered" or self.kind == "left" else "net"

    def merged(self, leaf: int) -> "Series":
        """The same series where `leaf` windows are one.

        >>> Series(kind="sliding", width=14, every=7).merged(7)
        Series(kind='sliding', width=2, every=1)
        """
        if self.width % leaf or self.every % leaf:
            raise ValueError(f"{leaf} windows in one do not fit into {self.kind} numbers of {self.width}")
        return replace(self, width=self.width // leaf, every=self.every // leaf)

    def ends(self, windows: int) -> Ints:
        """Boundaries at which the numbers of the first `windows` windows end, increasing."""
        count = max(0, (windows - self.width) // self.every + 1)
        return np.arange(count, dtype=np.int64) * self.every + self.width

    def begins(self, windows: int) -> Ints:
        """Boundaries at which they begin; `BEFORE_ALL` for levels."""
        ends = self.ends(windows)
        return np.full_like(ends, BEFORE_ALL) if self.kind == "level" else ends - self.width

    def open_begins(self, windows: int) -> Ints:
        """Boundaries, the last one among them, at which numbers begin that have not ended; none for levels.

        >>> Series(kind="sliding", width=7, every=2).open_begins(12).tolist()
        [6, 8, 10, 12]
        """
        if self.kind == "level":
            return np.zeros(0, dtype=np.int64)
        return np.arange(len(self.ends(windows)), windows // self.every + 1, dtype=np.int64) * self.every


def totals(series: Series, leaves: Ints) -> Ints:
    """The exact numbers, [numbers, cells], of leaf sums [1 + windows, cells] whose row 0 is the initial level.

    >>> totals(Series(kind="level"), np.array([[5], [1], [-2]])).ravel().tolist()
    [6, 4]
    """
    windows = len(leaves) - 1
    level = np.cumsum(leaves, axis=0)
    ends: Ints = level[series.ends(windows)]
    if series.kind != "level":
        ends = ends - level[series.begins(windows)]
    return ends
