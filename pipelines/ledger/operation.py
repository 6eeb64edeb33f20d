"""`slackwater ledger`: what a release has published and spent, as text and as JSON."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Protocol

from pipelines.common.arguments import SpecLike, path_of
from pipelines.common.value import Value
from pipelines.epochs.failures import reading_folders
from pipelines.epochs.killed import left_by_killed
from pipelines.epochs.plans import plan_for
from pipelines.epochs.settled import refuse_another
from pipelines.ledger.account import adds_up, ledger_document, what_remains
from pipelines.ledger.apart import OtherPromise, other_promises, text_of
from pipelines.published.others import of_other_kind
from pipelines.published.release import naming, published
from pipelines.spec.load import load
from pipelines.spec.times import people_time
from pipelines.store.folder import is_folder
from pipelines.store.known_releases import known
from pipelines.store.store import Store
from pipelines.store.together import Known
from pipelines.store.witness import witness_at
from privacy.counted import counted, up_to
from privacy.planning.plan import Plan
from privacy.upward import shown
from transforms.common.cloud import refuse_unreachable
from transforms.common.errors import RefusedError


class Ledger(Protocol):
    """Published epochs and spent budget of a release of any kind."""

    @property
    def release(self) -> str:
        """Name of the release."""
        ...

    def to_json(self) -> dict[str, Any]:
        """Return the document of `slackwater ledger --json`."""
        ...

    def text(self) -> str:
        """Return the text that `slackwater ledger` prints."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseLedger(Value):
    """Ledger of a release: its epochs, and the budget that they have spent.

    Attributes:
        account: Result of `ledger_document`.
        plan: Plan of the release.
        together: Other releases about the same people; None if only a public folder was read.
        apart: Releases about the same people that protect each record or each device.
        unread: Specs in the same folder that cannot be read.
        witness: Path of the witness, and the number of epochs that it records, or why it is unavailable; None without a
            witness, or if only a public folder was read.
    """

    account: dict[str, Any] = field(repr=False)
    plan: Plan = field(repr=False)
    together: Known | None = field(default=None, repr=False)
    apart: tuple[OtherPromise, ...] = ()
    unread: tuple[str, ...] = ()
    witness: dict[str, Any] | None = None

    @property
    def release(self) -> str:
        """Name of the release."""
        return str(self.account["release"])

    def to_json(self) -> dict[str, Any]:
        """Return the document of `slackwater ledger --json`."""
        document = {**self.account, "statement": self.plan.statement}
        if self.together is None:
            return document
        together = self.together.document(begun=bool(self.account["epochs"]))
        apart = [promise.document() for promise in self.apart]
        witness = {} if self.witness is None else {"witness": self.witness}
        return {**document, **witness, "together": together, "apart": apart}

    def text(self) -> str:
        """Return the text that `slackwater ledger` prints."""
        lines = [
            ledger_text(self.account, self.plan),
            f"Epsilon and delta hold under the conditions of the statement. {self.plan.conditions[0]}",
        ]
        if self.witness is not None:
            lines.append(f"The witness {self.witness['path']} {_recorded(self.witness)}.")
        elif self.together is not None:
            lines.append("No witness records the commits (output.witness).")
        if self.together is not None and (self.together.others or self.together.unread):
            lines += ["", self.together.text(begun=bool(self.account["epochs"]))]
        if self.apart or self.unread:
            lines += ["", *text_of([*self.apart], self.unread, self.plan.promise.protects)]
        return "\n".join(lines)


def ledger(spec: SpecLike) -> Ledger:
    """Account for what a release has published and spent, from its commits, spec and plan, and from no data.

    Args:
        spec: The path of a spec of any kind, what `load` returns, or the path of a public folder. From a public folder
            alone, other releases about the same people are unknown.

    Raises:
        RefusedError: The commits are not one release of this spec and plan.
    """
    path = path_of(spec)
    if other := of_other_kind("ledger", path):
        found: Ledger = other(path)
        return found
    if is_folder(path):
        return _of_public(path)
    one = load(path)
    refuse_unreachable(one.output.places)
    with reading_folders(one):
        store = Store(one.output.public, one.output.private)
        history = store.open()
        if killed := left_by_killed(store):
            print(f"slackwater: {killed}", file=sys.stderr, flush=True)
    if history is not None:
        refuse_another(one, history.commits)
    commits = () if history is None else history.commits
    plan = plan_for(one, commits)
    apart, unread = other_promises(one.path, one.changelog.source)
    return ReleaseLedger(
        account=ledger_document(commits, one, plan),
        plan=plan,
        together=known(one),
        apart=tuple(apart),
        unread=unread,
        witness=_witness(one.output.witness),
    )


def _witness(path: str | None) -> dict[str, Any] | None:
    if path is None:
        return None
    try:
        return {"path": path, "epochs": witness_at(path).count()}
    except RefusedError as error:
        return {"path": path, "epochs": None, "error": str(error)}


def _recorded(witness: dict[str, Any]) -> str:
    return "is unavailable" if witness["epochs"] is None else f"records {counted(witness['epochs'], 'epoch')}"


def _of_public(folder: str) -> ReleaseLedger:
    release = published(folder)
    with naming(folder):
        return ReleaseLedger(account=ledger_document(release.epochs, release.spec, release.plan), plan=release.plan)


def ledger_text(document: dict[str, Any], plan: Plan) -> str:
    """Return the ledger as a table."""
    queries = document["queries"]
    units = {unit for query in queries for unit in query["total"]}
    names = "".join(f" {query['name']:>12}" for query in queries)
    lines = [
        f"{document['release']}: spec {document['spec_sha256']}",
        "",
        f"{'':<12} {'epsilon':>12} {'delta':>12} {names}",
    ]
    rows = {row: _parameters(document[row], [query[row] for query in queries]) for row in ("total", "spent")}
    if adds_up(plan):  # the printed numbers add up too, although the total is rounded up
        rows["remaining"] = [_left(total, spent) for total, spent in zip(*rows.values(), strict=True)]
    lines += [f"{row:<12} {_row(numbers)}" for row, numbers in rows.items()]
    lines += [
        "",
        f"{'epoch':>5}  {'windows':<15} {'until':<28}  {'committed':<28} {'epsilon':>12} {'delta':>12} {names}",
    ]
    for epoch in document["epochs"]:
        windows = up_to(epoch["released"] + 1, epoch["windows"])
        lines.append(
            f"{epoch['epoch']:>5}  {windows:<15} {people_time(epoch['until']):<28}  "
            f"{people_time(epoch['committed_at']):<28} "
            f"{_row(_parameters(epoch['spent'], [query['spent'] for query in epoch['queries']]))}"
        )
    if not document["epochs"]:
        lines.append("       nothing has been released")
    lines += [
        "",
        f"Each epoch shows what was spent by its end. Each query shows its share, in {', '.join(sorted(units))}.",
        f"The budget is for {document['protects']}. {what_remains(document, plan)}",
    ]
    return "\n".join(lines)


def _parameters(of_all: dict[str, float], shares: Sequence[dict[str, float]]) -> list[str]:
    """Return epsilon, delta and the queries' shares as text, rounded up."""
    return [
        shown(number) for number in (of_all["epsilon"], of_all["delta"], *(sum(share.values()) for share in shares))
    ]


def _left(total: str, spent: str) -> str:
    return f"{float(Decimal(total) - Decimal(spent)):.6g}"


def _row(numbers: Sequence[str]) -> str:
    epsilon, delta, *shares = numbers
    return f"{epsilon:>12} {delta:>12} " + "".join(f" {share:>12}" for share in shares)
