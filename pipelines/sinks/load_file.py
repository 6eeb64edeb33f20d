"""The load file of an epoch: its public rows of one side as one Parquet file, with release and epoch in front.

Only columns that the spec publishes are ever read, and the file is compared with them before it is sent.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipelines.spec.sinks import TableSide
from pipelines.store.commit import Commit
from transforms.aggregation.queries import Query
from transforms.common.errors import RefusedError
from transforms.common.output_formats import read_published
from transforms.release.published_columns import estimates_types, nodes_types

_TYPES: Mapping[TableSide, Callable[[Sequence[Query]], dict[str, pa.DataType]]] = {
    "estimates": estimates_types,
    "nodes": nodes_types,
}

END: Mapping[TableSide, str] = {"estimates": "window_end", "nodes": "node_end"}
"""Column with the end of a row's time, by which the epoch of the row is known."""


def load_schema(side: TableSide, queries: Sequence[Query]) -> pa.Schema:
    """Return the columns of a table of this side."""
    return pa.schema([("release", pa.string()), ("epoch", pa.int64()), *_TYPES[side](queries).items()])


def rows_of(
    content: bytes, commit: Commit, *, side: TableSide, format_: str, schema: pa.Schema, mixed: bool
) -> pa.Table:
    """Return the rows of an epoch in a public file.

    Args:
        content: Content of the file.
        commit: Commit of the epoch.
        side: Side of the file.
        format_: Format of the file.
        schema: Columns of the table.
        mixed: Whether the file also has rows of other epochs, because it is compacted.

    Raises:
        RefusedError: The file has other columns or types.
    """
    types = {field.name: field.type for field in schema if field.name not in ("release", "epoch")}
    try:
        table = read_published(content, format_, types)
    except ValueError:
        raise RefusedError(
            f"a file of {side} of epoch {commit.epoch} has other columns than the spec says; nothing of it is loaded"
        ) from None
    if mixed:
        ends = table.column(END[side]).cast(pa.int64())
        own = pc.less_equal(ends, commit.until)
        if commit.epoch > 1:  # the first epoch also has rows at its start: the initial level
            own = pc.and_(own, pc.greater(ends, commit.start))
        table = table.filter(own)
    table = table.add_column(0, "epoch", pa.repeat(pa.scalar(commit.epoch, pa.int64()), table.num_rows))
    return table.add_column(0, "release", pa.repeat(commit.release, table.num_rows))


def write_load_file(tables: Iterable[pa.Table], file: BinaryIO, schema: pa.Schema) -> int:
    """Write tables one after the other, so that only one is in memory; return the number of rows.

    Args:
        tables: Rows to write.
        file: File to write to; afterwards its position is the start.
        schema: Columns of the file.

    Raises:
        RefusedError: The written file has another schema or number of rows.
    """
    rows = 0
    with pq.ParquetWriter(file, schema) as writer:
        for table in tables:
            writer.write_table(table)
            rows += table.num_rows
    file.seek(0)
    with pq.ParquetFile(file) as written:
        if written.schema_arrow != schema or written.metadata.num_rows != rows:
            raise RefusedError("the load file is not what the spec says, so it is not sent; make room in TMPDIR")
    file.seek(0)
    return rows
