"""The load file of an epoch: its public rows of one side as one Parquet file, with release and epoch before them.

Only columns that the spec says are published are ever read, and what is written is held against them before it is sent.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import BinaryIO, Literal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipelines.store.commit import Commit
from transforms.aggregation.queries import Query
from transforms.common.errors import RefusedError
from transforms.common.published_files import read_published
from transforms.common.sinks import OutputFormat
from transforms.release.published_columns import estimates_types, nodes_types

Side = Literal["estimates", "nodes"]

_TYPES: Mapping[Side, Callable[[Sequence[Query]], dict[str, pa.DataType]]] = {
    "estimates": estimates_types,
    "nodes": nodes_types,
}

END: Mapping[Side, str] = {"estimates": "window_end", "nodes": "node_end"}
"""The column that says when a row came out: at that time an epoch had closed it."""


def load_schema(side: Side, queries: Sequence[Query]) -> pa.Schema:
    """The columns of a table of this side."""
    return pa.schema([("release", pa.string()), ("epoch", pa.int64()), *_TYPES[side](queries).items()])


def rows_of(
    content: bytes, commit: Commit, *, side: Side, format_: OutputFormat, schema: pa.Schema, mixed: bool
) -> pa.Table:
    """The rows of an epoch that a public file holds.

    Args:
        mixed: whether it holds rows of other epochs too, since they are compacted.

    Raises:
        RefusedError: the file has other columns, or others of their types.
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
        if commit.epoch > 1:  # the first one has also what stands at its start: the initial level
            own = pc.and_(own, pc.greater(ends, commit.start))
        table = table.filter(own)
    table = table.add_column(0, "epoch", pa.repeat(pa.scalar(commit.epoch, pa.int64()), table.num_rows))
    return table.add_column(0, "release", pa.repeat(commit.release, table.num_rows))


def write_load_file(tables: Iterable[pa.Table], file: BinaryIO, schema: pa.Schema) -> int:
    """One table after the other, so that one is in memory; how many rows. The file is at its start then.

    Raises:
        RefusedError: what was written is not of the schema, or has another number of rows.
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
