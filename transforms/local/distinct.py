"""Each person's report on a window once.

A report that came twice, equal in all that it says, counts once. Where a person's reports on one window contradict each
other none of them counts: a device sends one, so something is wrong, and which of them to take would be a choice.
"""

from dataclasses import dataclass, replace

import numpy as np

from privacy.local.client import Reports


@dataclass(frozen=True, slots=True, kw_only=True)
class Quality:
    """How many rows were no reports, came again, or contradicted each other. Public, like the reports."""

    unusable: int = 0
    repeated: int = 0
    contradictory: int = 0

    def __add__(self, other: "Quality") -> "Quality":
        return Quality(
            unusable=self.unusable + other.unusable,
            repeated=self.repeated + other.repeated,
            contradictory=self.contradictory + other.contradictory,
        )


def distinct(reports: Reports) -> tuple[Reports, Quality]:
    """Of one window.

    >>> twice = Reports(person=np.array([4, 2, 4, 3, 3]), layer=np.zeros(5, dtype=np.uint8),
    ...     symbol=np.array([1, 0, 1, 0, 1], dtype=np.uint32), sign=np.ones(5, dtype=np.int8))
    >>> kept, quality = distinct(twice)
    >>> kept.person.tolist(), quality
    ([2, 4], Quality(unusable=0, repeated=1, contradictory=2))
    """
    if (np.diff(reports.person) > 0).all():
        return reports, Quality()
    order = np.argsort(reports.person, kind="stable")
    reports = _taken(reports, order)
    starts = np.flatnonzero(np.diff(reports.person, prepend=-1))
    sizes = np.diff(starts, append=len(order))
    first = np.repeat(starts, sizes)
    same = np.ones(len(order), dtype=bool)
    for column in (reports.layer, reports.symbol, reports.sign):
        same &= column == column[first]
    agree = np.logical_and.reduceat(same, starts)
    return _taken(reports, starts[agree]), Quality(
        repeated=int((sizes[agree] - 1).sum()), contradictory=int(sizes[~agree].sum())
    )


def _taken(reports: Reports, rows: np.ndarray) -> Reports:
    return replace(
        reports,
        person=reports.person[rows],
        layer=reports.layer[rows],
        symbol=reports.symbol[rows],
        sign=reports.sign[rows],
    )
