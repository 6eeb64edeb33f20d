"""The ledger of a release: how much of its budget is spent after each epoch, by query, and how much is left.

It is made from the commits of the release, its spec and its plan, and from no data. What is spent after an epoch is
what is proved of everything published until then (privacy.planning.spent), not a part of a budget that could be used
for anything else: the noise of all windows to come was fixed with the first.

It fails closed: commits that do not follow from each other, or not from this spec and plan, make no ledger.
"""

import argparse
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from pipelines.epochs.failures import reading_folders
from pipelines.epochs.flags import refuse_any
from pipelines.epochs.plans import SAME, plan_for
from pipelines.epochs.results import Result
from pipelines.epochs.settled import refuse_another
from pipelines.reports.other_promises import beside, ledger_of_devices, ledger_of_records, records_ledger, text_of
from pipelines.reports.published import naming, published
from pipelines.sanitised.published import records_at
from pipelines.spec.document import read_document
from pipelines.spec.kinds import kind_of
from pipelines.spec.load import Spec, load
from pipelines.spec.times import moment_text
from pipelines.store.folder import is_folder
from pipelines.store.known_releases import known
from pipelines.store.store import Store
from privacy.counted import up_to
from privacy.planning.plan import Plan
from privacy.planning.spent import Spent, spent, whole
from privacy.planning.statement import protected
from privacy.upward import shown
from transforms.common.cloud import refuse_unreachable
from transforms.common.errors import RefusedError

_RESTS = "Epsilon and delta rest on what the statement says."


def ledger(arguments: argparse.Namespace, flags: list[str]) -> Result:
    refuse_any(flags, "ledger")
    if is_folder(arguments.spec):
        return _of_public(arguments.spec)
    match kind_of(read_document(Path(arguments.spec)).content):
        case "records":
            return ledger_of_records(arguments.spec)
        case "devices":
            return ledger_of_devices(arguments.spec)
    spec = load(arguments.spec)
    refuse_unreachable(spec.output.folders)
    with reading_folders(spec):
        history = Store(spec.output.public, spec.output.private).open()
    if history is not None:
        refuse_another(spec, history.commits)
    plan = plan_for(spec, () if history is None else history.commits)
    document = ledger_document([] if history is None else [asdict(c) for c in history.commits], spec, plan)
    together = known(spec)
    apart, unread = beside(spec.path, spec.changelog.source)
    text = [
        ledger_text(document, plan),
        f"{_RESTS} {plan.conditions[0]}",
        *(["", together.text(begun=history is not None)] if together.others or together.unread else []),
        *(["", *text_of(apart, unread, plan.promise.protects)] if apart or unread else []),
    ]
    return {
        **document,
        "statement": plan.statement,
        "together": together.document(begun=history is not None),
        "apart": [promise.document() for promise in apart],
    }, "\n".join(text)


def _of_public(folder: str) -> Result:
    """From a public folder alone: other releases about the same people are unknown."""
    records = records_at(folder)
    if records is not None:
        return records_ledger(records.release, records.spec_sha256, records.record, records.commits)
    release = published(folder)
    with naming(folder):
        document = ledger_document(release.epochs, release.spec, release.plan)
    text = f"{ledger_text(document, release.plan)}\n{_RESTS} {release.plan.conditions[0]}"
    return {**document, "statement": release.plan.statement}, text


def ledger_document(commits: Sequence[Mapping[str, Any]], spec: Spec, plan: Plan) -> dict[str, Any]:
    """The ledger as one JSON document.

    Args:
        commits: in the order of their epochs; each with `epoch`, `spec_sha256`, `released` and `windows` (how many
            windows had closed before and after it), `until` (the end of the last, microseconds), `committed_at` (ISO
            8601) and `loss` (`epsilon` and `delta` of the whole release). Other members are ignored.
        plan: of this spec.

    Returns:
        `protects` is what all of it is spent on, in words. `total`, `spent` and `remaining` are (epsilon, delta); those
        of queries are in the unit in which shares add up, `epsilon` or `rho`. An epoch's are what was spent by its end.
        Differences are taken between the decimal numbers as they are printed, exactly, and rounded once.

    Raises:
        RefusedError: the commits are not one release of this spec and plan, or more was spent than its total.
    """
    total = _checked(commits, spec, plan)
    now = Spent(epsilon=0.0, delta=0.0, shares=(0.0,) * len(plan.demands))
    epochs = []
    for number, commit in enumerate(commits, start=1):
        after = spent(plan, commit["windows"])
        # A numerical solver may be off by 1e-11; what was spent is never given back.
        now = Spent(epsilon=max(now.epsilon, after.epsilon), delta=after.delta, shares=after.shares)
        epochs.append(
            {
                "epoch": number,
                "until": moment_text(commit["until"]),
                "released": commit["released"],
                "windows": commit["windows"],
                "committed_at": commit["committed_at"],
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


def totals(commits: Sequence[Mapping[str, Any]], spec: Spec, plan: Plan) -> tuple[Spent, Spent]:
    """What the whole release spends, and what is spent by now: the ledger without its epochs, which take their time.

    Args and errors: as of `ledger_document`.
    """
    total = _checked(commits, spec, plan)
    now = spent(plan, commits[-1]["windows"] if commits else 0)
    _remaining(total.epsilon, now.epsilon, spec)
    return total, now


def _checked(commits: Sequence[Mapping[str, Any]], spec: Spec, plan: Plan) -> Spent:
    """What the whole release spends, once it is seen that its commits, spec and plan belong together."""
    total = whole(plan)
    _remaining(spec.privacy.epsilon, total.epsilon, spec)
    _remaining(spec.privacy.delta, total.delta, spec)
    released = 0
    for number, commit in enumerate(commits, start=1):
        _check(commit, number, released, spec, plan)
        released = commit["windows"]
    return total


def _check(commit: Mapping[str, Any], number: int, released: int, spec: Spec, plan: Plan) -> None:
    """Refuse a commit that is not epoch `number` of this spec and plan after `released` windows."""
    where = f"release {spec.release!r}, epoch {number}"
    schedule = spec.schedule
    try:
        if commit["epoch"] != number or commit["released"] != released:
            raise RefusedError(
                f"{where}: its commit does not follow from the one before it; restore the private folder"
            )
        if commit["spec_sha256"] != spec.sha256:
            raise RefusedError(f"{where}: it was released under another spec; use that spec, or a new release")
        windows = commit["windows"]
        fits = (
            type(windows) is int
            and released < windows
            and (plan.promise.windows is None or windows <= plan.promise.windows)
        )
        by_calendar = schedule.calendar is not None  # then each epoch says where its windows end
        if not fits or not (by_calendar or commit["until"] == schedule.start + windows * schedule.every):
            raise RefusedError(f"{where}: its windows do not fit the schedule; restore the private folder")
        moment_text(commit["until"])
        epsilon, delta = commit["loss"]["epsilon"], commit["loss"]["delta"]
        if not _same(epsilon, plan.budget.epsilon) or not _same(delta, plan.budget.delta):
            raise RefusedError(
                f"{where}: it was released with (epsilon, delta) = ({epsilon}, {delta}) in all, and the plan has "
                f"({plan.budget.epsilon}, {plan.budget.delta}); go on with the version that planned it"
            )
        datetime.fromisoformat(commit["committed_at"])
    except (KeyError, TypeError, ValueError, OverflowError):
        raise RefusedError(f"{where}: its commit cannot be understood; restore the private folder") from None


def _same(stated: float, planned: float) -> bool:
    return math.isclose(stated, planned, rel_tol=SAME, abs_tol=0.0)


def _remaining(total: float, spent: float, spec: Spec) -> float:
    """The difference of the decimal numbers; never negative."""
    difference = Fraction(repr(total)) - Fraction(repr(spent))
    if difference < 0:
        raise RefusedError(f"release {spec.release!r}: {spent} is spent of {total}; nothing more may be released")
    return float(difference)


def adds_up(plan: Plan) -> bool:
    """Whether what is spent and what remains add up: not where the budget is for each span of time by itself."""
    boundaries, windows = plan.promise.boundaries, plan.promise.windows
    return boundaries is None or (windows is not None and boundaries > windows)


def what_remains(document: dict[str, Any], plan: Plan) -> str:
    """Say in a sentence what the windows to come will cost.

    Args:
        document: of `ledger_document`.
    """
    if document["epochs"] and document["epochs"][-1]["windows"] == plan.promise.windows:
        return "All windows are published, so nothing more will be spent."
    if not adds_up(plan):
        return (
            "The budget is for each such time by itself. So it is never used up: windows to come spend no more than "
            "the total in any such time."
        )
    if not any(document["remaining"].values()):
        return "All of it counts as spent already, and the windows to come cost nothing more."
    return "What remains is for the windows to come, and for nothing else."


def ledger_text(document: dict[str, Any], plan: Plan) -> str:
    """The same for people."""
    queries = document["queries"]
    units = {unit for query in queries for unit in query["total"]}
    names = "".join(f" {query['name']:>12}" for query in queries)
    lines = [
        f"{document['release']}: spec {document['spec_sha256']}",
        "",
        f"{'':<12} {'epsilon':>12} {'delta':>12} {names}",
    ]
    rows = {row: _parameters(document[row], [query[row] for query in queries]) for row in ("total", "spent")}
    if adds_up(plan):  # what people read in these rows does, though the total is rounded up
        rows["remaining"] = [_left(total, spent) for total, spent in zip(*rows.values(), strict=True)]
    lines += [f"{row:<12} {_row(numbers)}" for row, numbers in rows.items()]
    lines += [
        "",
        f"{'epoch':>5}  {'windows':<15} {'until':<20}  {'committed':<25} {'epsilon':>12} {'delta':>12} {names}",
    ]
    for epoch in document["epochs"]:
        windows = up_to(epoch["released"] + 1, epoch["windows"])
        lines.append(
            f"{epoch['epoch']:>5}  {windows:<15} {epoch['until']:<20}  {epoch['committed_at']:<25} "
            f"{_row(_parameters(epoch['spent'], [query['spent'] for query in epoch['queries']]))}"
        )
    if not document["epochs"]:
        lines.append("       nothing has been released")
    lines += [
        "",
        f"Of an epoch: what was spent by its end. Of a query: its share, in {', '.join(sorted(units))}.",
        f"The budget is for {document['protects']}. {what_remains(document, plan)}",
    ]
    return "\n".join(lines)


def _parameters(of_all: dict[str, float], shares: Sequence[dict[str, float]]) -> list[str]:
    """Epsilon, delta and the queries' shares, none less than what is proved."""
    return [
        shown(number) for number in (of_all["epsilon"], of_all["delta"], *(sum(share.values()) for share in shares))
    ]


def _left(total: str, spent: str) -> str:
    return f"{float(Decimal(total) - Decimal(spent)):.6g}"


def _row(numbers: Sequence[str]) -> str:
    epsilon, delta, *shares = numbers
    return f"{epsilon:>12} {delta:>12} " + "".join(f" {share:>12}" for share in shares)
