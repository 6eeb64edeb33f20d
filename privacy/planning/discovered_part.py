"""Part of a release whose keys nobody lists: levels of a strategy, and the threshold from which on a key is shown.

A key is found by its count, or by its sum of values that are not below 0. Means are found by their count.

Noise and sensitivity are those of a linear part: the release behaves as if the strategy ran for every possible key
(docs/proofs/discovery.md). A key is shown from the first window on in which it has an entry and its noisy level is at
least the threshold. If other keys of the query are listed, a key has several cells, and its level is their sum. `delta`
is the probability that a unit that is alone in keys makes one of them be shown; it is added to the delta of the noise.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

from privacy.discovery.rules import ANY, Finding, FindingTerms, query_problems
from privacy.discovery.threshold import LEVEL, Alone, levels_of, refuse_coarse
from privacy.noise.kinds import Accounting, Mechanism
from privacy.planning.adaptive_part import entries_at_once
from privacy.planning.demand import Demand
from privacy.planning.linear_part import LinearDraft, LinearPart
from privacy.planning.part import Calibrated
from privacy.planning.promise import Promise
from privacy.planning.statement import UNPROVED_KEYS
from privacy.problems import RuleError, placed
from privacy.series import Series
from privacy.strategies.base import Floats

PREMISE = (
    "Keys of {names} are not listed in advance: a key is listed once its noisy count or sum reaches a threshold. So a "
    "key with the entries of one unit alone is listed with a probability of at most the delta of discovery."
)
"""Sentence of the statement about queries that find keys."""

UNSUMMED = (
    "its keys are listed if their noisy count was large, so that a sum over them is too large on average; for a total, "
    "add a query without by"
)
"""Why the error of a sum over found keys is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoveredDraft(LinearDraft):
    """Part of a query before its noise is calibrated; other attributes as of `LinearDraft`.

    Attributes:
        promise: promise of the release.
        delta: probability for the threshold.
    """

    promise: Promise
    delta: float

    def calibrated(self, noise: Calibrated) -> "DiscoveredPart":
        """Return the part with its noise and its threshold."""
        part = LinearDraft.calibrated(self, noise)
        with placed("queries", self.demand.name):
            refuse_coarse(part.strategy, self.promise.windows or 1, self.demand.measure.components[0].largest)
            threshold = alone_in_keys(part, self.demand, self.promise).threshold(self.delta)
        return DiscoveredPart(**_members(part), cells=self.demand.cells // ANY, threshold=threshold, delta=self.delta)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventsDraft(LinearDraft):
    """Part with `entered` or `left` of a query whose keys are found, before its noise is calibrated."""

    def calibrated(self, noise: Calibrated) -> "EventsPart":
        """Return the part with its noise."""
        return EventsPart(**_members(LinearDraft.calibrated(self, noise)))


@dataclass(frozen=True, slots=True, kw_only=True)
class PartOfFoundKeys(LinearPart):
    """Part of a query whose keys are found; attributes as of `LinearPart`."""

    @property
    def together(self) -> bool:
        return True

    @property
    def unsummed(self) -> str | None:
        return UNSUMMED

    def total_errors(self, series: Series, numbers: int, cells: int, sampled: Sequence[bool]) -> Floats | None:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class EventsPart(PartOfFoundKeys):
    """Part with `entered` or `left` of keys that the part with their levels finds; attributes as of `LinearPart`."""

    def refuse(self, demand: Demand, mechanism: Mechanism, accounting: Accounting) -> None:
        """Refuse a demand or settings of a plan that the part does not fit (`Part.refuse`)."""
        if not demand.discover or self.family == "net":
            raise ValueError("expected only for entered and left of a query whose keys are found")
        LinearPart.refuse(self, demand, mechanism, accounting)


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoveredPart(PartOfFoundKeys):
    """One part of one query whose keys are found; other attributes as of `LinearPart`.

    Attributes:
        cells: number of cells of each key: one for each combination of the values of other keys.
        threshold: noisy level of all cells of a key from which on it is found, in grid steps.
        delta: probability that a unit that is alone in keys makes one of them be found.
    """

    cells: int
    threshold: int
    delta: float

    def found(self, demand: Demand, promise: Promise) -> dict[str, float]:
        """Return the threshold, its delta, and the entries with which a key is found in one window, for reports.

        If keys are found by sums, these are entries with the largest value.

        Args:
            demand: demand of its query.
            promise: promise of the release.
        """
        alone, grid = alone_in_keys(self, demand, promise), demand.measure.components[0].grid
        return {
            "cells": self.cells,
            "sum": demand.measure.kind == "sum",
            "threshold": self.threshold * grid,
            "entries_50": alone.needed(self.threshold, 0.5),
            "entries_95": alone.needed(self.threshold, 0.95),
            "delta": self.delta,
        }

    def conditions(self, name: str, mechanism: Mechanism) -> tuple[tuple[str, str], ...]:
        """Return the premises of the linear part, and what the discovery of keys reveals."""
        found = LinearPart.conditions(self, name, mechanism)
        if not found and not self.strategy.summed_levels:
            found = ((UNPROVED_KEYS, f"query {name} ({self.strategy.variant})"),)
        return (*found, (PREMISE, f"query {name}"))

    def refuse(self, demand: Demand, mechanism: Mechanism, accounting: Accounting) -> None:
        """Refuse a demand or settings of a plan that the part does not fit (`Part.refuse`)."""
        if not demand.discover or demand.cells != self.cells * ANY:
            raise ValueError("expected only for a query whose keys are found, with the same cells of each")
        LinearPart.refuse(self, demand, mechanism, accounting)


def _members(part: LinearPart) -> dict[str, Any]:
    return {one.name: getattr(part, one.name) for one in fields(LinearPart)}


FoundParts = tuple[DiscoveredPart, *tuple[LinearPart, ...]]
"""All parts of a query whose keys are found: the one with the levels, then those with `entered` and `left`."""


def alone_in_keys(part: LinearPart, demand: Demand, promise: Promise) -> Alone:
    """Return the facts on which the threshold of a part depends.

    Args:
        part: the part, with its noise.
        demand: demand of its query.
        promise: promise of the release.
    """
    component = demand.measure.components[0]  # the count, also of a mean; or the sum
    return Alone(
        noise=part.noise[0],
        cells=demand.cells // ANY,
        levels=levels_of(part.strategy, promise.windows, promise.boundaries),
        summed=part.strategy.summed_levels,
        entries=entries_at_once(promise),
        distinct=demand.measure.distinct,
        step=component.largest,
    )


def finding_problems(demand: Demand) -> Iterator[RuleError]:
    """Yield why keys of a query cannot be found, with paths relative to the query."""
    choice = demand.choice
    return query_problems(
        Finding(
            cells=demand.cells,
            negative=demand.measure.kind == "sum" and demand.measure.low < 0,
            levels=LEVEL in demand.series,
            strategy=None if demand.adaptive is not None else choice.name,
            weighted=choice.weights is not None,
            over=demand.over.asks or bool(demand.axes),
        )
    )


def finding_terms(promise: Promise, delta: float) -> FindingTerms:
    """Return the properties of a release on which the discovery of keys depends.

    Args:
        promise: promise of the release.
        delta: delta of its budget.
    """
    return FindingTerms(
        delta=delta > 0,
        windows=promise.windows,
        everything=promise.span is None,
        near=promise.near,
        renewed=promise.renewed,
    )
