"""The commit record of an epoch of a release, and the check that it continues the previous one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from operator import attrgetter

from pipelines.spec.public import public_spec
from pipelines.store.record import EpochKind, Files
from privacy.accounting.accounting import Budget
from privacy.codec import LATER
from privacy.json_values import Json
from transforms.aggregation.shard_state import STATE
from transforms.release.release import ESTIMATES, NODES

SPEC = "spec.yaml"
PLAN = "plan.json"


@dataclass(frozen=True, slots=True)
class ReadFile:
    """A file of the changelog as this epoch read it: size in bytes, and time or version of the stored file."""

    path: str
    size: int
    updated: str


@dataclass(frozen=True, slots=True)
class FoundKeys:
    """Keys that a query found at the end of one window, which is also given in microseconds since 1970."""

    query: str
    window: int
    until: int
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """Commit record of one epoch. The run supplies the first members; the store adds attempt, time, files and state.

    Attributes:
        release: name of the release.
        epoch: 1, 2, ...
        spec_sha256: digest of the frozen spec's content.
        spec: the frozen spec's text. Private; pipelines.spec.public makes the public version from that of epoch 1.
        released: windows released before this epoch.
        windows: windows released once it is committed, more than before.
        start: start of its first window, which is the end of the previous epoch; microseconds since 1970.
        until: end of its last window; microseconds since 1970.
        loss: epsilon and delta of the whole release, as the manifest has them. Public.
        statement: statement of the whole release, in words. Public.
        sources: changelog files that this epoch read. Private.
        plan: the published plan of the whole release in epoch 1; empty in all other epochs. Public.
        attempt: id of the attempt that made the files.
        committed_at: ISO 8601, UTC.
        files: nodes and estimates by their public names.
        state: carries by their names in the attempt's folder `state`. Private.
        plan_sha256: digest of the plan. Public.
        ends: ends of its windows, if these are those of a calendar; otherwise empty. Public.
        program: version of the program that made the epoch; empty if that version did not state it. Public.
        sampler: version of the samplers of its noise; 0 if that version did not state it. Public.
        disclosure: facts about the release by their names, and texts for its page (`pipelines.disclosure.facts`), in
            the first epoch and in each in which they have changed; otherwise empty. Public.
        witnessed: whether the spec named a witness. Public.
        found: keys that were found in its windows (`by: {town: {discover: true}}`), as its files show them. Public.
    """

    release: str
    epoch: int
    spec_sha256: str
    spec: str
    released: int
    windows: int
    start: int
    until: int
    loss: Budget
    statement: str
    sources: tuple[ReadFile, ...] = ()
    plan: str = ""
    attempt: str = ""
    committed_at: str = ""
    files: Files = field(default_factory=dict)
    state: Files = field(default_factory=dict)
    plan_sha256: str = ""
    ends: tuple[int, ...] = ()
    program: str = field(default="", metadata=LATER)
    sampler: int = field(default=0, metadata=LATER)
    disclosure: Mapping[str, str] = field(default_factory=dict, metadata=LATER)
    witnessed: bool = field(default=False, metadata=LATER)
    found: tuple[FoundKeys, ...] = field(default=(), metadata=LATER)


def _continues(before: Commit | None, commit: Commit) -> bool:
    """Whether an epoch's windows and times begin where those before it ended, and its ends fit them."""
    released = 0 if before is None else before.windows
    return (
        commit.released == released < commit.windows
        and commit.start < commit.until
        and (before is None or (before.until == commit.start and bool(before.ends) == bool(commit.ends)))
        and (not commit.ends or _ends_fit(commit))
    )


def _ends_fit(commit: Commit) -> bool:
    """Whether an epoch has an end for each of its windows, one after the other up to its own."""
    rising = all(before < after for before, after in pairwise((commit.start, *commit.ends)))
    return rising and len(commit.ends) == commit.windows - commit.released and commit.ends[-1] == commit.until


def _totals(commits: Sequence[Commit]) -> Json:
    first, last = commits[0], commits[-1]
    return {"windows": last.windows, "start": first.start, "until": last.until}


def _texts(first: Commit) -> dict[str, str]:
    return {PLAN: first.plan, SPEC: public_spec(first.spec)}


RELEASE: EpochKind[Commit] = EpochKind(
    record=Commit,
    called="a commit record",
    continues=_continues,
    of_release=("release", "spec_sha256", "plan_sha256", "statement", "loss", "disclosure"),
    of_epoch=(
        *("epoch", "attempt", "committed_at", "program", "sampler", "witnessed"),
        *("released", "windows", "start", "until", "ends", "files", "found"),
    ),
    private={"spec": "", "sources": [], "plan": "", "state": {}},
    totals=_totals,
    texts=_texts,
    shown=(NODES, ESTIMATES),
    state=STATE,
    stays=False,
    risk="units would contribute again, and noise would be sampled a second time",
    witnessed=attrgetter("witnessed"),
)
"""The epochs of a release."""
