"""The ledger of a release: how much of its budget is spent after each epoch, by query, and how much is left.

It is computed from the commits of the release, its spec and its plan, and reads no data. The amount spent after an
epoch is the proven cost of everything published until then (privacy.planning.spent). The remaining budget cannot be
used for anything else, because the noise of all future windows was fixed with the first.

It fails closed: it refuses commits that do not follow from each other, or do not belong to this spec and plan.
"""

import math
from collections.abc import Sequence
from datetime import datetime
from fractions import Fraction
from typing import Any

from pipelines.epochs.plans import SAME
from pipelines.spec.load import Spec
from pipelines.spec.times import moment_text
from pipelines.store.commit import Commit
from privacy.planning.plan import Plan
from privacy.planning.spent import Spent, spent, whole
from privacy.planning.statement import protected
from transforms.common.errors import RefusedError


def ledger_document(commits: Sequence[Commit], spec: Spec, plan: Plan) -> dict[str, Any]:
    """Return the ledger as one JSON document.

    Args:
        commits: Commits in the order of their epochs.
        spec: Spec of the release.
        plan: Plan of this spec.

    Returns:
        `protects` states in words what the budget is for. `total`, `spent` and `remaining` are (epsilon, delta). For
        queries they are in the unit in which shares add up, `epsilon` or `rho`; for an epoch they are the amounts spent
        by its end. Differences are computed exactly between the printed decimal numbers, and rounded once.

    Raises:
        RefusedError: The commits are not one release of this spec and plan, or more than the total was spent.
    """
    total = _checked(commits, spec, plan)
    now = Spent(epsilon=0.0, delta=0.0, shares=(0.0,) * len(plan.demands))
    epochs = []
    for number, commit in enumerate(commits, start=1):
        after = spent(plan, commit.windows)
        # A numerical solver has errors up to 1e-11; the spent amount never decreases.
        now = Spent(epsilon=max(now.epsilon, after.epsilon), delta=after.delta, shares=after.shares)
        epochs.append(
            {
                "epoch": number,
                "until": moment_text(commit.until),
                "released": commit.released,
                "windows": commit.windows,
                "committed_at": commit.committed_at,
                "spent": {"epsilon": now.epsilon, "delta": now.delta},
                "queries": [
                    {"name": demand.name, "spent": {plan.share_unit: share}}
                    for demand, share in zip(plan.demands, now.shares, strict=True)
                ],
            }
        )
    return {
        "release": spec.release,
        "spec_sha256": spec.sha256,
        "protects": protected(plan.promise.protects),
        "total": {"epsilon": total.epsilon, "delta": total.delta},
        "spent": {"epsilon": now.epsilon, "delta": now.delta},
        "remaining": {
            "epsilon": _remaining(total.epsilon, now.epsilon, spec),
            "delta": _remaining(total.delta, now.delta, spec),
        },
        "queries": [
            {
                "name": demand.name,
                "total": {plan.share_unit: of_all},
                "spent": {plan.share_unit: of_now},
                "remaining": {plan.share_unit: _remaining(of_all, of_now, spec)},
            }
            for demand, of_all, of_now in zip(plan.demands, total.shares, now.shares, strict=True)
        ],
        "epochs": epochs,
    }


def totals(commits: Sequence[Commit], spec: Spec, plan: Plan) -> tuple[Spent, Spent]:
    """Return the budget that the whole release spends, and the part spent so far. Faster than a ledger with all epochs.

    Args:
        commits, spec, plan: As in `ledger_document`.

    Raises:
        RefusedError: As `ledger_document`.
    """
    total = _checked(commits, spec, plan)
    now = spent(plan, commits[-1].windows if commits else 0)
    _remaining(total.epsilon, now.epsilon, spec)
    return total, now


def _checked(commits: Sequence[Commit], spec: Spec, plan: Plan) -> Spent:
    """Return the budget of the whole release, after checking that its commits, spec and plan belong together."""
    total = whole(plan)
    _remaining(spec.privacy.epsilon, total.epsilon, spec)
    _remaining(spec.privacy.delta, total.delta, spec)
    released = 0
    for number, commit in enumerate(commits, start=1):
        _check(commit, number, released, spec, plan)
        released = commit.windows
    return total


def _check(commit: Commit, number: int, released: int, spec: Spec, plan: Plan) -> None:
    """Refuse a commit that is not epoch `number` of this spec and plan after `released` windows."""
    where = f"release {spec.release!r}, epoch {number}"
    schedule, windows = spec.schedule, commit.windows
    if commit.epoch != number or commit.released != released:
        raise RefusedError(f"{where}: its commit does not follow from the one before it; restore the private folder")
    if commit.spec_sha256 != spec.sha256:
        raise RefusedError(f"{where}: it was released under another spec; use that spec, or a new release")
    fits = released < windows and (plan.promise.windows is None or windows <= plan.promise.windows)
    by_calendar = schedule.calendar is not None  # then each epoch states the ends of its windows
    if not fits or not (by_calendar or commit.until == schedule.start + windows * schedule.every):
        raise RefusedError(f"{where}: its windows do not fit the schedule; restore the private folder")
    epsilon, delta = commit.loss.epsilon, commit.loss.delta
    if not _same(epsilon, plan.budget.epsilon) or not _same(delta, plan.budget.delta):
        raise RefusedError(
            f"{where}: it was released with (epsilon, delta) = ({epsilon}, {delta}) in all, and the plan has "
            f"({plan.budget.epsilon}, {plan.budget.delta}); continue with the version that planned it"
        )
    try:
        moment_text(commit.until)
        datetime.fromisoformat(commit.committed_at)
    except (ValueError, OverflowError):
        raise RefusedError(f"{where}: its commit cannot be understood; restore the private folder") from None


def _same(stated: float, planned: float) -> bool:
    return math.isclose(stated, planned, rel_tol=SAME, abs_tol=0.0)


def _remaining(total: float, spent: float, spec: Spec) -> float:
    """Return the difference of the decimal numbers, which must not be negative."""
    difference = Fraction(repr(total)) - Fraction(repr(spent))
    if difference < 0:
        raise RefusedError(f"release {spec.release!r}: {spent} is spent of {total}; nothing more may be released")
    return float(difference)


def adds_up(plan: Plan) -> bool:
    """Return whether spent and remaining amounts add up to the total; not if each span of time has its own budget."""
    boundaries, windows = plan.promise.boundaries, plan.promise.windows
    return boundaries is None or (windows is not None and boundaries > windows)


def what_remains(document: dict[str, Any], plan: Plan) -> str:
    """Return a sentence about the cost of future windows."""
    separate = "The budget is for each such period separately, so there is no remainder"
    if document["epochs"] and document["epochs"][-1]["windows"] == plan.promise.windows:
        ended = "All windows are published, so nothing more will be spent."
        return ended if adds_up(plan) else f"{ended} {separate}."
    if not adds_up(plan):
        return f"{separate}: future windows spend no more than the total in any such period."
    if not any(document["remaining"].values()):
        return "The whole budget already counts as spent, and future windows cost nothing more."
    return "The remaining budget is for future windows, and for nothing else."
