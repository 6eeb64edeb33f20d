"""Rules of adaptive publication, each defined once, for plans made in Python and for specs.

Paths start at a query of the spec.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from privacy.adaptive.base import SAMPLED, AdaptiveTerms, Period, Policy
from privacy.adaptive.table import POLICIES, RULES
from privacy.cells.table import SKETCHERS, sketcher_class
from privacy.columns import Column
from privacy.noise.kinds import NOISE, Accounting, Mechanism
from privacy.planning.demand import Demand
from privacy.planning.promise import Promise
from privacy.problems import RuleError
from privacy.series import Series


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptiveQuery:
    """Properties of a query on which adaptive publication depends.

    Attributes:
        name: name of the query.
        cells: number of its cells.
        over: whether samples are made with sums over cells.
        levels: whether it publishes levels and nothing else.
        ratio: whether its numbers are ratios.
    """

    name: str
    cells: int
    over: bool
    levels: bool
    ratio: bool

    @classmethod
    def of(cls, demand: Demand) -> "AdaptiveQuery":
        """Return these properties of a demand."""
        return cls(
            name=demand.name,
            cells=demand.cells,
            over=demand.over.asks,
            levels=demand.series == (Series(kind="level"),),
            ratio=len(demand.measure.components) > 1,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Properties of a release on which adaptive publication depends.

    Attributes:
        period: windows that the budget is for; None: everything is protected, and the release has no end.
        near: whether only the place of a unit is protected.
        renewed: whether the changes of a unit are bounded in blocks of time.
        mechanism: the kind of noise; `auto` for any.
        accounting: how parts are composed; None for the default.
        weighted: whether the budget is split by weights.
    """

    period: Period | None
    near: bool
    renewed: bool
    mechanism: Mechanism | Literal["auto"]
    accounting: Accounting | None
    weighted: bool

    @classmethod
    def of(cls, promise: Promise, mechanism: Mechanism, accounting: Accounting, *, weighted: bool) -> "Setting":
        """Return these properties of a promise and of the noise of a plan.

        Args:
            promise: promise of the release.
            mechanism: kind of noise.
            accounting: how parts are composed.
            weighted: whether the budget is split by weights.
        """
        endless = promise.span is None and promise.windows is None
        return cls(
            period=None if endless else period_of(promise),
            near=promise.near,
            renewed=promise.renewed,
            mechanism=mechanism,
            accounting=accounting,
            weighted=weighted,
        )


def period_of(promise: Promise) -> Period:
    """Return the windows that the budget of adaptive publication is for.

    Raises:
        ValueError: everything is protected and the release has no end.
    """
    span = promise.boundaries
    # Levels at the ends of the release's windows, without the initial level.
    return Period(windows=promise.windows) if span is None else Period(span=span)


def adaptive_columns(policy: Policy | type[Policy] | None, over: str) -> tuple[Column, ...]:
    """Return the columns that a query adds to published tables; none if a strategy publishes all windows."""
    return () if policy is None else (SAMPLED, *policy.columns, *sketcher_class(over).columns)


EVERY_COLUMN: tuple[Column, ...] = (
    SAMPLED,
    *(column for policy in POLICIES.values() for column in policy.columns),
    *(column for sketcher in SKETCHERS.values() for column in sketcher.columns),
)
"""All columns that a policy or sketcher may add to published tables."""


def adaptive_problems(policy: Policy, asked: AdaptiveQuery, setting: Setting) -> Iterator[RuleError]:
    """Yield the reasons why a query cannot be published adaptively.

    Args:
        policy: decides which windows are sampled.
        asked: properties of the query.
        setting: properties of the release.
    """
    if not asked.levels:
        yield RuleError(f"adaptive publishes levels alone; write publish: [level] in query {asked.name}", "strategy")
    if asked.ratio:
        yield RuleError(f"adaptive is for counts and sums; give query {asked.name} another strategy", "strategy")
    for problem in policy.problems(asked.cells, over=asked.over):
        yield RuleError(f"{problem.message} in query {asked.name}", "strategy")
    mechanisms = NOISE if setting.mechanism == "auto" else [setting.mechanism]
    known = [accounting for mechanism in mechanisms for accounting in NOISE[mechanism].adaptively]
    if setting.accounting is not None and setting.accounting not in known:
        use = " or ".join(known)
        message = f"adaptive does not support privacy.accounting {setting.accounting}; use {use}, or leave it out"
        yield RuleError(message, "strategy")
    if RULES[policy.name].pure and not any(NOISE[mechanism].pure for mechanism in mechanisms):
        yield RuleError(f"{policy.name} has Laplace noise; use privacy.mechanism: laplace or auto", "strategy")
    yield from not_at_once(near=setting.near, renewed=setting.renewed)
    if not setting.weighted:
        yield RuleError("the error of adaptive depends on the data; use split: weights", "strategy")
    if setting.period is None:
        message = "adaptive needs a last window; add schedule.until, or privacy.protects: {span: 14d}"
        yield RuleError(message, "strategy")
        return
    try:
        policy.settled(AdaptiveTerms(period=setting.period))
    except RuleError as problem:
        yield problem.below("strategy", "adaptive")


def not_consistent(name: str) -> Iterator[RuleError]:
    """Yield the reason why numbers of an adaptive query cannot be made consistent."""
    yield RuleError(f"adaptive cannot be combined with consistent; remove it from query {name}", "strategy")


def not_at_once(*, near: bool, renewed: bool) -> Iterator[RuleError]:
    """Yield the reasons why neighbours may differ at one time by more than one unit's size.

    Args:
        near: whether only the place of a unit is protected: then it is present in both neighbours.
        renewed: whether changes are bounded in blocks of time: then a deferred change lasts beyond the span.
    """
    if near:
        yield RuleError("adaptive publication protects the presence of a unit; use another strategy")
    if renewed:
        yield RuleError("adaptive needs a unit's current states; remove privacy.constraint.at_most", "strategy")
