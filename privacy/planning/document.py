"""JSON document of a plan, stored with its release: made once, public, and read by every later version.

It holds exactly all values to which noise was calibrated, independent of what a later version would plan for the same
queries: the promise, and for each query its measure with the grid, and its parts with strategy, sensitivity and noise.
It does not hold the errors of other strategies: `privacy.planning.planner` computes these from the plan on request.
"""

from collections import Counter
from dataclasses import dataclass

from privacy.accounting.accounting import Budget
from privacy.adaptive.base import Policy, Rule
from privacy.adaptive.table import POLICIES, RULES
from privacy.cells.base import Along, Sketcher
from privacy.cells.table import ALONG, SKETCHERS
from privacy.codec import Codec
from privacy.json_values import Json, digest_of
from privacy.measure import Component
from privacy.noise.kinds import Accounting, Mechanism
from privacy.planning.adaptive_part import AdaptivePart
from privacy.planning.demand import Demand
from privacy.planning.discovered_part import DiscoveredPart, EventsPart
from privacy.planning.linear_part import LinearPart
from privacy.planning.part import Part
from privacy.planning.plan import Plan
from privacy.planning.promise import Promise
from privacy.problems import placed
from privacy.strategies.base import Strategy
from privacy.strategies.table import STRATEGIES

VERSION = 1

PARTS: dict[str, type[Part]] = {
    "linear": LinearPart,
    "adaptive": AdaptivePart,
    "discovered": DiscoveredPart,
    "events": EventsPart,
}

CODEC = Codec(
    {
        Part: PARTS,
        Strategy: STRATEGIES,
        Along: ALONG,
        Policy: POLICIES,
        Rule: RULES,
        Sketcher: SKETCHERS,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Query:
    """One query of a document.

    Attributes:
        components: components of the measure, on the grid of its sums.
        share: share of the budget.
        option: name of the chosen strategy.
    """

    demand: Demand
    components: tuple[Component, ...]
    share: float
    option: str
    parts: tuple[Part, ...]


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
    """Return the document of a plan.

    Raises:
        ValueError: the document would not give back the same plan.
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
                parts=plan.of_query(place),
            )
            for place, demand in enumerate(plan.demands)
        ),
    )
    found = CODEC.dump(document, version=VERSION)
    if plan_from_json(found) != plan:
        raise ValueError("the plan is not one that its document can hold")
    return found


def plan_from_json(document: object) -> Plan:
    """Return the plan of a document.

    Raises:
        ValueError: the version differs, or a member is missing, unknown or wrong; the message names its place. Or this
            version of the program uses another grid for a query.
    """
    found: _Document = CODEC.load(_Document, document, version=VERSION)
    if not found.queries:
        raise ValueError("queries: expected at least one")
    for place, query in enumerate(found.queries):
        _check(query, place, found)
    return Plan(
        promise=found.promise,
        demands=tuple(query.demand for query in found.queries),
        parts=tuple(part for query in found.queries for part in query.parts),
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
    """Return the SHA-256 of all values that determine noise. State of one plan is never used under another."""
    sampled_by = [
        [
            [demand.name, demand.cells, CODEC.write(demand.measure), CODEC.write(demand.measure.components)],
            [_noise(part) for part in plan.of_query(place)],
        ]
        for place, demand in enumerate(plan.demands)
    ]
    return digest_of(sampled_by)


def _noise(part: Part) -> Json:
    """Return the document of a part, without members that do not affect its noise."""
    written: Json = CODEC.write(part)
    return {name: value for name, value in written.items() if name not in ("share", "paper_epsilon")}


def _check(query: _Query, place: int, document: _Document) -> None:
    """Refuse parts that do not fit the query or the plan.

    Raises:
        ValueError: the message names the place.
    """
    where = f"queries[{place}]"
    if any(part.query != place for part in query.parts):
        raise ValueError(f"{where}: a part belongs to another query")
    if query.components != query.demand.measure.components:
        raise ValueError(
            f"{where}.components: sums so far are on another grid than this version of the program uses; continue with "
            "the version that began the release"
        )
    if Counter(series for part in query.parts for series in part.series) != Counter(query.demand.series):
        raise ValueError(f"{where}.parts: expected each series of the query once")
    for number, part in enumerate(query.parts):
        with placed(f"{where}.parts[{number}]"):
            part.refuse(query.demand, document.mechanism, document.accounting)
