"""A plan as a JSON document that is kept with its release: made once, public, and read by every later version.

It holds all that noise was calibrated to, exactly, whatever a later version would plan for the same queries: for each
query its measure with the grid, and its parts with strategy, sensitivity and noise; then the options that were not
taken, for reports, and the guarantee. Numbers that are not whole are hexadecimal text (privacy.exact).

A change that older documents do not know needs a new `VERSION`, and a reader for each version before it.
"""

import hashlib
import json
import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import get_args

from privacy.accounting.accounting import ACCOUNTINGS, Budget, Mechanism
from privacy.adaptive.choice import choice_from_json
from privacy.adaptive.policy import adaptive_from_json
from privacy.adaptive.scales import scales_from_json
from privacy.adaptive.sketch import over_from_json, over_to_json
from privacy.cells.product import Product, product_from_json
from privacy.exact import Json, Members
from privacy.noise.distributions import DiscreteGaussian, DiscreteLaplace, NoiseDistribution
from privacy.planning.adaptive_part import AdaptivePart
from privacy.planning.contribution import Sensitivity
from privacy.planning.demand import Demand
from privacy.planning.demand_document import demand_from_json, demand_to_json, series_from_json, series_to_json
from privacy.planning.plan import ADAPTIVELY, Plan, Released
from privacy.planning.planner import Option, Part
from privacy.planning.terms import constraint_from_json, constraint_to_json, protection_from_json, protection_to_json
from privacy.protection import EVERYTHING
from privacy.series import Family
from privacy.strategies.choice import NAMES
from privacy.strategies.table import strategy_from_json, strategy_to_json

VERSION = 4
"""1 were plans that protect everything that a unit ever does, and did not say so; 2 had no axes and no weights, 3 no
Gaussian noise of what is published adaptively, and no sums over its cells. While 4 was not out, sums over cells stood
in full in every option; now they stand once, and `over_of` says where."""

UNEQUAL = 5
"""Where windows may be of unequal lengths; all others are written as 4."""

MECHANISMS: tuple[Mechanism, ...] = get_args(Mechanism)
FAMILIES: tuple[Family, ...] = get_args(Family)
NOISE: dict[str, type[NoiseDistribution]] = {kind.name: kind for kind in (DiscreteLaplace, DiscreteGaussian)}


def plan_to_json(plan: Plan) -> Json:
    """The document of a plan.

    Raises:
        ValueError: the plan cannot be read back from it as it is.
    """
    document = {
        "version": UNEQUAL if plan.slack else VERSION,
        "claim": plan.claim,
        "conditions": list(plan.conditions),
        "budget": {"epsilon": plan.budget.epsilon.hex(), "delta": float(plan.budget.delta).hex()},
        "mechanism": plan.mechanism,
        "accounting": plan.accounting,
        "share_unit": plan.share_unit,
        "owner": plan.owner,
        "protects": protection_to_json(plan.protects),
        "constraint": constraint_to_json(plan.constraint),
        "window": plan.window,
        **({"slack": plan.slack} if plan.slack else {}),
        "windows": plan.windows,
        "queries": [_query_to_json(plan, place) for place in range(len(plan.demands))],
    }
    if plan_from_json(document) != plan:
        raise ValueError("the plan is not one that its document can hold: its parts are not those of its options")
    return document


def plan_from_json(document: object) -> Plan:
    """The plan of a document.

    Raises:
        ValueError: it is of another version, or a member is missing, unknown or wrong; the message names its place. Or
            this version of the program puts a query's numbers on another grid.
    """
    members = Members(document)
    version = members.take("version")
    if version not in (1, 2, 3, VERSION, UNEQUAL):
        raise ValueError(f"version: not {UNEQUAL}, so it was made by another version of this program; use that one")
    budget = members.of("budget")
    queries = [_query_from_json(query, place) for place, query in enumerate(members.each("queries"))]
    if not queries:
        raise members.wrong("queries", "at least one")
    plan = Plan(
        constraint=constraint_from_json(members.of("constraint")),
        window=members.count("window"),
        windows=members.optional_count("windows"),
        owner=members.flag("owner"),
        protects=EVERYTHING if version == 1 else protection_from_json(members.of("protects")),
        demands=tuple(found.demand for found in queries),
        released=tuple(part for found in queries for part in found.released),
        adaptive=tuple(found.adaptive for found in queries if found.adaptive is not None),
        options=tuple(found.options for found in queries),
        weights=tuple(found.weight for found in queries),
        mechanism=members.word("mechanism", MECHANISMS),
        accounting=members.word("accounting", ACCOUNTINGS),
        budget=Budget(epsilon=budget.number("epsilon"), delta=budget.number("delta")),
        share_unit=members.word("share_unit", ("epsilon", "rho")),
        claim=members.text("claim"),
        conditions=members.texts("conditions"),
        slack=members.positive_count("slack") if version == UNEQUAL else 0,
    )
    budget.end()
    members.end()
    for released in plan.released:
        if any(noise.name != f"discrete_{plan.mechanism}" for noise in released.noise):
            raise ValueError(f"mechanism: {plan.mechanism}, and the noise is another one")
    for part in plan.adaptive:
        if part.scales.noise != plan.mechanism or plan.accounting not in ADAPTIVELY[plan.mechanism]:
            raise ValueError(f"mechanism: {plan.mechanism}, and what is published adaptively is for another one")
    return plan


def digest(plan: Plan) -> str:
    """Of all that noise is sampled by. State that was made under one plan is never used under another.

    It is written into state, so what it is made of stays the same in every version. What a later one adds to it is left
    out where it says what all plans before it meant.
    """
    sampled_by = [
        [
            [demand.name, demand.cells, demand.measure.kind],
            [[c.name, float(c.grid).hex(), c.low, c.high] for c in demand.measure.components],
            [
                [
                    [part.family, part.leaf, [series_to_json(series) for series in part.series]],
                    strategy_to_json(part.strategy, exactly=True),
                    [_noise_to_json(noise) for noise in part.noise],
                    *([] if part.over is None else [part.over.to_json()]),
                ]
                for part in _of_query(plan, place)
            ],
            *([] if (part := plan.adaptive_of(place)) is None else [_policy_to_json(part)]),
        ]
        for place, demand in enumerate(plan.demands)
    ]
    return hashlib.sha256(json.dumps(sampled_by, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Query:
    """One query of a document; without options where the data decide."""

    demand: Demand
    weight: float
    released: tuple[Released, ...] = ()
    adaptive: AdaptivePart | None = None
    options: tuple[Option, ...] = ()


def _query_to_json(plan: Plan, place: int) -> Json:
    demand, part = plan.demands[place], plan.adaptive_of(place)
    asked = {**demand_to_json(demand), "share": plan.weights[place].hex()}
    if part is None or demand.adaptive is None:
        return {**asked, **_options_to_json(plan, place)}
    return {
        **asked,
        "adaptive": {"choice": demand.adaptive.to_json(), **_policy_to_json(part), "share": part.share.hex()},
    }


def _policy_to_json(part: AdaptivePart) -> Json:
    over = {} if part.over is None else {"over": over_to_json(part.over)}
    return {"policy": part.adaptive.to_json(), "scales": part.scales.to_json(), **over}


def _options_to_json(plan: Plan, place: int) -> Json:
    taken, *others = plan.options[place]
    known = list(dict.fromkeys(part.over for part in _of_query(plan, place) if part.over is not None))
    return {
        "option": taken.name,
        "error": _error_to_json(taken.error),
        "parts": [
            {
                **_part_to_json(part, exactly=True),
                "noise": [_noise_to_json(noise) for noise in part.noise],
                "share": part.share.hex(),
                "paper_epsilon": None if part.paper_epsilon is None else part.paper_epsilon.hex(),
            }
            for part in _of_query(plan, place)
        ],
        "others": [
            {
                "option": option.name,
                "error": _error_to_json(option.error),
                "parts": [_other_to_json(part, known) for part in option.parts],
            }
            for option in others
        ],
    }


def _other_to_json(part: Part, known: list[Product]) -> Json:
    """A part of an option that is not taken. Weighted sums over cells are long, and mostly the same in many options.

    Args:
        known: the sums over cells of this query that stand in the document already, each once; what is new is added.
    """
    found = _part_to_json(part, exactly=False)
    if part.over in known:
        found["over_of"] = known.index(part.over)
        del found["over"]
    elif part.over is not None:
        known.append(part.over)
    return found


def _query_from_json(members: Members, place: int) -> _Query:
    """A query's demand, its share of the budget, its parts, and its options with the one that is taken first."""
    asked = members.of("adaptive") if members.has("adaptive") else None
    demand = demand_from_json(members, None if asked is None else choice_from_json(asked.of("choice")))
    weight = members.number("share")
    if asked is not None:
        members.end()
        return _Query(demand=demand, weight=weight, adaptive=_adaptive_from_json(asked, place))
    name, error = members.word("option", NAMES), _error_from_json(members)
    parts, released = [], []
    for each in members.each("parts"):
        part = _part_from_json(each)
        parts.append(part)
        released.append(
            Released(
                query=place,
                family=part.family,
                leaf=part.leaf,
                strategy=part.strategy,
                series=part.series,
                sensitivity=part.sensitivity,
                noise=tuple(_noise_from_json(noise) for noise in each.each("noise")),
                share=each.number("share"),
                paper_epsilon=each.optional_number("paper_epsilon"),
                over=part.over,
            )
        )
        if len(released[-1].noise) != len(demand.measure.components):
            raise each.wrong("noise", f"one for each of {len(demand.measure.components)} components")
        each.end()
    options = [Option(name=name, parts=tuple(parts), error=error)]
    known = list(dict.fromkeys(part.over for part in parts if part.over is not None))
    for other in members.each("others"):
        option = Option(
            name=other.word("option", NAMES),
            error=_error_from_json(other),
            parts=tuple(_other_from_json(part, known) for part in other.each("parts")),
        )
        other.end()
        options.append(option)
    for option in options:
        if Counter(series for part in option.parts for series in part.series) != Counter(demand.series):
            raise members.wrong("parts", "each series of the query once")
    members.end()
    return _Query(demand=demand, weight=weight, released=tuple(released), options=tuple(options))


def _adaptive_from_json(members: Members, place: int) -> AdaptivePart:
    part = AdaptivePart(
        query=place,
        adaptive=adaptive_from_json(members.of("policy")),
        scales=scales_from_json(members.of("scales")),
        share=members.number("share"),
        over=over_from_json(members.of("over")) if members.has("over") else None,
    )
    members.end()
    return part


def _of_query(plan: Plan, place: int) -> tuple[Released, ...]:
    return tuple(part for part in plan.released if part.query == place)


def _part_to_json(part: Part | Released, *, exactly: bool) -> Json:
    return {
        "family": part.family,
        "leaf": part.leaf,
        "series": [series_to_json(series) for series in part.series],
        "strategy": strategy_to_json(part.strategy, exactly=exactly),
        **({} if part.over is None else {"over": part.over.to_json()}),
        "sensitivity": {
            "l1": part.sensitivity.l1.hex(),
            "l2": part.sensitivity.l2.hex(),
            "nodes": part.sensitivity.nodes,
            "node_l1": part.sensitivity.node_l1.hex(),
            "node_l2": part.sensitivity.node_l2.hex(),
            "coordinates": part.sensitivity.coordinates,
        },
    }


def _part_from_json(members: Members) -> Part:
    sensitivity = members.of("sensitivity")
    part = Part(
        family=members.word("family", FAMILIES),
        leaf=members.positive_count("leaf"),
        series=tuple(series_from_json(series) for series in members.each("series")),
        strategy=strategy_from_json(members.of("strategy")),
        over=product_from_json(members.of("over")) if members.has("over") else None,
        sensitivity=Sensitivity(
            l1=sensitivity.number("l1"),
            l2=sensitivity.number("l2"),
            nodes=sensitivity.count("nodes"),
            node_l1=sensitivity.number("node_l1"),
            node_l2=sensitivity.number("node_l2"),
            coordinates=sensitivity.count("coordinates"),
        ),
    )
    sensitivity.end()
    return part


def _other_from_json(members: Members, known: list[Product]) -> Part:
    """As `_other_to_json` writes it, or with its sums over cells in full."""
    part = _part_from_json(members)
    if members.has("over_of"):
        number = members.count("over_of")
        if part.over is not None or not 0 <= number < len(known):
            raise members.wrong("over_of", "the number of sums over cells that stand before it")
        part = replace(part, over=known[number])
    elif part.over is not None and part.over not in known:
        known.append(part.over)
    members.end()
    return part


def _noise_to_json(noise: NoiseDistribution) -> Json:
    return {"kind": noise.name, "scale": noise.scale.hex()}


def _noise_from_json(members: Members) -> NoiseDistribution:
    kind = NOISE[members.word("kind", tuple(NOISE))]
    with members.naming():
        noise = kind(members.number("scale"))
    members.end()
    return noise


def _error_to_json(error: float) -> str | None:
    """None if no number is published."""
    return None if error == math.inf else error.hex()


def _error_from_json(members: Members) -> float:
    error = members.optional_number("error")
    return math.inf if error is None else error
