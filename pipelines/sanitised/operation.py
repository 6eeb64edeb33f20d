"""`slackwater sanitise`: publish records with separate noise, each once; plan the cost; and estimate from them."""

import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipelines.common.arguments import refuse_ending, refuse_inside
from pipelines.common.value import Value
from pipelines.common.version import program
from pipelines.epochs.failures import failure
from pipelines.epochs.killed import clean
from pipelines.sanitised.facts import disclosure
from pipelines.sanitised.noted import keep_note, refuse_second
from pipelines.sanitised.published import PublishedRecords
from pipelines.sanitised.published_plan import plan_document, plan_json, plan_text, statement
from pipelines.sanitised.spec import SanitiseSpec, load_sanitise
from pipelines.sanitised.store import (
    NAMES,
    NAMES_FILE,
    RECORDS,
    SANITISED,
    Sanitised,
    names_done,
    sanitised_store,
)
from pipelines.store.record import disclosed
from pipelines.store.store import EpochStore
from privacy.accounting.accounting import Budget
from privacy.counted import counted
from privacy.noise.sampling import SAMPLERS
from transforms.common.cloud import refuse_unreachable
from transforms.common.errors import InputError, RefusedError, SlackwaterError, SpecError
from transforms.common.shown_tables import write_shown
from transforms.common.sinks import write_table
from transforms.sanitised.columns import source_columns
from transforms.sanitised.sanitise import first_of_each, names_of, sanitised
from transforms.sources.changelog import read_split, splits
from transforms.sources.columns.layout import Layout
from transforms.sources.columns.normalise import Place
from transforms.sources.columns.usable_rows import UsableRows
from transforms.sources.files.opening import UNREADABLE
from transforms.sources.inspection import inspect, refuse_changed

FILE_ROWS = 1 << 20
"""Most records of a published file."""

MOST_PROBLEMS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Records(Value):
    """Result of a run.

    Attributes:
        release: Name of the release.
        records: Number of records that this run sanitised; 0 if there was nothing new.
        left_out: Number of rows of records that were sanitised before, which are left out. Private.
        files: Paths of the published files of this epoch.
        commit: The epoch, without its private members; None if there was nothing new.
        estimates: Path of the file of estimates, and their number; None if it was not requested.
    """

    release: str
    records: int
    left_out: int
    files: tuple[str, ...] = field(default=(), repr=False)
    commit: Sanitised | None = None
    estimates: tuple[str, int] | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the document of `slackwater sanitise --json`."""
        document: dict[str, Any] = {"release": self.release, "records": self.records, "left_out": self.left_out}
        if (commit := self.commit) is not None:
            document |= {"epoch": commit.epoch, "statement": commit.statement}
            document |= {"loss": asdict(commit.loss)}
        document["files"] = [*self.files]
        return document if self.estimates is None else {**document, "estimates": self.estimates[0]}

    def text(self) -> str:
        """Return the text that `slackwater sanitise` prints."""
        rows = counted(self.left_out, "row")
        lines = [f"{self.release}: nothing new; {rows} of records that are sanitised already"]
        if (commit := self.commit) is not None:
            again = f"; {rows} left out, of records that are sanitised already" if self.left_out else ""
            records = counted(self.records, "record")
            lines = [f"{self.release}: epoch {commit.epoch}, {records} sanitised{again}", commit.statement]
        lines += [f"  {path}" for path in self.files]
        if self.estimates is not None:
            file, rows_made = self.estimates
            lines.append(f"  {file}: {counted(rows_made, 'estimate')}, from published records at no further cost")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRecords(Value):
    """Cost of sanitising records, and the error of each attribute.

    Attributes:
        spec: Spec of the records.
    """

    spec: SanitiseSpec

    def to_json(self) -> dict[str, Any]:
        """Return the document of `slackwater sanitise --plan --json`."""
        return plan_document(self.spec)

    def text(self) -> str:
        """Return the text that `slackwater sanitise --plan` prints."""
        return plan_text(self.spec)


def plan_records(spec: str | Path) -> PlannedRecords:
    """Plan the sanitising of records: its cost and the error of each attribute. Reads no records.

    Args:
        spec: Path of a spec of sanitised records.

    Raises:
        SpecError: The spec is wrong.
    """
    return PlannedRecords(spec=load_sanitise(spec))


def sanitise(spec: str | Path, *, estimates: str | Path | None = None) -> Records:
    """Add noise to single records, each once, and publish them. Published records are final.

    Args:
        spec: Path of a spec of sanitised records.
        estimates: Write estimates from all sanitised records to this file.

    Raises:
        SpecError: The spec is wrong, or the file cannot be there.
        InputError: The records cannot be used.
        RefusedError: The folders hold another release, or another run was first.
    """
    one, output = load_sanitise(spec), None if estimates is None else str(estimates)
    refuse_ending("estimates", output)
    refuse_inside("estimates", output, one.output.public)
    refuse_unreachable([*one.output.folders, *one.source.paths, output])
    store = sanitised_store(one.output.public, one.output.private)
    try:
        made = _released(one, store)
        if output is None:
            return made
        if not store.open():
            raise RefusedError("--estimates: nothing is sanitised yet, since the files hold no records")
        table = PublishedRecords(one.output.public).estimates()
        write_shown(table, output, local=lambda moment: moment)
        return replace(made, estimates=(output, table.num_rows))
    except SlackwaterError:
        raise
    except Exception as error:  # its message may quote data
        stands = "committed records stay, and the next run continues"
        raise failure(error, "sanitise", stands, one.output.private) from None


def _released(spec: SanitiseSpec, store: EpochStore[Sanitised]) -> Records:
    history = store.open()
    commits = () if history is None else history.commits
    if commits and (commits[0].spec_sha256, commits[0].release) != (spec.sha256, spec.release):
        raise RefusedError(
            f"{spec.path}: differs from the spec of the release in {spec.output.private}; a record is sanitised once, "
            "so restore it, or write another spec with other folders: its epsilon and delta then add up with these"
        )
    if not commits:
        refuse_second(spec)
    store.show()  # publish what a killed run has committed
    clean(store)
    known = names_done(store, commits)
    attempt = store.begin(len(commits) + 1)
    try:
        made, names, left_out = _write(spec, known, attempt.folder)
        if not made:
            store.discard(attempt)
            return Records(release=spec.release, records=0, left_out=left_out)
        facts = disclosure(spec.record, dict(spec.about), program=program(), sampler=SAMPLERS)
        done = Sanitised(
            release=spec.release,
            epoch=attempt.epoch,
            spec_sha256=spec.sha256,
            plan="" if commits else plan_json(spec),
            statement=statement(spec.record),
            loss=Budget(epsilon=spec.record.epsilon, delta=spec.record.delta),
            records=names,
            left_out=left_out,
            program=program(),
            sampler=SAMPLERS,
            disclosure={} if facts == disclosed(commits) else facts,
        )
        keep_note(spec, store)
        commit = store.commit(attempt, done, {RECORDS: made, NAMES: [NAMES_FILE]})
    except BaseException:
        store.discard(attempt)
        raise
    store.show()
    keep_note(spec, store)
    return Records(
        release=spec.release,
        records=commit.records,
        left_out=left_out,
        files=tuple(store.shown.paths(commit)),
        commit=SANITISED.public(commit),
    )


def _write(spec: SanitiseSpec, known: pa.Array, folder: str) -> tuple[list[str], int, int]:
    """Write new records into an attempt; return names of files, and the numbers of records and of rows left out."""
    made: list[str] = []
    waiting: list[pa.Table] = []
    new: list[pa.Array] = []
    left_out = 0

    def write() -> None:
        made.append(f"part-{len(made):05d}.{spec.output.format}")
        write_table(pa.concat_tables(waiting), f"{folder}/{RECORDS}/{made[-1]}", format_=spec.output.format)
        waiting.clear()

    for batch in _batches(spec):
        names = names_of(batch, "entry")
        rows = pa.array(first_of_each(names, known))
        left_out += len(names) - len(rows)
        if len(rows):
            waiting.append(sanitised(batch.take(rows), spec.record, separator=spec.separator))
            new.append(names.take(rows))
            known = pa.concat_arrays([known, new[-1]])
        if sum(table.num_rows for table in waiting) >= FILE_ROWS:
            write()
    if waiting:
        write()
    if made:
        write_table(pa.table({"name": pa.concat_arrays(new)}), f"{folder}/{NAMES}/{NAMES_FILE}")
    return made, sum(map(len, new)), left_out


def _batches(spec: SanitiseSpec) -> Iterator[pa.Table]:
    """Yield rows with their names as `entry`, and the columns of the spec.

    Raises:
        InputError: A file or row cannot be read, a file changes meanwhile, or a record has no name. Rows are never left
            out for that: it would reveal something about them.
    """
    layout = _layout(spec)
    columns = source_columns(spec.record)
    for number, file in enumerate(layout.files):
        try:
            parts = splits(Place(file.path, number), spec.source.format)
            read = UsableRows(part for split in parts for part in read_split(layout, split, 262_144))
            for batch in read:
                values = {name: batch.table[f"after.{name}"] for name in columns}
                yield pa.table({"entry": batch.table["entry"], **values})
        except UNREADABLE as error:
            raise InputError(f"{file.path}: the file cannot be read ({type(error).__name__})") from None
        if read.dead.num_rows:
            problems = [
                f"{row['file']}: " + (f"row {row['row']}: " if row["row"] else "") + row["reason"]
                for row in read.dead.slice(0, MOST_PROBLEMS).to_pylist()
            ]
            undone = "nothing new was published, since a row that is left out would be visible; correct it"
            raise InputError("\n".join([*problems, undone]))
    refuse_changed(layout)


def _layout(spec: SanitiseSpec) -> Layout:
    """Return the layout of the files; errors name the keys of this spec."""
    try:
        return inspect(spec.source, frozenset(), frozenset(source_columns(spec.record)))
    except SpecError as error:
        text = re.sub(r"changelog\.(path|entry)", r"records.\1", str(error))
        text = re.sub(r"^(changelog\.types|queries):", "columns:", text, flags=re.MULTILINE)
        raise SpecError(f"{spec.path}: {text}") from None
