"""Removal of repeated reports: each person counts once in a window.

A report that arrives twice with equal content counts once. If a person's reports on one window contradict each other,
none of them counts: a device sends one, so there is an error, and any selection would be arbitrary.
"""

from collections import Counter
from dataclasses import replace

import numpy as np

from privacy.local.client import Reports

Quality = Counter[tuple[str, str]]
"""Number of rows by treatment and file ("" if the file is unknown). It is public, like the reports."""

COUNTED = "counted"
LEFT_OUT = {
    "unusable": "that no device of this survey sends",
    "other_design": "of another design",
    "unsigned": "without a valid signature of the device",
    "repeated": "that came again",
    "contradictory": "of people who sent different reports on one window",
}
"""Reasons why rows do not count, in the order in which they are tested."""


def distinct(reports: Reports) -> tuple[Reports, Quality]:
    """Return the reports of one window without repeated and contradictory ones, and their quality.

    >>> twice = Reports(person=np.array([4, 2, 4, 3, 3]), layer=np.zeros(5, dtype=np.uint8),
    ...     symbol=np.array([1, 0, 1, 0, 1], dtype=np.uint32), sign=np.ones(5, dtype=np.int8), design="")
    >>> kept, quality = distinct(twice)
    >>> kept.person.tolist(), {name: rows for (name, _), rows in quality.items()}
    ([2, 4], {'counted': 2, 'repeated': 1, 'contradictory': 2})
    """
    if (np.diff(reports.person) > 0).all():
        return reports, Counter({(COUNTED, ""): len(reports.person)})
    order = np.argsort(reports.person, kind="stable")
    reports = _taken(reports, order)
    starts = np.flatnonzero(np.diff(reports.person, prepend=-1))
    sizes = np.diff(starts, append=len(order))
    first = np.repeat(starts, sizes)
    same = np.ones(len(order), dtype=bool)
    for column in (reports.layer, reports.symbol, reports.sign):
        same &= column == column[first]
    agree = np.logical_and.reduceat(same, starts)
    found = {COUNTED: agree.sum(), "repeated": (sizes[agree] - 1).sum(), "contradictory": sizes[~agree].sum()}
    return _taken(reports, starts[agree]), Counter({(name, ""): int(rows) for name, rows in found.items()})


def _taken(reports: Reports, rows: np.ndarray) -> Reports:
    return replace(
        reports,
        person=reports.person[rows],
        layer=reports.layer[rows],
        symbol=reports.symbol[rows],
        sign=reports.sign[rows],
    )
