"""What one epoch of a release says of itself, and the public manifest that follows from all of them.

A commit record is private: it also names the sources that were read and the state that was left. The manifest is a
function of the records alone, so whoever writes it writes the same bytes. Both are read strictly: what is not
understood to the letter is refused, since a release that is misread could spend its budget twice.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from itertools import pairwise
from typing import Any, ClassVar

from pydantic import ConfigDict, TypeAdapter, ValidationError

from transforms.common.errors import RefusedError

VERSION = 1
"""Version of commit records and manifests."""


@dataclass(frozen=True, slots=True)
class Digest:
    """What a file holds: its SHA-256 and its size in bytes."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    sha256: str
    size: int


@dataclass(frozen=True, slots=True)
class ReadFile:
    """A file of the changelog as this epoch read it: size in bytes, and when or as which version it was stored."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    path: str
    size: int
    updated: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """One epoch. The run states what it closed; the store adds the last five when it commits.

    Attributes:
        release: name.
        epoch: 1, 2, ...
        spec_sha256: of the frozen spec's content.
        spec: the frozen spec's text; of that of epoch 1 is published what pipelines.spec.public shows. Private.
        released: windows released before this epoch.
        windows: windows released once it is committed, more than before.
        start: where its first window starts, which is where the last epoch ended; microseconds since 1970.
        until: where its last window ends; microseconds since 1970.
        loss: epsilon and delta of the whole release, as the manifest has them. Public.
        statement: of the whole release, in words. Public.
        sources: changelog files that this epoch read. Private.
        plan: of epoch 1, the plan of the whole release as it is published; of all others empty. Public.
        attempt: whose files these are.
        committed_at: ISO 8601, UTC.
        files: nodes and estimates by their public names.
        state: carries by their names in the attempt's folder `state`. Private.
        plan_sha256: of the plan. Public.
        ends: of its windows, where they are those of a calendar; else none. Public.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    release: str
    epoch: int
    spec_sha256: str
    spec: str
    released: int
    windows: int
    start: int
    until: int
    loss: dict[str, Any]
    statement: str
    sources: tuple[ReadFile, ...] = ()
    plan: str = ""
    attempt: str = ""
    committed_at: str = ""
    files: dict[str, Digest] = field(default_factory=dict)
    state: dict[str, Digest] = field(default_factory=dict)
    plan_sha256: str = ""
    ends: tuple[int, ...] = ()

    def to_json(self) -> bytes:
        return json_of({"version": VERSION, **asdict(self)})

    @staticmethod
    def from_json(content: bytes, where: str) -> "Commit":
        """
        Raises:
            RefusedError: this is no commit record of this version; the message names the place `where`.
        """
        document = document_in(content, where, "a commit record; restore it from a copy of the private folder")
        del document["version"]
        try:
            commit = _adapter().validate_json(json.dumps(document), strict=True)
        except ValidationError as error:
            member = ".".join(str(part) for part in error.errors()[0]["loc"]) or "the whole"
            raise RefusedError(
                f"{where}: not a commit record ({member} is wrong or missing); restore it from a copy of the private "
                "folder"
            ) from None
        if (commit.plan != "") != (commit.epoch == 1) or (
            commit.plan and plan_digest(commit.plan) != commit.plan_sha256
        ):
            raise RefusedError(
                f"{where}: the plan is not what was committed; restore it from a copy of the private folder"
            )
        return commit


def plan_digest(plan: str) -> str:
    """SHA-256 of a plan as it is published."""
    return hashlib.sha256(plan.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class History:
    """What is committed of a release, and how many epochs of it are shown."""

    commits: tuple[Commit, ...]
    shown: int

    @property
    def last(self) -> Commit:
        return self.commits[-1]


def check_chain(commits: Sequence[Commit], where: str) -> None:
    """Check that epochs 1, 2, ... of one release and one spec follow on each other.

    Raises:
        RefusedError: they do not.
    """
    released, until = 0, None
    for epoch, commit in enumerate(commits, start=1):
        first = commits[0]
        if (
            commit.epoch != epoch
            or (commit.release, commit.spec_sha256) != (first.release, first.spec_sha256)
            or commit.plan_sha256 != first.plan_sha256
            or commit.released != released
            or commit.windows <= released
            or commit.start >= commit.until
            or until not in (None, commit.start)
            or not _ends_fit(commit, first)
        ):
            raise RefusedError(
                f"{where}: epoch {epoch} does not continue the one before it (release, spec, plan, windows or times "
                "differ); restore the commit records from a copy of the private folder"
            )
        released, until = commit.windows, commit.until


def _ends_fit(commit: Commit, first: Commit) -> bool:
    """Whether an epoch has an end for each of its windows, if the first has, one after the other up to its own."""
    if not commit.ends:
        return not first.ends
    rising = all(before < after for before, after in pairwise((commit.start, *commit.ends)))
    return rising and len(commit.ends) == commit.windows - commit.released and commit.ends[-1] == commit.until


def document_in(content: bytes, where: str, what: str) -> dict[str, Any]:
    """A JSON object of this version.

    Raises:
        RefusedError: it is something else; the message goes on with `what` it should be and what to do.
    """
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise RefusedError(f"{where}: cannot be read as {what}")
    if document.get("version") != VERSION:
        raise RefusedError(f"{where}: of a version that this program does not know; use the program that wrote it")
    return document


def json_of(document: dict[str, Any]) -> bytes:
    return json.dumps(document, indent=1).encode()


@cache
def _adapter() -> TypeAdapter[Commit]:
    return TypeAdapter(Commit)
