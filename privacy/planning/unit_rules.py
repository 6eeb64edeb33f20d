"""Rules of queries that count units once in each cell (`measure: units`). Paths start at a query of the spec.

A unit with several entries at a time can be in several cells. Then sums over cells count it several times, and the
difference of near units is not that of near entries.
"""

from collections.abc import Iterator

from privacy.problems import RuleError

SUMS = "a unit counts once in each cell, so that sums over cells count it several times"
"""Why sums of cells are refused."""


def unit_problems(
    *, over: bool, quantiles: bool, ranges: bool, near: bool, marginals: bool = False, hierarchy: bool = False
) -> Iterator[RuleError]:
    """Yield the reasons why a query cannot count units that may have several entries at a time.

    Args:
        over: whether the query has settings for sums over cells.
        quantiles: whether quantiles are published.
        ranges: whether sums over ranges are published.
        near: whether only the place of a unit is protected.
        marginals: whether marginals are published.
        hierarchy: whether a key has a hierarchy.
    """
    instead = "use measure: count, or constraint: {entries: 1}"
    if near:
        message = (
            "units: near entries of one unit may be in one cell or in several, so that a distance is not protected"
        )
        yield RuleError(f"{message}; {instead}", "measure")
    if over and not (ranges or marginals):
        yield RuleError(f"{SUMS}; remove it, or {instead}", "cells")
    if hierarchy:
        yield RuleError(f"{SUMS}, also those of a tree; list the values, or {instead}", "by")
    for asked, what in ((quantiles, "quantiles"), (ranges, "ranges"), (marginals, "marginals")):
        if asked:
            yield RuleError(f"{what}: {SUMS}; remove them, or {instead}", "publish")
