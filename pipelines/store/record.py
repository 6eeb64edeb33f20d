"""Records of epochs, for all stores: each epoch has a record of one kind, which names its files.

Releases and sanitised records are both published in epochs. What differs between them is a value, `EpochKind`. A record
is private: it also names the sources that were read and the state that was left. It is read strictly: an unknown or
missing member is refused, since a release that is misread could spend its budget twice.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, dataclass, replace
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from privacy.accounting.accounting import Budget
from privacy.codec import Codec
from privacy.json_values import Json, indented, parsed
from transforms.common.errors import RefusedError

VERSION = 1
"""Version of records and manifests."""

CODEC = Codec(plain=True)


@dataclass(frozen=True, slots=True)
class Digest:
    """SHA-256 and size in bytes of a file."""

    sha256: str
    size: int


Files = Mapping[str, Digest]
"""Files by name."""


class EpochRecord(Protocol):
    """The record of an epoch: a frozen dataclass with these members, among others."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def release(self) -> str:
        """Name of the release."""

    @property
    def epoch(self) -> int:
        """1, 2, ..."""

    @property
    def spec_sha256(self) -> str:
        """Digest of the part of the spec that defines the processing of the data."""

    @property
    def loss(self) -> Budget:
        """Cost of the whole release, as the manifest has it."""

    @property
    def plan(self) -> str:
        """The plan of the whole release as it is published, in the record of epoch 1; else empty."""

    @property
    def plan_sha256(self) -> str:
        """Digest of the plan."""

    @property
    def attempt(self) -> str:
        """The id of the attempt whose files these are."""

    @property
    def committed_at(self) -> str:
        """ISO 8601, UTC."""

    @property
    def files(self) -> Files:
        """Files to publish, by their public names."""

    @property
    def state(self) -> Files:
        """Private files that later epochs need, by their names in the attempt's folder."""

    @property
    def disclosure(self) -> Mapping[str, str]:
        """Facts for readers by their names, if they have changed; otherwise empty."""


def disclosed(records: Sequence[EpochRecord]) -> Mapping[str, str]:
    """Return the facts that the last of some epochs has stated; empty if none did."""
    return next((record.disclosure for record in reversed(records) if record.disclosure), {})


R = TypeVar("R", bound=EpochRecord)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class History(Generic[R]):
    """Committed epochs, at least one, and the number of them that are shown."""

    commits: tuple[R, ...]
    shown: int

    @property
    def last(self) -> R:
        """The record of the last epoch."""
        return self.commits[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochKind(Generic[R]):
    """Properties of a kind of epochs, in which stores differ.

    Attributes:
        record: the class of records.
        called: name of a record, for messages.
        continues: whether a record follows the one before it; None comes before the first.
        of_release: members of records that the manifest has once, as in the last record that has them.
        of_epoch: members that the manifest has for each epoch; `files` are those that the epoch shows.
        private: JSON of the other members as readers of the public side have them.
        totals: further members of the manifest, from all records.
        texts: further public files with their texts, from the record of epoch 1.
        shown: folders of an attempt that are published, the last of which is never empty.
        state: the folder of an attempt that later epochs need.
        stays: whether the state of all epochs is needed, so that no committed attempt is ever removed.
        risk: what happens if records or state are lost, for messages.
        witnessed: whether the run of a record had a witness (`pipelines.store.witness`).
    """

    record: type[R]
    called: str
    continues: Callable[[R | None, R], bool]
    of_release: tuple[str, ...]
    of_epoch: tuple[str, ...]
    private: Json
    totals: Callable[[Sequence[R]], Json]
    texts: Callable[[R], Mapping[str, str]]
    shown: tuple[str, ...]
    state: str
    stays: bool
    risk: str
    witnessed: Callable[[R], bool] = lambda record: False

    def read(self, content: bytes, where: str) -> R:
        """Return the record that `record_json` was given.

        Raises:
            RefusedError: this is no such record of this version; the message names the place `where`.
        """
        record = read_record(self.record, content, where, self.called)
        plan = record.plan
        if (plan != "") != (record.epoch == 1) or (plan and digest_of_text(plan) != record.plan_sha256):
            raise RefusedError(
                f"{where}: the plan is not what was committed; restore it from a copy of the private folder"
            )
        return record

    def public(self, record: R) -> R:
        """Return a record without its private members, as readers of the public side have it."""
        found: R = CODEC.read(self.record, {**CODEC.write(record), **self.private})
        return found

    def check(self, records: Sequence[R], where: str) -> None:
        """Check that these are epochs 1, 2, ... of one release, one spec and one plan.

        Raises:
            RefusedError: they do not follow on each other; the message names the place `where`.
        """
        before = None
        for epoch, record in enumerate(records, start=1):
            same = all(
                getattr(record, name) == getattr(records[0], name) for name in ("release", "spec_sha256", "plan_sha256")
            )
            if record.epoch != epoch or not same or not self.continues(before, record):
                raise RefusedError(
                    f"{where}: epoch {epoch} does not continue the one before it (release, spec, plan, windows or "
                    "times differ); restore the records from a copy of the private folder"
                )
            before = record


def sealed(record: R, first: R | None, *, attempt: str, at: str, files: Files, state: Files) -> R:
    """Return a record as it is committed.

    Args:
        record: what a run states of its epoch.
        first: the record of epoch 1, which has the plan; None if this is epoch 1.
        attempt: whose files these are.
        at: the time, ISO 8601.
        files: files to publish, by their public names.
        state: private files, by their names in the attempt's folder of state.
    """
    return replace(
        record,
        attempt=attempt,
        committed_at=at,
        files=files,
        state=state,
        plan=record.plan if first is None else "",
        plan_sha256=digest_of_text(record.plan) if first is None else first.plan_sha256,
    )


def record_json(record: Any) -> bytes:
    """Return the content of a record's file."""
    return indented(CODEC.dump(record, version=VERSION))


def read_record(class_: type[T], content: bytes, where: str, what: str) -> T:
    """Return a private record of this version.

    Args:
        class_: Class of the record.
        content: Content of its file.
        where: Path of the file, for messages.
        what: Name of the kind of record, for messages.

    Raises:
        RefusedError: it is something else.
    """
    try:
        record: T = CODEC.load(class_, parsed(content), version=VERSION)
    except ValueError as error:
        raise RefusedError(f"{where}: not {what} ({error}); restore it from a copy of the private folder") from None
    return record


def digest_of_text(text: str) -> str:
    """Return the SHA-256 of a text as it is published."""
    return hashlib.sha256(text.encode()).hexdigest()
