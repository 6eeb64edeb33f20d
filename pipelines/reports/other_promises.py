"""Releases that promise something else: each sanitised record for itself, and each device of a survey for itself.

Their epsilons are not added to those of a release of sums. There neighbours differ in whether a unit is in the data;
here in what a record or a device holds, and that it is there is given. What all of them cost somebody together is told
in words (`TOGETHER`): other data of one unit in place of its own. Then a release of sums costs (2 epsilon,
(1 + e^epsilon) delta), since the unit goes out and the other one comes in; each record and each device of the unit its
(epsilon, delta); and all that is drawn is drawn apart, so that these add up.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pipelines.local.spec import load_local
from pipelines.sanitised.plan import statement
from pipelines.sanitised.spec import SanitiseSpec, load_sanitise
from pipelines.sanitised.store import Sanitised, SanitisedStore
from pipelines.spec.beside import specs_beside
from pipelines.store.same_data import SameData, patterns_of
from privacy.counted import counted
from privacy.planning.statement import protected
from privacy.protection import Protection, Span
from privacy.sanitised.record import Sanitisation
from privacy.upward import shown
from transforms.common.cloud import refuse_unreachable
from transforms.common.errors import RefusedError, SlackwaterError
from transforms.common.source import Source

APART = "They protect what a record or a device holds, and not that it is there, so no sum above has them in it."

TOGETHER = (
    "Who is in this release, in some of those records and on some of those devices, with other data in place of all "
    "of it, costs 2 epsilon of this release, epsilon of each of the records and epsilon of each of the devices, all "
    "added up. That somebody is in the data at all is protected by this release alone."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """A release that protects each record, or each device.

    Attributes:
        so_far: records that are sanitised; None if that cannot be seen, or is nobody's to know.
    """

    release: str
    of_each: Literal["record", "device"]
    epsilon: float
    delta: float
    so_far: int | None

    def document(self) -> dict[str, Any]:
        return {
            "release": self.release,
            "of_each": self.of_each,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "records": self.so_far,
        }

    def text(self) -> str:
        if self.of_each == "device":
            known = "once its devices report"
        else:
            known = "nobody knows how many so far" if self.so_far is None else f"{self.so_far:,} sanitised so far"
        budget = f"epsilon {shown(self.epsilon)}, delta {shown(self.delta)}"
        return f"  {self.release}: {budget} for each {self.of_each}, {known}"


def beside(path: Path, source: Source) -> tuple[list[Promise], tuple[str, ...]]:
    """Those whose specs lie in the folder of a spec: of records in files of its source, and of all devices.

    Returns:
        them, and the specs that cannot be read.
    """
    same = SameData(patterns_of(source))
    surveys, unread_surveys = specs_beside(path, "devices", load_local)
    records, unread_records = specs_beside(path, "records", load_sanitise)
    found = [
        Promise(
            release=survey.release,
            of_each="device",
            epsilon=survey.epsilon,
            delta=survey.delta,
            so_far=None,
        )
        for survey in surveys
    ]
    found += [
        Promise(
            release=spec.release,
            of_each="record",
            epsilon=spec.record.epsilon,
            delta=spec.record.delta,
            so_far=_sanitised(spec),
        )
        for spec in records
        if same.reads(patterns_of(spec.source))
    ]
    unread = sorted({*unread_surveys, *unread_records, *same.unlisted})
    return sorted(found, key=lambda promise: promise.release), tuple(unread)


def text_of(promises: list[Promise], unread: tuple[str, ...], protects: Protection) -> list[str]:
    """For people; nothing where there are none."""
    missing = [f"Other promises cannot be read: {', '.join(unread)}."] if unread else []
    if not promises:
        return missing
    told = TOGETHER
    if isinstance(protects, Span):
        hidden = "is not protected" if protects.near else "all along is not protected"
        told = (
            f"The budget of this release is spent on {protected(protects)}, and on no more: other data of somebody in "
            f"place of all of it may cost any number of its epsilons, and that somebody is in the data {hidden}. To "
            "what it costs, epsilon of each of their records and of each of their devices is added."
        )
    listed = ["Other promises about what may be the same people:", *(each.text() for each in promises)]
    return [*listed, *missing, f"{APART} {told}"]


def ledger_of_records(path: str | Path) -> tuple[dict[str, Any], str]:
    """What each sanitised record costs, of how many, run by run.

    Raises:
        RefusedError: the folders do not hold one release of this spec.
    """
    spec = load_sanitise(path)
    refuse_unreachable(spec.output.folders)
    commits = SanitisedStore(spec.output.public, spec.output.private).open()
    if commits and (commits[0].spec_sha256, commits[0].release) != (spec.sha256, spec.release):
        raise RefusedError(
            f"{spec.path}: is not the spec of the release in {spec.output.private}; put that one back, or name other "
            "folders"
        )
    return records_ledger(spec.release, spec.sha256, spec.record, commits)


def records_ledger(
    release: str, sha256: str, record: Sanitisation, commits: Sequence[Sanitised]
) -> tuple[dict[str, Any], str]:
    """The ledger of sanitised records as a document and its text.

    Args:
        sha256: of the spec.
        record: what each record is sanitised as.
        commits: of all runs so far.
    """
    document: dict[str, Any] = {
        "release": release,
        "spec_sha256": sha256,
        "of_each": "record",
        "total": {"epsilon": record.epsilon, "delta": record.delta},
        "statement": statement(record),
        "records": sum(commit.records for commit in commits),
        "columns": [{"name": one.name, "epsilon": one.epsilon, "delta": one.delta} for one in record.attributes],
        "epochs": [
            {"epoch": commit.epoch, "committed_at": commit.committed_at, "records": commit.records}
            for commit in commits
        ],
    }
    return document, _text_of_records(document)


def ledger_of_devices(path: str | Path) -> tuple[dict[str, Any], str]:
    """What a survey costs each device. What it has spent so far only the device knows: it is never more."""
    spec = load_local(path)
    document = {
        "release": spec.release,
        "of_each": "device",
        "total": {"epsilon": spec.epsilon, "delta": spec.delta},
        "people": spec.people,
        "windows": spec.windows,
    }
    lines = [
        f"{spec.release}: a survey of {counted(spec.people, 'device')}",
        f"epsilon {shown(spec.epsilon)}, delta {shown(spec.delta)} for each device, of all that it sends in "
        f"{counted(spec.windows, 'window')}; the devices hold themselves to it.",
        "Other surveys of the same people add up with it, and so do several devices of one person.",
    ]
    return document, "\n".join(lines)


def _text_of_records(document: dict[str, Any]) -> str:
    total = document["total"]
    lines = [
        f"{document['release']}: spec {document['spec_sha256']}",
        "",
        f"{'':<20} {'epsilon':>12} {'delta':>12}",
        *(
            f"{each['name']:<20} {shown(each['epsilon']):>12} {shown(each['delta']):>12}"
            for each in document["columns"]
        ),
        f"{'each record':<20} {shown(total['epsilon']):>12} {shown(total['delta']):>12}",
        "",
        f"{'epoch':>5}  {'committed':<25} {'records':>12}",
        *(f"{each['epoch']:>5}  {each['committed_at']:<25} {each['records']:>12,}" for each in document["epochs"]),
        *([] if document["epochs"] else ["       nothing is sanitised yet"]),
        "",
        "Each record is sanitised once and costs all of that; records do not add up, but for those of one person.",
        document["statement"],
    ]
    return "\n".join(lines)


def _sanitised(spec: SanitiseSpec) -> int | None:
    try:
        refuse_unreachable(spec.output.folders)
        commits: list[Sanitised] = SanitisedStore(spec.output.public, spec.output.private).open()
    except (OSError, SlackwaterError):
        return None
    return sum(commit.records for commit in commits)
