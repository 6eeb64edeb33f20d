"""Each record is sanitised once, ever, whatever crashes, repeats or races.

A record is known by its name (the spec's `entry`). Epochs follow on each other, each with records whose names none
before it had:

1. A run writes sanitised records, and the names that they had, into an attempt of its own on the private side.
2. It commits: creates `commits/<epoch>.json`, which only one run can do. From now on those names are done.
3. It shows: copies the records to the public side, with the plan, and puts the manifest of all epochs there.

What is shown follows from the commits alone, so whoever finds one that is not shown finishes it. Values of an attempt
that was not committed were never seen: the next run samples others. If the private folder is lost, a run is refused
where the manifest shows more than is committed, since nothing else could know which records are done.
"""

import hashlib
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ConfigDict, TypeAdapter, ValidationError

from pipelines.store.attempt import Attempt, public_name
from pipelines.store.attempts import Attempts, draft_of
from pipelines.store.commit import Digest
from pipelines.store.folder import Folder, folder_at
from pipelines.store.shown import Shown
from privacy.exact import parsed
from transforms.common.errors import RefusedError
from transforms.common.sinks import read_bytes

MANIFEST, PLAN = "manifest.json", "plan.json"
RECORDS, NAMES = "records", "names"
NAMES_FILE = "names.parquet"
_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Sanitised:
    """One epoch. The run states what it did; the store adds the last four.

    Attributes:
        spec_sha256: of what is done to records.
        plan: of the whole release, as it is published.
        records: how many came out. Public.
        left_out: rows whose names were done before, or came again. Private.
        names: the digest of the names that are done with it. Private.
        files: by their public names.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    release: str
    epoch: int
    spec_sha256: str
    plan: str
    statement: str
    epsilon: float
    delta: float
    records: int
    left_out: int
    attempt: str = ""
    committed_at: str = ""
    names: Digest = field(default_factory=lambda: Digest("", 0))
    files: dict[str, Digest] = field(default_factory=dict)


@dataclass(frozen=True)
class SanitisedStore:
    """The two folders of a release of sanitised records."""

    public: str
    private: str

    def __post_init__(self) -> None:
        if "://" in self.private and "://" not in self.public:
            raise RefusedError(
                f"{self.public}: a local public folder needs a local private one, which holds the lock; or move both "
                "to gs://"
            )

    def open(self) -> list[Sanitised]:
        """All epochs so far, durable.

        Raises:
            RefusedError: something is missing, or not what was committed.
        """
        manifest = self._public.read(MANIFEST)
        commits = self._commits()
        shown = 0
        if manifest is not None:
            with suppress(ValueError, TypeError, KeyError):
                shown = len(parsed(manifest)["epochs"])
            if not shown or shown > len(commits) or manifest != manifest_json(commits[:shown]):
                raise RefusedError(
                    f"{self._public.path(MANIFEST)}: is not what the private folder has committed; restore "
                    f"{self.private} from a copy, since without it records would be sanitised a second time, or "
                    "choose other folders for another release"
                )
        return commits

    def known(self, commits: Sequence[Sanitised]) -> pa.Array:
        """The names that are done.

        Raises:
            RefusedError: a list of names is not what was committed.
        """
        found = [pa.array([], pa.string())]
        for commit in commits:
            name = f"attempts/{commit.attempt}/{NAMES}/{NAMES_FILE}"
            (digest,) = self._private.settle([name])
            if digest != (commit.names.sha256, commit.names.size):
                raise RefusedError(
                    f"{self._private.path(name)}: missing, or not what epoch {commit.epoch} left; restore the private "
                    "folder from a copy, since without it records would be sanitised a second time"
                )
            content = pa.BufferReader(read_bytes(self._private.path(name)))
            found.append(pq.read_table(content)["name"].combine_chunks())
        return pa.concat_arrays(found)

    def begin(self, epoch: int) -> Attempt:
        self._public.refuse_unwritable()
        return self._attempts.begin(epoch)

    def commit(self, attempt: Attempt, record: Sanitised, made: Sequence[str]) -> Sanitised:
        """Make an attempt the epoch's, for ever.

        Raises:
            RefusedError: another run was first, and this attempt is removed.
        """
        records = self._attempts.made(attempt, RECORDS, made)
        names = self._attempts.made(attempt, NAMES, [NAMES_FILE])
        record = replace(
            record,
            attempt=attempt.id,
            committed_at=datetime.now(UTC).isoformat(timespec="seconds"),
            names=names[NAMES_FILE],
            files={public_name(f"{RECORDS}/{name}", attempt.id): digest for name, digest in records.items()},
        )
        name = _commit_name(record.epoch)
        standing = self._private.create(name, _json(asdict(record)), draft=draft_of(attempt.id))
        found = _from_json(standing, self._private.path(name))
        if found.attempt != attempt.id:
            self.discard(attempt)
            raise RefusedError(
                f"{self.public}: another run, attempt {found.attempt}, committed epoch {found.epoch}; nothing of this "
                "run was kept, and nothing need be done: the next run goes on from there"
            )
        return found

    def discard(self, attempt: Attempt) -> None:
        """Remove an attempt that came to no commit; one that is committed, or may yet be, stays."""
        standing = self._private.read(_commit_name(attempt.epoch))
        if standing is None:
            needed = self._attempts.began_to_commit(attempt.id)
        else:
            needed = _from_json(standing, self._private.path(_commit_name(attempt.epoch))).attempt == attempt.id
        if not needed:
            self._attempts.remove(attempt.id)

    def clean(self) -> None:
        """Remove what dead runs have left without a commit: it holds names."""
        runs = self._attempts.runs()
        alive = {id_ for id_, run in runs.items() if run is None or run.alive() is not False}
        commits = self._commits()  # after the question who lives: what a dead run has committed is there by now
        for id_ in runs.keys() - alive - {commit.attempt for commit in commits}:
            if (Attempt.epoch_of(id_) or 0) <= len(commits) or not self._attempts.began_to_commit(id_):
                self._attempts.remove(id_)

    def show(self) -> None:
        """Publish all that is committed."""
        shown = Shown(self._public)
        with self._private.lock():
            while True:
                manifest, version = self._public.versioned(MANIFEST)
                commits = self._commits()
                if not commits:
                    return
                sizes = self._public.files(RECORDS)
                for commit in commits:
                    if any(sizes.get(name) != digest.size for name, digest in commit.files.items()):
                        shown.bring(commit, self._private)
                    self._public.flush(commit.files)  # of what stands there too: a run may have died before it did
                shown.bring_text(PLAN, commits[0].plan)
                content = manifest_json(commits)
                if manifest == content or self._public.swap(MANIFEST, content, version):
                    self._public.flush([MANIFEST])
                    return

    def paths(self, commit: Sanitised) -> list[str]:
        return [self._public.path(name) for name in commit.files]

    def _commits(self) -> list[Sanitised]:
        names = [name for name in self._private.files("commits") if name.endswith(".json")]
        if names != [_commit_name(epoch) for epoch in range(1, len(names) + 1)]:
            raise RefusedError(
                f"{self._private.path('commits')}: holds other files than the records of epochs 1 to {len(names)}; "
                "restore it from a copy"
            )
        self._private.flush(names)
        contents = zip(names, self._private.read_all(names), strict=True)
        return [_from_json(content or b"", self._private.path(name)) for name, content in contents]

    @cached_property
    def _attempts(self) -> Attempts:
        return Attempts(self._private)

    @cached_property
    def _public(self) -> Folder:
        return folder_at(self.public, private=False)

    @cached_property
    def _private(self) -> Folder:
        return folder_at(self.private, private=True)


def manifest_json(commits: Sequence[Sanitised]) -> bytes:
    """The public list of all epochs; no name of a record is in it."""
    first = commits[0]
    return _json(
        {
            "release": first.release,
            "spec_sha256": first.spec_sha256,
            "plan_sha256": hashlib.sha256(first.plan.encode()).hexdigest(),
            "statement": first.statement,
            "loss": {"epsilon": first.epsilon, "delta": first.delta},
            "records": sum(commit.records for commit in commits),
            "epochs": [
                {
                    "epoch": commit.epoch,
                    "attempt": commit.attempt,
                    "committed_at": commit.committed_at,
                    "records": commit.records,
                    "files": {name: asdict(digest) for name, digest in commit.files.items()},
                }
                for commit in commits
            ],
        }
    )


def commits_of(manifest: Any, plan: str) -> list[Sanitised]:
    """The commits that a manifest shows, without what is private of them; for readers, who have nothing else.

    Raises:
        ValueError: it is not exactly what `manifest_json` writes of commits.
    """
    try:
        of_all = {name: manifest[name] for name in ("release", "spec_sha256", "statement")}
        of_all |= {"plan": plan, "left_out": 0, **manifest["loss"]}
        each = [{**of_all, **epoch} for epoch in manifest["epochs"]]
        commits = TypeAdapter(list[Sanitised]).validate_json(json.dumps(each), strict=True)
        if parsed(manifest_json(commits)) != manifest:
            raise ValueError("other members")
        for number, commit in enumerate(commits, start=1):
            datetime.fromisoformat(commit.committed_at)
            if commit.epoch != number or commit.records < 1:
                raise ValueError("epochs")
    except (IndexError, KeyError, TypeError) as error:
        raise ValueError("not a manifest") from error
    return commits


def _from_json(content: bytes, where: str) -> Sanitised:
    try:
        document = parsed(content)
        if document.pop("version") != _VERSION:
            raise ValueError
        return TypeAdapter(Sanitised).validate_python(document)
    except (ValueError, KeyError, AttributeError, ValidationError):
        raise RefusedError(
            f"{where}: not a record of sanitised records that this version of the program understands; restore it from "
            "a copy of the private folder, or choose other folders"
        ) from None


def _json(document: dict[str, Any]) -> bytes:
    return json.dumps({"version": _VERSION, **document}, indent=1).encode()


def _commit_name(epoch: int) -> str:
    return f"commits/{epoch:06d}.json"
