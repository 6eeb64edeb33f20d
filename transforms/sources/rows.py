"""Read a changelog from a pipeline's rows with a schema, as batches of normalised columns.

    in    rows with a schema                         beam.Row, NamedTuple
    out   Batch, dead letters, counts                as transforms.sources.changelog

Beam makes Arrow tables of the rows, and each is read as a Parquet file of that schema, so that both have one meaning.
Such rows have no places in files: the number of a row is a digest of the row itself, so its treatment depends on no
other row, and a step that runs twice gives it the same number. Everything is private.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Literal

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from apache_beam.transforms.window import GlobalWindows
from apache_beam.typehints.batch import BatchConverter

from transforms.common.batches import DEAD, READ, Batch
from transforms.common.errors import SpecError
from transforms.common.images import digest
from transforms.common.instants import to_microseconds
from transforms.common.joined import giving
from transforms.common.kinds import is_text, one_chunk
from transforms.common.several import Collections
from transforms.common.source import Source
from transforms.sources.changelog import Count
from transforms.sources.columns.layout import Layout
from transforms.sources.columns.normalise import Place, Skipped, normalise
from transforms.sources.columns.usable_rows import UsableRows
from transforms.sources.formats.parquet import raw_of
from transforms.sources.formats.table import FORMATS

ROWS = "rows of the pipeline"
"""Name in place of a file's path."""

_TIME = pa.timestamp("us", "UTC")
_EARLY = pa.scalar(-(2**62), _TIME)  # before every begin


class ReadRows(beam.PTransform):
    """Transform from rows with a schema to batches, with dead letters under the tag `DEAD` and counts under `READ`.

    Args:
        layout: From `transforms.sources.inspection.inspect_rows`.
    """

    def __init__(self, layout: Layout) -> None:
        super().__init__()
        self._layout = layout

    def expand(self, rows: beam.PCollection[Any]) -> Collections:
        read = (
            rows
            | "AllAtOnce" >> beam.WindowInto(GlobalWindows())
            | "ReadRows" >> beam.ParDo(_ReadDoFn(self._layout)).with_outputs(DEAD, READ, main="rows")
        )
        return {"rows": giving(read["rows"], self._layout.source), DEAD: read[DEAD], READ: read[READ]}


class _ReadDoFn(beam.DoFn):
    def __init__(self, layout: Layout) -> None:
        self._layout = layout

    @beam.DoFn.yields_elements
    def process_batch(
        self, batch: pa.Table
    ) -> Iterator[
        Batch | beam.pvalue.TaggedOutput[Literal["dead"], pa.Table] | beam.pvalue.TaggedOutput[Literal["read"], Count]
    ]:
        read = UsableRows(read_rows(batch, self._layout))
        yield from read
        if read.dead.num_rows:
            yield beam.pvalue.TaggedOutput(DEAD, read.dead)
        yield beam.pvalue.TaggedOutput(READ, (ROWS, batch.num_rows, read.dead.num_rows, tuple(read.skipped.items())))


def read_rows(table: pa.Table, layout: Layout) -> Iterator[Batch | Skipped | pa.Table]:
    """Yield batches of the usable rows, tables of dead letters for the others, and counts of rows without a change."""
    whole = np.ones(table.num_rows, dtype=bool)
    flat = table
    while any(pa.types.is_struct(type_) for type_ in flat.schema.types):
        flat = flat.flatten()
    columns = zip(flat.column_names, flat.columns, strict=True)
    number = digest(((name, one_chunk(column)) for name, column in columns), whole).to_numpy().astype(np.int64)
    order = np.argsort(number, kind="stable")
    table = _with_times(table.take(pa.array(order)), layout.source, layout.source.until)
    yield from normalise(raw_of(table, layout), number[order], layout, Place(ROWS, 0), max(1, table.num_rows))


def schema_of(element_type: Any, source: Source) -> pa.Schema:
    """Return the columns of rows as `read_rows` reads them.

    Raises:
        SpecError: The rows have no schema, or one that Beam cannot convert to Arrow.
    """
    try:
        converter = BatchConverter.from_typehints(element_type=element_type, batch_type=pa.Table)
        empty = converter.produce_batch([])
    except (TypeError, ValueError, NotImplementedError):
        raise SpecError(
            "the rows have no schema that Arrow can hold; give beam.Row(...) or a NamedTuple of numbers, texts, "
            "booleans and rows of these, with Optional[...] where there are nulls, and times as text in ISO 8601"
        ) from None
    return _with_times(empty, source, source.time, source.until).schema.remove_metadata()


def source_of(source: Source) -> Source:
    """Return the roles of columns that a spec defines for its files, for rows.

    Raises:
        SpecError: The spec's format does not have rows of changes.
    """
    format_ = FORMATS[source.format]
    if format_.own is not None or format_.snapshots:
        raise SpecError(
            f"changelog.format: {source.format} is not a format of rows; write parquet, and name the rows' columns"
        )
    forms = tuple(form for form in source.forms if form[0] != "owner")
    return replace(source, format="parquet", paths=(ROWS,), forms=forms, nulls=(), kafka=None)


def _with_times(table: pa.Table, source: Source, *names: str | None) -> pa.Table:
    """Convert columns of times to timestamps. Ends that are no times become early ends, and so dead letters."""
    for name in names:
        if name in table.column_names and is_text(table[name].type):
            texts = one_chunk(table[name])
            ticks = to_microseconds(texts, source.timezone)[0].cast(_TIME)
            if name == source.until:  # null is no end
                ticks = pc.if_else(pc.and_(texts.is_valid(), ticks.is_null()), _EARLY, ticks)
            table = table.set_column(table.column_names.index(name), name, ticks)
    return table
