"""`slackwater ledger` of sanitised records, and their line in the ledger of a release of sums next to them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipelines.common.value import Value
from pipelines.ledger.apart import OtherPromise
from pipelines.sanitised.published import PublishedRecords
from pipelines.sanitised.published_plan import statement
from pipelines.sanitised.spec import SanitiseSpec, load_sanitise
from pipelines.sanitised.store import SANITISED, Sanitised, all_epochs
from pipelines.spec.other_specs import other_specs
from pipelines.store.folder import is_folder
from pipelines.store.same_data import SameData, patterns_of
from privacy.sanitised.record import Sanitisation
from privacy.upward import shown
from transforms.common.cloud import refuse_unreachable
from transforms.common.errors import RefusedError, SlackwaterError


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordsLedger(Value):
    """Cost of each sanitised record.

    Attributes:
        release: Name of the release.
        spec_sha256: Digest of the spec.
        record: How each record is sanitised.
        commits: Commits of all runs so far.
    """

    release: str
    spec_sha256: str
    record: Sanitisation
    commits: tuple[Sanitised, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the document of `slackwater ledger --json`."""
        return {
            "release": self.release,
            "spec_sha256": self.spec_sha256,
            "of_each": "record",
            "total": {"epsilon": self.record.epsilon, "delta": self.record.delta},
            "statement": statement(self.record),
            "records": sum(commit.records for commit in self.commits),
            "columns": [
                {"name": one.name, "epsilon": one.epsilon, "delta": one.delta} for one in self.record.attributes
            ],
            "epochs": [
                {"epoch": commit.epoch, "committed_at": commit.committed_at, "records": commit.records}
                for commit in self.commits
            ],
        }

    def text(self) -> str:
        """Return the text that `slackwater ledger` prints."""
        costs = [(one.name, one.epsilon, one.delta) for one in self.record.attributes]
        costs.append(("each record", self.record.epsilon, self.record.delta))
        lines = [
            f"{self.release}: spec {self.spec_sha256}",
            "",
            f"{'':<20} {'epsilon':>12} {'delta':>12}",
            *(f"{name:<20} {shown(epsilon):>12} {shown(delta):>12}" for name, epsilon, delta in costs),
            "",
            f"{'epoch':>5}  {'committed':<25} {'records':>12}",
            *(f"{each.epoch:>5}  {each.committed_at:<25} {each.records:>12,}" for each in self.commits),
            *([] if self.commits else ["       nothing is sanitised yet"]),
            "",
            "Each record is sanitised once and costs that total; records do not add up, except records of one person.",
            statement(self.record),
        ]
        return "\n".join(lines)


def ledger(path: str) -> RecordsLedger:
    """Return the cost of each sanitised record, and the number of records of each run.

    Raises:
        RefusedError: The folders do not hold one release of this spec.
    """
    if is_folder(path):
        public = PublishedRecords(path)
        return RecordsLedger(
            release=public.release, spec_sha256=public.spec_sha256, record=public.record, commits=tuple(public.commits)
        )
    spec = load_sanitise(path)
    refuse_unreachable(spec.output.folders)
    commits = all_epochs(spec.output.public, spec.output.private)
    if commits and (commits[0].spec_sha256, commits[0].release) != (spec.sha256, spec.release):
        raise RefusedError(
            f"{spec.path}: is not the spec of the release in {spec.output.private}; restore that spec, or name other "
            "folders"
        )
    return RecordsLedger(
        release=spec.release, spec_sha256=spec.sha256, record=spec.record, commits=tuple(map(SANITISED.public, commits))
    )


def other_promises(path: Path, same: SameData) -> tuple[list[OtherPromise], Sequence[str]]:
    """Find sanitised records whose specs lie in the folder of a spec and read the same data.

    Returns:
        Their promises, and the paths of specs that cannot be read.
    """
    specs, unread = other_specs(path, "records", load_sanitise)
    found = [
        OtherPromise(
            release=spec.release,
            of_each="record",
            epsilon=spec.record.epsilon,
            delta=spec.record.delta,
            so_far=_so_far(spec),
        )
        for spec in specs
        if same.reads(patterns_of(spec.source))
    ]
    return found, unread


def _so_far(spec: SanitiseSpec) -> int | None:
    try:
        refuse_unreachable(spec.output.folders)
        commits = all_epochs(spec.output.public, spec.output.private)
    except (OSError, SlackwaterError):
        return None
    return sum(commit.records for commit in commits)
