"""What a release promises, for whoever answers for it: in words, with the numbers of its plan.

The claim itself and what it rests on are `privacy.planning.statement`'s; here they are explained.
"""

import math
from collections.abc import Sequence

from pipelines.reports.plan_report import series_document, series_text
from pipelines.spec.durations import duration_text
from pipelines.spec.load import Spec
from privacy.constraint import AtOnce, ByClass, Constraint, Within
from privacy.planning.plan import Plan
from privacy.planning.statement import extent
from privacy.protection import Span
from privacy.upward import shown
from transforms.aggregation.queries import Query

NOT_PROTECTED = (
    "What is true of people in general: that many were in hospital says something about each, whether in the data or "
    "not.",
    "Groups: what two people have in common, a family or a company, is protected with twice epsilon, and so on, unless "
    "the group is the unit.",
    "What is known from elsewhere, and what other releases about the same people say: their budgets add up.",
    "That the release exists, its spec, when and how long it runs, and whether it fails.",
    "The private folder of the release and the exact data, which hold everything.",
)


def who(spec: Spec) -> str:
    """The unit, as the spec has it."""
    entry = f"one value of {spec.changelog.source.entry}"
    if spec.privacy.owner is None:
        return f"One entry ({entry}): one row of the database, with all that ever happens to it."
    return f"One {spec.privacy.owner}, with all of their entries ({entry} each) and all that ever happens to these."


def what(spec: Spec) -> str:
    """What of the unit is protected."""
    protects = spec.privacy.protects
    if isinstance(protects, Span) and protects.near:
        return (
            f"For ever, {extent(protects)}. That the unit is there at all, and all else about it, is NOT hidden. What "
            "is further, or lasts longer, is protected less: epsilon is counted once for each such distance and time."
        )
    if isinstance(protects, Span):
        return (
            f"For ever, {extent(protects)}, compared with not being there in that time. What lasts longer is "
            "protected less: epsilon is counted once for each such time that it lasts."
        )
    return (
        "Whether the unit is in the data at all, and so everything about it: what it is, when it came, how it changed "
        "and when it left."
    )


def how_well(plan: Plan) -> list[str]:
    """Epsilon and delta, explained."""
    epsilon, delta = plan.budget.epsilon, plan.budget.delta
    said = [
        f"Epsilon is {shown(epsilon)} and delta is {shown(delta)}, for everything together: all queries, windows and "
        "cells that are published, and all that are still to come.",
        f"Whatever is published, it would have been published with nearly the same probability {_otherwise(plan)}: "
        f"{likelihood(epsilon, delta)}",
    ]
    if not delta and not isinstance(plan.protects, Span):
        said.append(
            "So whoever thinks it as likely as not that somebody is in the data, and knows everything about everybody "
            f"else, can be {sure(epsilon)} sure at most after reading all of it."
        )
    return said


def likelihood(epsilon: float, delta: float) -> str:
    """How far two probabilities may differ, as the end of a sentence."""
    factor = math.exp(epsilon) if epsilon < 500 else math.inf
    besides = f", but for a probability of {shown(delta)}" if delta else ""
    return f"with one that differs by a factor of at most {_rough(factor)}{besides}."


def sure(epsilon: float) -> str:
    """How sure somebody can be at most, without delta, for whom two things were as likely before."""
    return _percent(1 / (1 + math.exp(-epsilon)) if epsilon < 500 else 1.0)


def _otherwise(plan: Plan) -> str:
    """What the unit is compared with."""
    protects = plan.protects
    if isinstance(protects, Span) and protects.near:
        return "if the unit had been elsewhere in one such time, as near as that"
    return "if the unit had not been there in one such time" if isinstance(protects, Span) else "without the unit"


def bound(constraint: Constraint, spec: Spec) -> str:
    """What a unit may contribute, which is enforced."""
    if isinstance(constraint, ByClass):
        each = "; ".join(f"{name}: {bound(part, spec)}" for name, part in constraint.classes)
        return f"By {constraint.column} of a unit's first state: {each} Units of other classes contribute nothing."
    if isinstance(constraint, AtOnce):
        counted = f"At the end of each window at most {constraint.entries} of a unit's entries count."
        return f"{counted} {_held_back(constraint)}"
    if isinstance(constraint, Within):
        return (
            f"Changes of a unit count for {duration_text(constraint.span)} after its first one. Later ones are cut off."
        )
    changes = "1 change" if constraint.changes == 1 else f"{constraint.changes} changes"
    at_once = f", and only while at most {constraint.entries} of its entries are there" if constraint.entries else ""
    return f"No more than {changes} of a unit can count for each query{at_once}. Later ones are cut off."


def _held_back(constraint: AtOnce) -> str:
    if constraint.changes is None or constraint.block is None:
        return "None of their changes is cut off."
    return (
        f"In each {duration_text(constraint.block)} at most {constraint.changes} changes of a unit count, what it "
        "changes in one window being one. What goes beyond is held back until that time ends."
    )


def movements(plan: Plan) -> list[tuple[str, str, str, str]]:
    """For each part of each query: its name, and how far one unit can move the sums beside the noise on each.

    In units of the largest that a state can add to a sum.
    """
    rows = []
    for released in plan.released:
        demand = plan.demands[released.query]
        kinds = ", ".join(series_text(series_document(series, plan)) for series in released.series)
        component = demand.measure.components[0]
        deviation = released.noise[0].variance ** 0.5 / component.largest
        rows.append(
            (
                f"{demand.name}: {kinds}",
                shown(released.sensitivity.l1, 4),
                shown(released.sensitivity.l2, 4),
                f"{deviation:.4g}",
            )
        )
    for part in plan.adaptive:
        rows.append((f"{plan.demands[part.query].name}: level", "-", "-", f"{part.deviation:.4g}"))
    return rows


def measured(query: Query, spec: Spec) -> str:
    """What a query counts, in a sentence."""
    owner = query.measure.kind.replace("_", " ")
    what_ = "Count of entries" if query.column is None else f"{owner.capitalize()} of {query.column} over entries"
    where = "" if query.where is None else f" where {query.where.text}"
    bounds = "" if query.column is None else f", each value cut to {query.measure.low:g} to {query.measure.high:g}"
    by = "" if not query.by else f", by {_listed([key for key, _ in query.by])}"
    return f"{what_}{where}{bounds}{by}. Windows of {spec.schedule.length}."


def _listed(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _rough(factor: float) -> str:
    """Rounded up, so that nobody is promised more.

    >>> _rough(2.7182), _rough(1e9)
    ('2.72', '1000000000')
    """
    if not math.isfinite(factor):
        return "any number"
    return f"{math.ceil(factor * 100) / 100:g}" if factor < 1000 else f"{math.ceil(factor)}"


def _percent(share: float) -> str:
    """Rounded up.

    >>> _percent(0.7311)
    '74 %'
    """
    return f"{math.ceil(share * 100)} %" if share < 0.99 else f"{math.ceil(share * 10_000) / 100:g} %"
