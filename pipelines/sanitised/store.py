"""The store of sanitised records: each record is sanitised once, also if runs crash, repeat or race.

A record is identified by its name (the spec's `entry`). Each epoch has only records with new names. The store of all
epochs (`pipelines.store.store`) publishes them. An attempt holds sanitised records, which are published, and their
names, which are private. From its commit on, records with those names are done.

Committed attempts stay, since later epochs need all names. So a lost public side is made again from the private one. If
the private folder is lost, a run is refused if the manifest shows more than is committed, since the names of the
sanitised records are then unknown.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.store.commit import PLAN
from pipelines.store.record import EpochKind, Files
from pipelines.store.store import EpochStore
from privacy.accounting.accounting import Budget
from privacy.codec import LATER
from privacy.json_values import Json
from transforms.common.sinks import read_bytes

RECORDS, NAMES = "records", "names"
NAMES_FILE = "names.parquet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sanitised:
    """Commit record of one epoch. The run supplies the first members; the store adds the last four when it commits.

    Attributes:
        release: name of the release.
        epoch: 1, 2, ...
        spec_sha256: digest of the mechanisms.
        statement: statement of the whole release, in words.
        loss: epsilon and delta of each record.
        records: number of sanitised records. Public.
        left_out: number of rows whose names were done before, or occurred again. Private.
        plan: the published plan of the whole release in epoch 1; empty in all other epochs.
        attempt: id of the attempt that made the files.
        committed_at: ISO 8601, UTC.
        files: files of records by their public names.
        state: the file of names that are done with it. Private.
        plan_sha256: digest of the plan.
        program: version of the program that made the epoch; empty if that version did not state it.
        sampler: version of the samplers of its noise; 0 if that version did not state it.
        disclosure: facts for readers by their names (`pipelines.sanitised.facts`); empty if that version did not state
            them.
    """

    release: str
    epoch: int
    spec_sha256: str
    statement: str
    loss: Budget
    records: int
    left_out: int
    plan: str = ""
    attempt: str = ""
    committed_at: str = ""
    files: Files = field(default_factory=dict)
    state: Files = field(default_factory=dict)
    plan_sha256: str = ""
    program: str = field(default="", metadata=LATER)
    sampler: int = field(default=0, metadata=LATER)
    disclosure: Mapping[str, str] = field(default_factory=dict, metadata=LATER)


def sanitised_store(public: str, private: str) -> EpochStore[Sanitised]:
    """Return the store of sanitised records in two folders."""
    return EpochStore(public, private, SANITISED)


def all_epochs(public: str, private: str) -> tuple[Sanitised, ...]:
    """Return the committed epochs in two folders.

    Raises:
        RefusedError: a file is missing, or differs from the committed one.
    """
    history = sanitised_store(public, private).open()
    return () if history is None else history.commits


def names_done(store: EpochStore[Sanitised], commits: Sequence[Sanitised]) -> pa.Array:
    """Return the names that are done.

    Raises:
        RefusedError: a list of names differs from the committed one.
    """
    found = [pa.array([], pa.string())]
    for commit in commits:
        store.attempts.verify_state(commit)
        for path in store.attempts.state_paths(commit).values():
            found.append(pq.read_table(pa.BufferReader(read_bytes(path)))["name"].combine_chunks())
    return pa.concat_arrays(found)


def _continues(_: Sanitised | None, record: Sanitised) -> bool:
    return record.records >= 1


def _totals(records: Sequence[Sanitised]) -> Json:
    return {"records": sum(record.records for record in records)}


def _texts(first: Sanitised) -> dict[str, str]:
    return {PLAN: first.plan}


SANITISED: EpochKind[Sanitised] = EpochKind(
    record=Sanitised,
    called="a record of sanitised records",
    continues=_continues,
    of_release=("release", "spec_sha256", "plan_sha256", "statement", "loss", "disclosure"),
    of_epoch=("epoch", "attempt", "committed_at", "program", "sampler", "records", "files"),
    private={"left_out": 0, "plan": "", "state": {}},
    totals=_totals,
    texts=_texts,
    shown=(RECORDS,),
    state=NAMES,
    stays=True,
    risk="records would be sanitised a second time",
)
"""The epochs of sanitised records."""
