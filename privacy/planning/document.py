"""A plan as a JSON document that is kept with its release: made once, public, and read by every later version.

It holds all that noise was calibrated to, exactly, whatever a later version would plan for the same queries: the
promise, and for each query its measure with the grid, and its parts with strategy, sensitivity and noise. What other
strategies would cost is not in it: `privacy.planning.planner` computes that from the plan whenever somebody asks.
"""

import hashlib
import json
from collections import Counter
from dataclasses import dataclass, replace

from privacy.accounting.accounting import Budget
from privacy.cells.along import Along
from privacy.cells.product import KINDS
from privacy.codec import Codec, Json
from privacy.measure import Component
from privacy.noise.kinds import NOISE, Accounting, Mechanism
from privacy.planning.adaptive_part import AdaptivePart
from privacy.planning.demand import Demand
from privacy.planning.plan import Plan, Released
from privacy.planning.promise import Promise
from privacy.strategies.base import Strategy
from privacy.strategies.table import STRATEGIES

VERSION = 1

CODEC = Codec({Strategy: STRATEGIES, Along: KINDS})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Query:
    """One query of a document.

    Attributes:
        components: of the measure, on the grid that sums are on.
        share: of the budget.
        option: the name of the strategy that was taken.
    """

    demand: Demand
    components: tuple[Component, ...]
    share: float
    option: str
    parts: tuple[Released, ...] = ()
    adaptive: AdaptivePart | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Document:
    """A plan, in the order in which people read it."""

    claim: str
    conditions: tuple[str, ...]
    budget: Budget
    mechanism: Mechanism
    accounting: Accounting
    share_unit: str
    promise: Promise
    queries: tuple[_Query, ...]


def plan_to_json(plan: Plan) -> Json:
    """The document of a plan.

    Raises:
        ValueError: the plan cannot be read back from it as it is.
    """
    document = _Document(
        claim=plan.claim,
        conditions=plan.conditions,
        budget=plan.budget,
        mechanism=plan.mechanism,
        accounting=plan.accounting,
        share_unit=plan.share_unit,
        promise=plan.promise,
        queries=tuple(
            _Query(
                demand=demand,
                components=demand.measure.components,
                share=plan.weights[place],
                option=plan.strategies[place],
                parts=_of_query(plan, place),
                adaptive=plan.adaptive_of(place),
            )
            for place, demand in enumerate(plan.demands)
        ),
    )
    found = {"version": VERSION, **CODEC.write(document)}
    if plan_from_json(found) != plan:
        raise ValueError("the plan is not one that its document can hold")
    return found


def plan_from_json(document: object) -> Plan:
    """The plan of a document.

    Raises:
        ValueError: it is of another version, or a member is missing, unknown or wrong; the message names its place. Or
            this version of the program puts a query's numbers on another grid.
    """
    if isinstance(document, dict):
        document = dict(document)
        if document.pop("version", None) != VERSION:
            raise ValueError(f"version: not {VERSION}, so it was made by another version of this program; use that one")
    found: _Document = CODEC.read(_Document, document)
    if not found.queries:
        raise ValueError("queries: expected at least one")
    for place, query in enumerate(found.queries):
        _check(query, place, found)
    return Plan(
        promise=found.promise,
        demands=tuple(query.demand for query in found.queries),
        released=tuple(part for query in found.queries for part in query.parts),
        adaptive=tuple(query.adaptive for query in found.queries if query.adaptive is not None),
        strategies=tuple(query.option for query in found.queries),
        weights=tuple(query.share for query in found.queries),
        mechanism=found.mechanism,
        accounting=found.accounting,
        budget=found.budget,
        share_unit=found.share_unit,
        claim=found.claim,
        conditions=found.conditions,
    )


def digest(plan: Plan) -> str:
    """SHA-256 of all that noise is sampled by. State that was made under one plan is never used under another."""
    sampled_by = [
        [
            [demand.name, demand.cells, CODEC.write(demand.measure), CODEC.write(demand.measure.components)],
            [CODEC.write(replace(part, share=0.0, paper_epsilon=None)) for part in _of_query(plan, place)],
            None if (part := plan.adaptive_of(place)) is None else CODEC.write(replace(part, share=0.0)),
        ]
        for place, demand in enumerate(plan.demands)
    ]
    return hashlib.sha256(json.dumps(sampled_by, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _check(query: _Query, place: int, document: _Document) -> None:
    """
    Raises:
        ValueError: the parts do not fit the query or the plan.
    """
    where, components = f"queries[{place}]", query.demand.measure.components
    adaptive = query.adaptive
    if any(part.query != place for part in query.parts) or (adaptive is not None and adaptive.query != place):
        raise ValueError(f"{where}: a part is of another query")
    if query.components != components:
        raise ValueError(
            f"{where}.components: sums so far are on another grid than this version of the program has for them; go on "
            "with the version that began the release"
        )
    if (adaptive is None) != (query.demand.adaptive is None):
        raise ValueError(f"{where}.adaptive: expected only for a query that is published adaptively")
    if adaptive is not None:
        composed = document.accounting in NOISE[document.mechanism].adaptively
        if adaptive.scales.noise != document.mechanism or not composed:
            raise ValueError(f"mechanism: {document.mechanism}, and what is published adaptively is for another one")
        return
    if Counter(series for part in query.parts for series in part.series) != Counter(query.demand.series):
        raise ValueError(f"{where}.parts: expected each series of the query once")
    for number, part in enumerate(query.parts):
        if len(part.noise) != len(components):
            raise ValueError(f"{where}.parts[{number}].noise: expected one for each of {len(components)} components")
        if any(noise.name != f"discrete_{document.mechanism}" for noise in part.noise):
            raise ValueError(f"mechanism: {document.mechanism}, and the noise is another one")


def _of_query(plan: Plan, place: int) -> tuple[Released, ...]:
    return tuple(part for part in plan.released if part.query == place)
