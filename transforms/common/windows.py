"""Beginnings and ends of windows: the only module that converts times to numbers of windows, and numbers to times.

Windows are numbered 1, 2, ...; boundary 0 is the start of the first, and boundary i the end of window i. All windows
have one length, or they are those of a calendar with listed boundaries.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from privacy.counted import counted
from privacy.problems import RuleError

Ints = np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True)
class Windows:
    """Window i = [boundary i - 1, boundary i); microseconds since the epoch, UTC.

    Attributes:
        start: Boundary 0.
        every: Length of a window or, for a calendar, the length that a plan assumes.
        ends: Boundaries 1, 2, ... of a calendar, as far as they are known; None if boundary i is start + i * every.

    >>> Windows(start=100, every=10).closed(125), Windows(start=100, every=10, ends=(112, 120)).closed(119)
    (2, 1)
    """

    start: int
    every: int
    ends: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if self.every < 1:
            raise RuleError("expected a duration above zero, such as 1d", "every")
        if self.ends is not None and (np.diff(_boundaries(self)) <= 0).any():
            raise ValueError("ends: each window must end after the one before it")

    def end(self, number: int) -> int:
        """Return boundary `number`.

        Raises:
            ValueError: The calendar is not known so far.
        """
        if self.ends is None:
            return self.start + number * self.every
        if not 0 <= number <= len(self.ends):
            raise ValueError(f"the calendar is known for {counted(len(self.ends), 'window')}, not for {number}")
        return self.ends[number - 1] if number else self.start

    def at(self, numbers: Ints) -> Ints:
        """Return the boundaries of these numbers (int64 [n]), int64 [n]."""
        if self.ends is None:
            return self.start + numbers * self.every
        return _boundaries(self)[numbers]

    def closed(self, moment: int) -> int:
        """Return how many known windows have ended at a moment."""
        if self.ends is None:
            return max(0, (moment - self.start) // self.every)
        return int(np.searchsorted(np.asarray(self.ends, dtype=np.int64), moment, side="right"))

    def of(self, times: Ints) -> Ints:
        """Return the window of each time (int64 [n]), int64 [n]; 0 before the start."""
        if self.ends is not None:
            return np.searchsorted(_boundaries(self), times, side="right")
        window: Ints = (np.maximum(times, self.start) - self.start) // self.every + 1
        window *= times >= self.start
        return window

    def numbers(self, boundaries: Ints) -> tuple[Ints, Ints]:
        """Return the numbers of boundaries (int64 [n]), and whether each time is a boundary (bool [n])."""
        if self.ends is None:
            numbers, off = np.divmod(boundaries - self.start, self.every)
            return numbers, off == 0
        known = _boundaries(self)
        numbers = np.searchsorted(known, boundaries, side="right") - 1
        return numbers, (numbers >= 0) & (known[numbers] == boundaries)

    @property
    def slack(self) -> int:
        """Least s such that any m windows in a row are at least m * every - s long, for all m.

        >>> Windows(start=0, every=10, ends=(10, 19, 29, 40)).slack
        1
        """
        if self.ends is None:
            return 0
        ahead = _boundaries(self) - np.arange(len(self.ends) + 1) * self.every
        return int((np.maximum.accumulate(ahead) - ahead).max())


@lru_cache(maxsize=8)
def _boundaries(windows: Windows) -> Ints:
    found = np.array((windows.start, *(windows.ends or ())), dtype=np.int64)
    found.flags.writeable = False
    return found
