"""Read a changelog of any format as batches of normalised columns.

    in    a pipeline
    out   Batch(file, first_row, table)              normalised rows (transforms.normalise)
    dead  pa.Table(file, row, reason)                rows and files that cannot be used; row null: the whole file
    read  (file, rows read, rows dead)               one for each split; a dead file counts as one dead row

Files are cut into splits (runs of Parquet row groups, else whole files) that workers share. Everything is private.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import apache_beam as beam
import pyarrow as pa

from transforms import arrow_coders, files, progress
from transforms.batches import DEAD, READ, Batch, dead_file, dead_letters
from transforms.csv_files import read_csv
from transforms.json_files import read_json_lines
from transforms.layout import Layout
from transforms.normalise import Place
from transforms.parquet_files import RowGroups, read_parquet, runs
from transforms.prefetch import prefetch
from transforms.source import Source

Count = tuple[str, int, int]
"""(file, rows read, rows dead)."""

__all__ = ["DEAD", "READ", "Batch", "ReadChangelog", "Source", "arrow_coders", "dead_letters"]


@dataclass(frozen=True, slots=True)
class Split:
    """A part of a file that one worker reads; `run` only for Parquet."""

    place: Place
    run: RowGroups | None


class ReadChangelog(beam.PTransform):
    """Batches of a changelog; dead letters under the tag `DEAD`, counts under `READ`.

    Args:
        layout: from `transforms.layout.inspect`.
        batch_rows: the most rows of a batch.
    """

    def __init__(self, layout: Layout, batch_rows: int = 262_144) -> None:
        super().__init__()
        self._layout = layout
        self._batch_rows = batch_rows

    def expand(self, begin: beam.pvalue.PBegin) -> dict[str, beam.PCollection]:
        places = [Place(file.path, number) for number, file in enumerate(self._layout.files, self._layout.earlier)]
        splits = (
            begin
            | "Files" >> beam.Create(places)
            | "CutIntoSplits" >> beam.ParDo(_CutDoFn(self._layout.source.format)).with_outputs(DEAD, main="splits")
        )
        read = (
            splits["splits"]
            | "ShareAmongWorkers" >> beam.Reshuffle()
            | "ReadSplits"
            >> beam.ParDo(_ReadDoFn(self._layout, self._batch_rows)).with_outputs(DEAD, READ, main="rows")
        )
        dead = (splits[DEAD], read[DEAD]) | "AllDeadLetters" >> beam.Flatten()
        return {"rows": read["rows"], DEAD: dead, READ: read[READ]}


class _CutDoFn(beam.DoFn):
    def __init__(self, format_: str) -> None:
        self._format = format_

    def process(self, place: Place) -> Iterator[Split | beam.pvalue.TaggedOutput[Literal["dead"], pa.Table]]:
        if self._format != "parquet":
            yield Split(place, None)
            return
        try:
            yield from (Split(place, run) for run in runs(place.file))
        except files.UNREADABLE as error:
            reason = f"the file cannot be read ({type(error).__name__}); it may be truncated or gone"
            yield beam.pvalue.TaggedOutput(DEAD, dead_file(place.file, reason))


class _ReadDoFn(beam.DoFn):
    def __init__(self, layout: Layout, batch_rows: int) -> None:
        self._layout = layout
        self._batch_rows = batch_rows

    def process(
        self, split: Split
    ) -> Iterator[
        Batch | beam.pvalue.TaggedOutput[Literal["dead"], pa.Table] | beam.pvalue.TaggedOutput[Literal["read"], Count]
    ]:
        usable = dead = 0
        for part in prefetch(read_split(self._layout, split, self._batch_rows)):
            if isinstance(part, Batch):
                usable += part.table.num_rows
                progress.advance("read", part.table.num_rows)
                yield part
            elif part.num_rows:
                dead += part.num_rows
                yield beam.pvalue.TaggedOutput(DEAD, part)
        yield beam.pvalue.TaggedOutput(READ, (split.place.file, usable + dead, dead))


def read_split(layout: Layout, split: Split, batch_rows: int) -> Iterator[Batch | pa.Table]:
    """The kernel: batches and tables of dead letters of one split."""
    if split.run is not None:
        return read_parquet(layout, split.place, split.run, batch_rows)
    read = {"csv": read_csv, "jsonl": read_json_lines}[layout.source.format]
    return read(layout, split.place, batch_rows)
