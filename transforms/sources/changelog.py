"""Read a changelog of any format as batches of normalised columns.

    in    a pipeline
    out   Batch(file, first_row, table)              normalised rows (transforms.sources.columns.normalise)
    dead  pa.Table(file, row, reason)                unusable rows and files; row null: the whole file
    read  (file, rows read, rows dead, skipped)      one for each split; a dead file counts as one dead row; skipped
                                                     is (reason, rows) of rows that are no changes, not counted as read

The rows of snapshots are the changes from one to the next (transforms.sources.snapshots). Files are cut into splits
(runs of Parquet row groups, else whole files) that workers share. Everything is private.
"""

from collections.abc import Iterator
from typing import Literal

import apache_beam as beam
import pyarrow as pa

from transforms.common import arrow_coders, progress
from transforms.common.batches import DEAD, MOST_DEAD, READ, TOO_MANY_DEAD, Batch, dead_file, dead_letters
from transforms.common.joined import giving
from transforms.common.prefetch import prefetch
from transforms.common.several import Collections
from transforms.common.source import Source
from transforms.sources.columns.layout import Layout
from transforms.sources.columns.normalise import Place
from transforms.sources.columns.usable_rows import UsableRows
from transforms.sources.files.opening import UNREADABLE, why
from transforms.sources.formats.format import Parts, Split
from transforms.sources.formats.table import FORMATS
from transforms.sources.snapshots import CompareSnapshots

Count = tuple[str, int, int, tuple[tuple[str, int], ...]]
"""(file, rows read, rows dead, rows skipped as (reason, rows))."""

__all__ = ["DEAD", "READ", "Batch", "ReadChangelog", "Source", "arrow_coders", "dead_letters"]


class ReadChangelog(beam.PTransform):
    """Transform that reads batches of a changelog, with dead letters under the tag `DEAD` and counts under `READ`.

    Args:
        layout: From `transforms.sources.inspection.inspect`.
        batch_rows: Most rows of a batch.
    """

    def __init__(self, layout: Layout, batch_rows: int = 262_144) -> None:
        super().__init__()
        self._layout = layout
        self._batch_rows = batch_rows

    def expand(self, begin: beam.pvalue.PBegin) -> Collections:
        layout = self._layout
        listed = enumerate(layout.base + layout.files, layout.earlier - len(layout.base))
        places = [Place(file.path, number) for number, file in listed]
        splits = (
            begin
            | "Files" >> beam.Create(places, reshuffle=False)
            | "CutIntoSplits" >> beam.ParDo(_CutDoFn(self._layout.source.format)).with_outputs(DEAD, main="splits")
        )
        read = (
            splits["splits"]
            | "ShareAmongWorkers" >> beam.Reshuffle()
            | "ReadSplits"
            >> beam.ParDo(_ReadDoFn(self._layout, self._batch_rows)).with_outputs(DEAD, READ, main="rows")
        )
        rows, dead = read["rows"], [splits[DEAD], read[DEAD]]
        if layout.snapshots:
            compared = rows | CompareSnapshots(layout)
            rows, dead = compared["rows"], [*dead, compared[DEAD]]
        giving(rows, layout.source)
        return {"rows": rows, DEAD: dead | "AllDeadLetters" >> beam.Flatten(), READ: read[READ]}


def splits(place: Place, format_: str) -> list[Split]:
    """Return the parts of a file.

    Raises:
        One of `UNREADABLE`.
    """
    return FORMATS[format_].split(place)


def unreadable(error: Exception) -> str:
    """Return why a file that cannot be cut into splits is dead."""
    return why(error, "the file cannot be read ({}); it may be truncated or gone")


class _CutDoFn(beam.DoFn):
    def __init__(self, format_: str) -> None:
        self._format = format_

    def process(self, place: Place) -> Iterator[Split | beam.pvalue.TaggedOutput[Literal["dead"], pa.Table]]:
        try:
            yield from splits(place, self._format)
        except UNREADABLE as error:
            yield beam.pvalue.TaggedOutput(DEAD, dead_file(place.file, unreadable(error)))


class _ReadDoFn(beam.DoFn):
    def __init__(self, layout: Layout, batch_rows: int) -> None:
        self._layout = layout
        self._batch_rows = batch_rows

    def process(
        self, split: Split
    ) -> Iterator[
        Batch | beam.pvalue.TaggedOutput[Literal["dead"], pa.Table] | beam.pvalue.TaggedOutput[Literal["read"], Count]
    ]:
        usable, read = 0, UsableRows(prefetch(read_split(self._layout, split, self._batch_rows)))
        for batch in read:
            usable += batch.table.num_rows
            progress.advance("read", batch.table.num_rows)
            yield batch
        dead, skipped = read.dead, tuple(sorted(read.skipped.items()))
        if dead.num_rows:
            yield beam.pvalue.TaggedOutput(DEAD, dead)
        yield beam.pvalue.TaggedOutput(READ, (split.place.file, usable + dead.num_rows, dead.num_rows, skipped))


def read_split(layout: Layout, split: Split, batch_rows: int) -> Parts:
    """Yield batches, tables of dead letters, and skipped rows of one split.

    A split with more than `MOST_DEAD` dead letters ends with one dead letter of the file: dead letters are held in
    memory, and a small compressed file can hold any number of broken rows.

    Args:
        layout: How the files are read.
        split: Part of a file.
        batch_rows: Most rows of a batch.
    """
    dead = 0
    for part in FORMATS[layout.source.format].read(layout, split, batch_rows):
        dead += part.num_rows if isinstance(part, pa.Table) else 0
        if dead > MOST_DEAD:
            yield dead_file(split.place.file, TOO_MANY_DEAD)
            return
        yield part
