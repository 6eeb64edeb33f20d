"""The plan of a release: made once, without data, committed and published with the first epoch, and read ever after.

`plan.json` holds it (privacy.planning.document), with the release's name and the digest of its spec. What later epochs
and reports go by is the one in the first commit record: nobody can change that without being noticed, and a public one
that is lost or changed is put back.
"""

from collections.abc import Sequence
from dataclasses import replace

from pipelines.spec.load import Spec
from pipelines.store.commit import Commit
from pipelines.store.kept_plan import KeptPlan, read_plan
from privacy.accounting.accounting import Budget
from privacy.constraint import AtOnce
from privacy.planning.demand import Demand
from privacy.planning.make_plan import make_plan
from privacy.planning.plan import Plan
from privacy.planning.promise import Promise
from privacy.planning.spent import covered, proved
from privacy.upward import shown
from transforms.common.errors import RefusedError, SpecError

SAME = 1e-9
"""Relative difference of two proofs of one epsilon or delta, by different versions of the numerical libraries."""


def plan_of(spec: Spec) -> Plan:
    """The plan that a release of this spec begins with; reads no data."""
    try:
        return make_plan(
            _demands(spec),
            spec.promise,
            budget=Budget(epsilon=spec.privacy.epsilon, delta=spec.privacy.delta),
            mechanism=spec.privacy.mechanism,
            accounting=spec.privacy.accounting,
            split=spec.privacy.split,
            adaptive_data=spec.privacy.adaptive_data,
        )
    except ValueError as error:
        raise SpecError(f"{spec.path}: {error}") from None


def plan_for(spec: Spec, commits: Sequence[Commit]) -> Plan:
    """The plan of the release with these commits if it is of this spec, else the one that a release begins with.

    Raises:
        RefusedError: as `committed_plan`.
    """
    return committed_plan(spec, commits) if has_begun(spec, commits) else plan_of(spec)


def has_begun(spec: Spec, commits: Sequence[Commit]) -> bool:
    """Whether commits are of a release of this spec, and not of another one in its folders."""
    return bool(commits) and commits[0].spec_sha256 == spec.sha256


def plan_json(spec: Spec, plan: Plan) -> str:
    """What is committed and published as `plan.json`."""
    return KeptPlan(spec.release, spec.sha256, plan).to_text()


def committed_plan(spec: Spec, commits: Sequence[Commit]) -> Plan:
    """The plan of a release that has begun with this spec: whatever would be planned today.

    Raises:
        RefusedError: it cannot be understood, it is not for what the spec asks, or this version of the program proves
            less for its noise than the release claims.
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
            "go on with the version that began the release"
        )
    _refuse_unproved(plan, where)
    return plan


def is_for(plan: Plan, spec: Spec) -> bool:
    """Whether a plan is for what a spec asks; by what strategies is not asked."""

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
    """Nothing is added to a release whose claim does not hold, as far as this version can prove."""
    try:
        epsilon = None if covered(plan, plan.budget.epsilon * (1 + SAME)) else proved(plan)
    except (ValueError, ArithmeticError, RuntimeError) as error:  # a sensitivity that is none, or a solver that fails
        raise RefusedError(
            f"{where}: this version of the program cannot prove what the release claims ({error}); go on with the "
            "version that began the release"
        ) from None
    if epsilon is not None:
        raise RefusedError(
            f"{where}: this version of the program proves epsilon {shown(epsilon)} for its noise, and the release "
            f"claims {shown(plan.budget.epsilon)}; see CHANGELOG.md for what was found, and whether to end the release"
        )


def _enforced(promise: Promise, spec: Spec) -> object:
    """What the plan and the spec must agree on; today's calendar may give blocks and windows other lengths."""
    constraint: object = promise.constraint
    if spec.schedule.calendar is not None and isinstance(promise.constraint, AtOnce):
        constraint = promise.constraint.entries, promise.constraint.changes
    return constraint, promise.window, promise.windows, promise.owner, promise.protects


def _demands(spec: Spec) -> list[Demand]:
    return [query.demand for query in spec.queries]
