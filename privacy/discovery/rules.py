"""Rules of queries whose keys are found privately. Paths start at a query of the spec, or at the spec."""

from collections.abc import Iterator
from dataclasses import dataclass

from privacy.problems import RuleError
from privacy.strategies.table import OFFERS

ANY = 2**40
"""Number of keys that plans assume; no bound depends on it, since it is more than a unit's entries."""

MOST_EACH = 1000
"""Most cells of one key: combinations of the listed values of the other keys. A found key publishes all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Properties of a query that finds keys, on which rules depend.

    Attributes:
        cells: number of cells that its plan assumes: `ANY` keys, with the same number of cells each.
        negative: whether it sums values that may be below 0.
        levels: whether it publishes levels.
        strategy: name of its strategy; None if the data decide which windows are published.
        weighted: whether windows have different weights.
        over: whether it has settings for sums over cells.
        consistent: whether its numbers are made consistent.
    """

    cells: int
    negative: bool
    levels: bool
    strategy: str | None
    weighted: bool
    over: bool
    consistent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingTerms:
    """Properties of a release on which the discovery of keys depends.

    Attributes:
        delta: whether the budget has a delta.
        windows: number of windows; None without an end.
        everything: whether everything that a unit ever does is protected.
        near: whether only the place of a unit is protected.
        renewed: whether changes of a unit are bounded in blocks of time.
    """

    delta: bool
    windows: int | None
    everything: bool
    near: bool
    renewed: bool


def query_problems(query: Finding) -> Iterator[RuleError]:
    """Yield why keys of a query cannot be found, with paths relative to the query."""
    if query.cells % ANY:  # fewer cells may have a smaller sensitivity
        yield RuleError(f"any number of keys may be found; a plan assumes {ANY} of them", "by")
    elif query.cells > MOST_EACH * ANY:
        message = f"{query.cells // ANY:,} cells of each found key; at most {MOST_EACH:,}, list fewer values of others"
        yield RuleError(message, "by")
    if query.negative:
        message = "keys are found by sums of values from 0 on; use min: 0, a mean, or list the cells under by"
        yield RuleError(message, "measure")
    if not query.levels:
        yield RuleError("keys are found by levels; write publish: [level], with other numbers if needed", "publish")
    names = ["auto", *(name for name, offer in OFFERS.items() if offer.finds_keys)]
    if query.strategy not in names:
        message = f"keys are found with one of {', '.join(names)}; use one of these, or list the cells under by"
        yield RuleError(message, "strategy")
    elif query.weighted:
        yield RuleError("keys are found with one noise for all windows; remove weights", "strategy")
    if query.over:
        yield RuleError("sums over cells need listed cells; remove it, or list the cells under by", "cells")
    if query.consistent:
        yield RuleError("found keys are published as they are; remove it, or list the cells under by", "consistent")


def release_problems(terms: FindingTerms) -> Iterator[RuleError]:
    """Yield why a release cannot find keys, with paths relative to the spec."""
    if not terms.delta:
        message = "missing; a key that only one unit has may be found with this probability, add delta: 1.0e-9"
        yield RuleError(message, "privacy", "delta")
    if terms.windows is None and terms.everything:
        message = "missing; keys are found in a release with an end, or with privacy.protects: {span: 14d}"
        yield RuleError(message, "schedule", "until")
    if terms.near:
        message = "keys cannot be found if presence is not protected; remove distance, or list the cells under by"
        yield RuleError(message, "privacy", "protects", "distance")
    if terms.renewed:
        message = "keys cannot be found if changes are counted in blocks; remove at_most, or list the cells under by"
        yield RuleError(message, "privacy", "constraint", "at_most")
