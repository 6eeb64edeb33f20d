"""The plan of a release: made once, without data, committed and published with the first epoch, and read from then on.

`plan.json` holds it (privacy.planning.document), with the name of the release and the digest of its spec. Later epochs
and reports use the plan in the first commit record, where every change is noticed. A public plan that is lost or
changed is restored from it.
"""

from collections.abc import Sequence
from dataclasses import replace

from pipelines.spec.document import document_of
from pipelines.spec.durations import duration_text
from pipelines.spec.errors import name_of
from pipelines.spec.load import Spec
from pipelines.store.commit import Commit
from pipelines.store.kept_plan import KeptPlan, read_plan
from privacy.accounting.accounting import Budget
from privacy.planning.demand import Demand
from privacy.planning.make_plan import make_plan
from privacy.planning.plan import Plan
from privacy.planning.promise import Promise
from privacy.planning.spent import covered, proved
from privacy.problems import RuleError
from privacy.upward import shown
from transforms.common.errors import RefusedError, SpecError
from transforms.sources.inspection import rests_on

SAME = 1e-9
"""Largest relative difference of an epsilon or delta between different versions of the numerical libraries."""


def plan_of(spec: Spec) -> Plan:
    """Return the plan with which a release of this spec begins; reads no data."""
    try:
        plan = make_plan(
            _demands(spec),
            spec.promise,
            budget=Budget(epsilon=spec.privacy.epsilon, delta=spec.privacy.delta),
            mechanism=spec.privacy.mechanism,
            accounting=spec.privacy.accounting,
            split=spec.privacy.split,
            adaptive_data=spec.privacy.adaptive_data,
        )
    except ValueError as error:
        raise SpecError(_in_spec(error, spec)) from None
    return replace(plan, conditions=(*plan.conditions, *rests_on(spec.changelog.source), *_of_events(spec)))


def _in_spec(error: ValueError, spec: Spec) -> str:
    """Return the message with file, line and key; without a line if it concerns no single query.

    A query whose strategy is refused, and that has none itself, has the strategy of the spec.
    """
    names = [query.name for query in spec.queries]
    match error:
        case RuleError(path=("queries", str(name), *below)) if name in names:
            document, place = document_of(str(spec.path), spec.text), ("queries", names.index(name), *below)
            if below[:1] == ["strategy"] and place[:3] not in document.lines:
                place = (*below,)
            return f"{spec.path}:{document.line(place)}: {name_of(place)}: {error.message}"
    return f"{spec.path}: {error}"


def _of_events(spec: Spec) -> tuple[str, ...]:
    """Return what a span protects of the events of a log, as a sentence: states outlast their events."""
    expires, span = spec.changelog.source.expires, spec.privacy.protects.span
    if expires is None or span is None:
        return ()
    state, length = duration_text(expires), duration_text(span.length)
    if span.length <= expires:
        return (f"An event changes states for {state}, so a span of {length} protects no event as a whole.",)
    whole = duration_text(span.length - expires)
    return (f"An event changes states for {state}, so a span of {length} protects all events of any {whole}.",)


def plan_for(spec: Spec, commits: Sequence[Commit]) -> Plan:
    """Return the committed plan if the commits are of this spec, else the plan with which a release begins.

    Raises:
        RefusedError: As `committed_plan`.
    """
    return committed_plan(spec, commits) if has_begun(spec, commits) else plan_of(spec)


def has_begun(spec: Spec, commits: Sequence[Commit]) -> bool:
    """Return whether the commits are of a release of this spec, and not of another one in its folders."""
    return bool(commits) and commits[0].spec_sha256 == spec.sha256


def plan_json(spec: Spec, plan: Plan) -> str:
    """Return the content of `plan.json`, as it is committed and published."""
    return KeptPlan(spec.release, spec.sha256, plan).to_text()


def committed_plan(spec: Spec, commits: Sequence[Commit]) -> Plan:
    """Return the plan of a release that has begun with this spec, even if today's plan would be another one.

    Raises:
        RefusedError: The plan cannot be understood, does not fit the spec, or this version of the program proves less
            for its noise than the release claims.
    """
    first = commits[0]
    where = f"the plan of release {first.release!r}, in the record of epoch 1 and in plan.json"
    try:
        kept = read_plan(first.plan)
        if (kept.release, kept.spec_sha256) != (first.release, first.spec_sha256):
            raise ValueError("release, spec_sha256: of another release")
        plan = kept.plan
    except (ValueError, RecursionError) as error:
        raise RefusedError(
            f"{where}: {error}; use the version of the program that began the release, or restore the private folder "
            "from a copy"
        ) from None
    if not is_for(plan, spec):
        raise RefusedError(
            f"{where}: it is for other queries, windows or privacy than this version of the program reads in the spec; "
            "continue with the version that began the release"
        )
    _refuse_unproved(plan, where)
    return plan


def is_for(plan: Plan, spec: Spec) -> bool:
    """Return whether a plan is for the numbers, windows and privacy of a spec; strategies are not compared."""

    def asked(demand: Demand) -> object:
        measure = replace(demand.measure, fine=False)
        return demand.name, measure, demand.cells, demand.axes, demand.apart, demand.series, demand.adaptive

    return (
        [asked(demand) for demand in plan.demands] == [asked(demand) for demand in _demands(spec)]
        and _enforced(plan.promise, spec) == _enforced(spec.promise, spec)
        and plan.budget.epsilon <= spec.privacy.epsilon
        and plan.budget.delta <= spec.privacy.delta
    )


def _refuse_unproved(plan: Plan, where: str) -> None:
    """Refuse to add to a release whose claim this version of the program cannot prove."""
    try:
        epsilon = None if covered(plan, plan.budget.epsilon * (1 + SAME)) else proved(plan)
    except (ValueError, ArithmeticError, RuntimeError) as error:  # an invalid sensitivity, or a solver that fails
        raise RefusedError(
            f"{where}: this version of the program cannot prove what the release claims ({error}); continue with the "
            "version that began the release"
        ) from None
    if epsilon is not None:
        raise RefusedError(
            f"{where}: this version of the program proves epsilon {shown(epsilon)} for its noise, and the release "
            f"claims {shown(plan.budget.epsilon)}; see CHANGELOG.md for what was found, and whether to end the release"
        )


def _enforced(promise: Promise, spec: Spec) -> object:
    """Return the part of a promise that plan and spec must share; lengths may differ with today's calendar."""
    constraint: object = promise.constraint
    if spec.schedule.calendar is not None and (at_once := promise.constraint.at_once) is not None:
        constraint = at_once.entries, at_once.changes
    return constraint, promise.window, promise.windows, promise.owner, promise.protects


def _demands(spec: Spec) -> list[Demand]:
    return [query.demand for query in spec.queries]
