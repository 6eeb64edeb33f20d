"""Find new files of a changelog, and send the rows of each file once to every shard.

    in    ticks: anything, about one for each poll          (PeriodicImpulse, Flink's own, or a test's stream)
    out   (shard, bytes)      of `close_windows`: a file batch of each new file, and a mark after each poll

A file is taken when two successive polls find it with the same size and time of change, so files that are still being
written wait. A file that exists at one poll is therefore taken by the next one, which is the meaning of a mark. A
segment of a topic is complete when it is seen, so it is taken at once. One worker reads a whole file and judges it
before it outputs any row: a file with more unusable rows than the spec allows ends the stream, and none of its rows is
part of any window.
"""

import hashlib
import json
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import apache_beam as beam
import pyarrow as pa
from apache_beam.coders import BytesCoder
from apache_beam.io.filesystems import FileSystems
from apache_beam.transforms.userstate import (
    BagRuntimeState,
    BagStateSpec,
    ReadModifyWriteRuntimeState,
    ReadModifyWriteStateSpec,
)
from apache_beam.utils.timestamp import Timestamp

from privacy.counted import counted
from transforms.aggregation.projection import Projection, project
from transforms.aggregation.sharding import shard_table
from transforms.common.batches import dead_letters
from transforms.common.errors import InputError
from transforms.common.ipc import from_bytes, to_bytes
from transforms.common.sinks import write_table
from transforms.sources.changelog import read_split, splits, unreadable
from transforms.sources.columns.layout import Layout
from transforms.sources.columns.normalise import Place
from transforms.sources.columns.usable_rows import UsableRows
from transforms.sources.files.listing import Listed, joined, matching
from transforms.sources.files.opening import UNREADABLE
from transforms.sources.files.topic_segments import is_of_topic
from transforms.sources.freshness import Freshness
from transforms.streams.close_windows import file_batch, mark
from transforms.streams.whole_bundles import keep_bundles_whole

_BATCH_ROWS = 262_144

Sizes = dict[str, list[float]]
"""Path to size and time of change."""


class PollFiles(beam.PTransform):
    """Transform from ticks to file batches and marks.

    Args:
        layout: Its files are those that earlier runs have read; they must not change.
        projection: Columns to read.
        bad_rows: Share of a file's rows that may be unusable.
        diagnostics: Private folder for the dead letters of files.
        shards: Number of shards.
        freshness: States the source's progress; marks are not later than a lag after it. None: marks follow the clock.
        lag: Time after a window's end, in microseconds, that the clock must have passed, but not the source.
        poll: Microseconds between two polls: a tick that comes before half of them have passed is ignored, since ticks
            come in bursts after a delay. 0 for ticks whose own time is the clock, as in tests.
    """

    def __init__(
        self,
        layout: Layout,
        projection: Projection,
        *,
        bad_rows: float,
        diagnostics: str,
        shards: int,
        poll: int,
        freshness: Freshness | None = None,
        lag: int = 0,
    ) -> None:
        super().__init__()
        self._find = _FindDoFn(layout, poll, freshness, lag)
        self._read = _ReadDoFn(replace(layout, files=()), projection, bad_rows, diagnostics, shards)

    def expand(self, ticks: beam.PCollection[Any]) -> beam.PCollection[tuple[int, bytes]]:
        keep_bundles_whole(ticks.pipeline)
        found = (
            ticks
            | "ByOneWorker" >> beam.Map(lambda _: (0, b"")).with_output_types(tuple[int, bytes])
            | "FindNewFiles" >> beam.ParDo(self._find).with_output_types(tuple[int, bytes])
        )
        return (
            found
            | "ShareFiles" >> beam.Reshuffle()
            | "ReadFiles" >> beam.ParDo(self._read).with_output_types(tuple[int, bytes])
        )


class _FindDoFn(beam.DoFn):
    """DoFn that yields (place, file) of each new complete file, and after each poll a mark, (-1, mark)."""

    POLLED = ReadModifyWriteStateSpec("polled", BytesCoder())
    TAKEN = BagStateSpec("taken", BytesCoder())  # large after years, so it is only added to

    def __init__(self, layout: Layout, poll: int, freshness: Freshness | None = None, lag: int = 0) -> None:
        self._layout = layout
        self._lag = lag
        self._poll = poll
        self._freshness = freshness

    def process(
        self,
        _: tuple[int, bytes],
        at: Timestamp = beam.DoFn.TimestampParam,
        polled: ReadModifyWriteRuntimeState = beam.DoFn.StateParam(POLLED),
        taken: BagRuntimeState = beam.DoFn.StateParam(TAKEN),
    ) -> Iterator[tuple[int, bytes]]:
        now = int(time.time() * 1_000_000) if self._poll else at.micros
        before = polled.read()
        last, sent, files, waiting, segments, *known_passed = json.loads(before) if before else self._at_first()
        if last is not None and 0 <= now - last < self._poll // 2:
            return
        source, known = self._layout.source, _sizes(self._layout.files)
        for part in taken.read():
            known |= json.loads(part)
        read, rule = _listed(segments), self._freshness
        said = None if rule is None or rule.by == "newer_file" else rule.passed(())  # read before files are listed
        found = matching(source.paths, taken=read, settings=source.kafka)
        passed = rule.passed(found) if rule is not None and said is None else said
        new, waiting = poll(found, known, waiting)
        for place, file in enumerate(new, files):
            yield place, json.dumps([sent, file.path, file.size, file.updated]).encode()
            sent += 1
        if last is not None:
            yield -1, mark(sent, min([last, *(came + self._lag for came in known_passed)]))
            sent += 1
        plain = [file for file in new if not is_of_topic(file.path)]
        if plain:
            taken.add(json.dumps(_sizes(plain)).encode())
        segments = _sizes(joined([*read, *(file for file in new if is_of_topic(file.path))]))
        later = [now, sent, files + len(new), waiting, segments, *([] if passed is None else [passed])]
        polled.write(json.dumps(later).encode())

    def _at_first(self) -> tuple[None, int, int, Sizes, Sizes]:
        files = self._layout.files
        return None, 0, len(files), {}, _sizes(file for file in files if is_of_topic(file.path))


def _sizes(files: Iterable[Listed]) -> Sizes:
    return {file.path: [file.size, file.updated] for file in files}


def _listed(sizes: Sizes) -> list[Listed]:
    return [Listed(path, int(size), updated) for path, (size, updated) in sizes.items()]


def poll(found: tuple[Listed, ...], taken: Sizes, waiting: Sizes) -> tuple[list[Listed], Sizes]:
    """Return the files to take now, and those that wait for the next poll.

    Args:
        found: Files of this poll.
        taken: Files that were taken earlier.
        waiting: Files that waited after the previous poll.

    Raises:
        InputError: A file has changed since it was taken.
    """
    new, still = [], {}
    for file in found:
        now = [file.size, file.updated]
        if file.path in taken:
            if taken[file.path] != now:
                raise InputError(
                    f"{file.path}: has changed since it was read; restore the file, and put new changes "
                    "into other files"
                )
        elif is_of_topic(file.path) or (waiting.get(file.path) == now and file.size):
            new.append(file)
        else:
            still[file.path] = now
    return new, still


class _ReadDoFn(beam.DoFn):
    def __init__(self, layout: Layout, projection: Projection, bad_rows: float, diagnostics: str, shards: int) -> None:
        self._layout = layout
        self._projection = projection
        self._bad_rows = bad_rows
        self._diagnostics = diagnostics
        self._shards = shards

    def process(self, found: tuple[int, bytes]) -> Iterator[tuple[int, bytes]]:
        place, message = found
        if place < 0:
            for shard in range(self._shards):
                yield shard, message
            return
        number, *listed = json.loads(message)
        file = Listed(*listed)
        parts: dict[int, list[pa.Table]] = defaultdict(list)
        tables, dead, rows_read = read_file(self._layout, self._projection, Place(file.path, place), self._bad_rows)
        if dead.num_rows:
            name = hashlib.sha256(file.path.encode()).hexdigest()[:16]
            write_table(dead, FileSystems.join(self._diagnostics, f"{name}.parquet"))
        for table in tables:
            for shard, rows in shard_table(table, shards=self._shards):
                parts[shard].append(from_bytes(rows))
        for shard in range(self._shards):
            rows = to_bytes(pa.concat_tables(parts[shard])) if parts[shard] else b""
            yield shard, file_batch(number, file, rows, read=(rows_read, dead.num_rows))


def read_file(
    layout: Layout, projection: Projection, place: Place, bad_rows: float
) -> tuple[list[pa.Table], pa.Table, int]:
    """Return all projected rows of a file, its dead letters, and the number of rows read.

    Args:
        layout: How the files are read.
        projection: Columns to read.
        place: File and its number.
        bad_rows: Share of the rows that may be unusable.

    Raises:
        InputError: The file cannot be read, or has more unusable rows than `bad_rows` allows.
    """
    try:
        parts = splits(place, layout.source.format)
    except UNREADABLE as error:
        raise InputError(f"{place.file}: {unreadable(error)}") from None
    tables, rows, letters = [], 0, []
    read = UsableRows(part for split in parts for part in read_split(layout, split, _BATCH_ROWS))
    for batch in read:
        table, positions, reason = project(batch.table, projection)
        letters.append(dead_letters(place.file, batch.row_numbers(positions), reason))
        rows += batch.table.num_rows
        tables.append(table)
    if read.fault is not None:
        raise InputError(f"{place.file}: {read.fault}")
    rows += read.dead.num_rows
    dead = pa.concat_tables([read.dead, *letters]).sort_by("row")
    if dead.num_rows > bad_rows * rows:
        raise InputError(
            f"{place.file}: row {dead['row'][0].as_py()}: {dead['reason'][0].as_py()} ({dead.num_rows} such of "
            f"{counted(rows, 'row')}); changelog.bad_rows allows a share of {bad_rows:g}; nothing of the file was used"
        )
    return [table for table in tables if table.num_rows], dead, rows
