"""`slackwater sanitise`: records out with noise of their own, each once; what that costs; and what they tell."""

import argparse
import re
from collections.abc import Iterator

import pyarrow as pa

from pipelines.epochs.failures import keep_trace
from pipelines.epochs.flags import refuse_any
from pipelines.epochs.results import Result
from pipelines.sanitised.noted import keep_note, refuse_second
from pipelines.sanitised.plan import plan_document, plan_json, plan_text, statement
from pipelines.sanitised.published import PublishedRecords
from pipelines.sanitised.spec import SanitiseSpec, load_sanitise
from pipelines.sanitised.store import NAMES, NAMES_FILE, RECORDS, Sanitised, SanitisedStore
from pipelines.spec.paths import within
from privacy.counted import counted
from transforms.common.batches import Batch
from transforms.common.cloud import refuse_unreachable
from transforms.common.errors import InputError, RefusedError, SlackwaterError, SpecError
from transforms.common.shown_tables import refuse_ending, write_shown
from transforms.common.sinks import write_table
from transforms.sanitised.columns import source_columns
from transforms.sanitised.sanitise import first_of_each, names_of, sanitised
from transforms.sources.changelog import read_split, splits
from transforms.sources.columns.layout import Layout
from transforms.sources.columns.normalise import Place, Skipped
from transforms.sources.files.opening import UNREADABLE
from transforms.sources.inspection import inspect

FILE_ROWS = 1 << 20
"""Records of a file that comes out."""

MOST_PROBLEMS = 10


def sanitise(arguments: argparse.Namespace, flags: list[str]) -> Result:
    refuse_any(flags, "sanitise")
    spec = load_sanitise(arguments.spec)
    if arguments.plan:
        return plan_document(spec), plan_text(spec)
    output = arguments.estimates
    if output is not None:
        _refuse_output(spec, output)
    refuse_unreachable([*spec.output.folders, *spec.source.paths, output])
    store = SanitisedStore(spec.output.public, spec.output.private)
    try:
        document, lines = _released(spec, store)
        if output is not None:
            if not store.open():
                raise RefusedError("--estimates: nothing is sanitised yet, since the files hold no records")
            table = PublishedRecords(spec.output.public).estimates()
            write_shown(table, output, local=lambda moment: moment)
            document |= {"estimates": output}
            made = counted(table.num_rows, "estimate")
            lines.append(f"  {output}: {made}, made from what is published at no further cost")
    except SlackwaterError:
        raise
    except Exception as error:  # its words may quote data
        kept = keep_trace(spec.output.private, error)
        raise SlackwaterError(
            f"sanitise failed with {type(error).__name__}; what was committed stays, and the next run goes on; {kept}"
        ) from None
    return document, "\n".join(lines)


def _released(spec: SanitiseSpec, store: SanitisedStore) -> tuple[dict[str, object], list[str]]:
    commits = store.open()
    if commits and (commits[0].spec_sha256, commits[0].release) != (spec.sha256, spec.release):
        raise RefusedError(
            f"{spec.path}: differs from the spec of the release in {spec.output.private}; a record is sanitised once, "
            "so put it back, or write another spec with other folders: its epsilon and delta then add up with these"
        )
    if not commits:
        refuse_second(spec)
    store.show()  # what a run that died has committed
    store.clean()
    known = store.known(commits)
    attempt = store.begin(len(commits) + 1)
    try:
        made, names, left_out = _write(spec, known, attempt.folder)
        if not made:
            store.discard(attempt)
            document = {"release": spec.release, "records": 0, "left_out": left_out, "files": []}
            return document, [
                f"{spec.release}: nothing new; {counted(left_out, 'row')} of records that are sanitised already"
            ]
        done = Sanitised(
            release=spec.release,
            epoch=attempt.epoch,
            spec_sha256=spec.sha256,
            plan=commits[0].plan if commits else plan_json(spec),
            statement=statement(spec.record),
            epsilon=spec.record.epsilon,
            delta=spec.record.delta,
            records=names,
            left_out=left_out,
        )
        keep_note(spec, store)
        commit = store.commit(attempt, done, made)
    except BaseException:
        store.discard(attempt)
        raise
    store.show()
    keep_note(spec, store)
    paths = store.paths(commit)
    document = {
        "release": spec.release,
        "epoch": commit.epoch,
        "records": commit.records,
        "left_out": left_out,
        "loss": {"epsilon": commit.epsilon, "delta": commit.delta},
        "statement": commit.statement,
        "files": paths,
    }
    again = f"; {counted(left_out, 'row')} left out, of records that are sanitised already" if left_out else ""
    said = f"{spec.release}: epoch {commit.epoch}, {counted(commit.records, 'record')} sanitised{again}"
    return document, [said, commit.statement, *(f"  {path}" for path in paths)]


def _write(spec: SanitiseSpec, known: pa.Array, folder: str) -> tuple[list[str], int, int]:
    """Files of new records in an attempt; their names, how many records, and how many rows were left out."""
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
    """Rows with their names as `entry`, and the columns of the spec.

    Raises:
        InputError: a file or a row cannot be read, or a record has no name. None is left out: that would show.
    """
    layout = _layout(spec)
    columns = source_columns(spec.record)
    problems: list[str] = []
    for number, file in enumerate(layout.files):
        try:
            parts = (
                part for split in splits(Place(file.path, number), spec.source.format) for part in _read(layout, split)
            )
            for part in parts:
                if isinstance(part, Batch):
                    values = {name: part.table[f"after.{name}"] for name in columns}
                    yield pa.table({"entry": part.table["entry"], **values})
                else:
                    problems += [
                        f"{row['file']}: " + (f"row {row['row']}: " if row["row"] else "") + row["reason"]
                        for row in part.slice(0, MOST_PROBLEMS).to_pylist()
                    ]
        except UNREADABLE as error:
            raise InputError(f"{file.path}: the file cannot be read ({type(error).__name__})") from None
        if problems:
            undone = "nothing new was published: a row that is left out would show; mend it, whatever its values are"
            raise InputError("\n".join([*problems[:MOST_PROBLEMS], undone]))


def _read(layout: Layout, split: object) -> Iterator[Batch | pa.Table]:
    return (part for part in read_split(layout, split, 262_144) if not isinstance(part, Skipped))  # type: ignore[arg-type]


def _layout(spec: SanitiseSpec) -> Layout:
    """What the files look like; errors name this spec's keys."""
    try:
        return inspect(spec.source, frozenset(), frozenset(source_columns(spec.record)))
    except SpecError as error:
        text = re.sub(r"changelog\.(path|entry)", r"records.\1", str(error))
        text = re.sub(r"^(changelog\.types|queries):", "columns:", text, flags=re.MULTILINE)
        raise SpecError(f"{spec.path}: {text}") from None


def _refuse_output(spec: SanitiseSpec, output: str) -> None:
    refuse_ending(output, flag="--estimates")
    if within(output, spec.output.public):
        raise SpecError(
            f"--estimates {output}: lies in the public folder, which holds what is published and nothing else"
        )
