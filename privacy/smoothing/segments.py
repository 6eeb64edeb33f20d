"""Segments of a series: a smoothed number uses the published numbers of its segment, up to itself.

A segment has 2 `MEMORY` numbers; it smooths those of its later half, and the first segment smooths both halves. So each
number uses the last 128 to 256 numbers (the first ones use all before them), and the work is linear in the number of
numbers. Segments depend only on the schedule: a smoothed number does not change.
"""

from dataclasses import dataclass

MEMORY = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """Numbers `first` to `last` - 1, of which those from `kept` on are smoothed."""

    first: int
    kept: int
    last: int


def segments(numbers: int, horizon: int | None) -> list[Segment]:
    """Return the segments of the first `numbers` numbers of a series; the last one may include unpublished numbers.

    Args:
        numbers: number of published numbers.
        horizon: final number of numbers; None if the release has no end.

    >>> [(s.first, s.kept, s.last) for s in segments(300, 365)]
    [(0, 0, 256), (128, 256, 365)]
    """
    end = numbers + 2 * MEMORY if horizon is None else horizon
    kept = [0, *range(2 * MEMORY, numbers, MEMORY)]
    return [Segment(first=max(0, k - MEMORY), kept=k, last=min(end, max(k + MEMORY, 2 * MEMORY))) for k in kept]
