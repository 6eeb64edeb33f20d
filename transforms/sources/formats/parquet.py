"""Parquet changelogs: runs of row groups, of which only the needed columns are read.

Whether a state exists can depend on columns that nothing else needs: these are read only for row groups with a row
whose needed columns are all null. If the files hold states before, all columns that both sides have are read, a few at
a time, for the digests of the whole images (transforms.common.images).
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from transforms.common.batches import Batch, dead_file
from transforms.common.images import IMAGE, digest, shared
from transforms.common.kinds import any_valid, is_text, one_chunk, to_mask
from transforms.common.source import Source
from transforms.sources.columns.layout import Layout
from transforms.sources.columns.normalise import Place, normalise
from transforms.sources.columns.sides import Side, find, struct_fields
from transforms.sources.files.opening import UNREADABLE, open_random, why
from transforms.sources.formats.format import FirstRows, Format, RowGroups, Split
from transforms.sources.formats.parquet_pages import refuse_large

TRUNCATES = b"slackwater.truncates"
"""Key in the metadata of a schema: rows without an entry are truncates."""

_RUN_ROWS = 1 << 20  # least rows of a split, if its file has them
_MOST_ROWS = 1 << 23  # rows of a row group that are read at once
_AT_ONCE = 8  # columns that are read only for the digests: files can have hundreds


def _sample(_: Source, path: str) -> FirstRows:
    with open_random(path) as stream:
        return pq.read_schema(stream), None


def _rows(path: str) -> int:
    with open_random(path) as stream:
        return int(pq.read_metadata(stream).num_rows)


def _is_struct(name: str, schema: pa.Schema) -> bool:
    type_ = schema.types[schema.names.index(name)] if name in schema.names else None
    return type_ is not None and bool(pa.types.is_struct(type_) or pa.types.is_null(type_))


def _split(place: Place) -> list[Split]:
    """Return runs of row groups that workers can read separately; empty for a file without rows.

    Raises:
        One of `UNREADABLE`.
    """
    with open_random(place.file) as stream:
        metadata = pq.read_metadata(stream)
    found: list[Split] = []
    first, row, rows = 0, 1, 0
    for group in range(metadata.num_row_groups):
        rows += metadata.row_group(group).num_rows
        if rows >= _RUN_ROWS or group == metadata.num_row_groups - 1:
            found.append(Split(place, RowGroups(first, group + 1, row)))
            first, row, rows = group + 1, row + rows, 0
    return found


def _read(layout: Layout, split: Split, batch_rows: int) -> Iterator[Batch | pa.Table]:
    """Yield batches and dead letters of a run of row groups; a fault of the file is one dead letter."""
    place, run = split.place, split.run
    assert run is not None
    try:
        with open_random(place.file) as stream:
            metadata = pq.read_metadata(stream)
            schema = pq.ParquetFile(stream, metadata=metadata).schema_arrow
            fault = layout.fault(schema)
            if fault is not None:
                yield dead_file(place.file, fault)
                return
            texts = _texts(schema, layout)
            file = pq.ParquetFile(stream, metadata=metadata, read_dictionary=texts, pre_buffer="://" in place.file)
            row = run.row
            for group in range(run.first, run.last):
                for raw in _parts(stream, file, group, layout, texts):
                    numbers = np.arange(row, row + raw.num_rows)
                    yield from normalise(raw, numbers, layout, place, batch_rows)
                    row += raw.num_rows
    except UNREADABLE as error:
        yield dead_file(place.file, why(error, "the file cannot be read ({}); it may be truncated or gone"))


def _parts(
    stream: pa.NativeFile, file: pq.ParquetFile, group: int, layout: Layout, texts: list[str]
) -> Iterator[pa.Table]:
    """Yield the raw tables of a row group: one, or several of a row group with very many rows.

    Args:
        stream: Stream of the file.
        file: The file, which reads `texts` as dictionaries.
        group: Number of the row group.
        layout: How the files are read.
        texts: Paths of `_texts`.

    Raises:
        OversizeError: The row group would take too much memory.
    """
    rows = file.metadata.row_group(group).num_rows
    schema = file.schema_arrow
    read = _columns(schema, layout) if rows <= _MOST_ROWS else schema.names
    refuse_large(stream, file, group, read, [name for name in read if name not in texts])
    if rows <= _MOST_ROWS:
        yield _raw(file, group, layout)
        return
    for batch in file.iter_batches(batch_size=_RUN_ROWS, row_groups=[group]):
        yield raw_of(pa.Table.from_batches([batch], schema), layout)


def _columns(schema: pa.Schema, layout: Layout) -> list[str]:
    """Return the names of all columns that `_raw` can read, with those of structs as one."""
    both, states = _imaged(schema, layout), [name for name, _ in layout.states]
    found = list(layout.roles.values())
    for side in layout.sides:
        found += [side.name] if side.struct else [*map(side.path, [*both, *states]), *_rest(side, layout, schema)]
    return list(dict.fromkeys(found))


def _texts(schema: pa.Schema, layout: Layout) -> list[str]:
    """Return paths of the texts in states: they are read as dictionaries, so that each word is processed once."""
    both = _imaged(schema, layout)
    read = [side.path(column) for side in layout.sides for column in {*both, *(name for name, _ in layout.states)}]
    read += [path for side in layout.sides for path in _rest(side, layout, schema)]
    return [path for path in read if is_text(find(schema, path, layout.sides) or pa.null())]


def _imaged(schema: pa.Schema, layout: Layout) -> list[str]:
    """Return the columns of states for digests; empty if there are no states before."""
    if len(layout.sides) == 1:
        return []
    found = [
        [field.name for field in struct_fields(schema, side)]
        if side.struct
        else [name.removeprefix(side.name) for name in layout.members(side, schema.names)]
        for side in layout.sides
    ]
    return shared([names for names in found if names] or [[]])  # a struct that is null in all rows has no fields


def _raw(file: pq.ParquetFile, group: int, layout: Layout) -> pa.Table:
    """Return the raw table (see `normalise`) of one row group."""
    schema = file.schema_arrow
    wanted = set(layout.roles.values())
    for side in layout.sides:
        columns = {side.path(column) for column, _ in layout.states}
        wanted |= columns if not side.struct or (columns and struct_fields(schema, side)) else {side.name}
    table = file.read_row_group(group, columns=sorted(wanted))
    raw = {name: one_chunk(table[column]) for name, column in layout.roles.items()}
    if TRUNCATES in (schema.metadata or {}):
        raw["truncate"] = raw["entry"].is_null()
    for side in layout.sides:
        states = {column: _column(table, side, column) for column, _ in layout.states}
        raw[side.side] = pa.array(_exists(file, group, side, layout, states, table.num_rows))
        raw |= {f"{side.side}.{column}": values for column, values in states.items()}
    if len(layout.sides) == 2:
        for side in layout.sides:
            images = _states(file, group, side, _imaged(schema, layout), raw)
            raw[f"{IMAGE}.{side.side}"] = digest(images, to_mask(raw[side.side]))
    return pa.table(raw)


def raw_of(table: pa.Table, layout: Layout) -> pa.Table:
    """Return the raw table of rows in memory: the same as for a file with these rows in one row group."""
    table = table.cast(pa.schema([field.with_nullable(True) for field in table.schema]))  # a null may come anyway
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, row_group_size=max(1, table.num_rows))
    texts = _texts(table.schema, layout)
    return _raw(pq.ParquetFile(pa.BufferReader(sink.getvalue()), read_dictionary=texts), 0, layout)


def _column(table: pa.Table, side: Side, column: str) -> pa.Array:
    """Return a column of a state; nulls if its struct column is null in all rows."""
    if not side.struct:
        return one_chunk(table[side.path(column)])
    struct = one_chunk(table[side.name])
    return pa.nulls(len(struct)) if pa.types.is_null(struct.type) else pc.struct_field(struct, column)


def _states(
    file: pq.ParquetFile, group: int, side: Side, wanted: list[str], read: dict[str, pa.Array]
) -> Iterator[tuple[str, pa.Array]]:
    """Yield the wanted columns of a side, those that are read already first."""
    yield from ((name, read[f"{side.side}.{name}"]) for name in wanted if f"{side.side}.{name}" in read)
    others = [name for name in wanted if f"{side.side}.{name}" not in read]
    for begin in range(0, len(others), _AT_ONCE):
        names = others[begin : begin + _AT_ONCE]
        table = file.read_row_group(group, columns=[side.path(name) for name in names])
        yield from ((name, _column(table, side, name)) for name in names)


def _exists(
    file: pq.ParquetFile, group: int, side: Side, layout: Layout, states: dict[str, pa.Array], rows: int
) -> np.ndarray:
    """Return the rows in which any column of the side is not null, bool [rows]."""
    roles = set(layout.roles.values())
    exists = any_valid([values for column, values in states.items() if side.path(column) not in roles], rows)
    rest = _rest(side, layout, file.schema_arrow)
    if rest and not exists.all():
        table = file.read_row_group(group, columns=rest)
        columns = one_chunk(table[side.name]).flatten() if side.struct else table.columns
        exists |= any_valid([one_chunk(column) for column in columns], rows)
    return exists


def _rest(side: Side, layout: Layout, schema: pa.Schema) -> list[str]:
    """Return paths of the columns of a side that only decide whether its state exists."""
    if not side.struct:
        return layout.rest(side, schema.names)
    needed = {column for column, _ in layout.states}
    return [side.path(field.name) for field in struct_fields(schema, side) if field.name not in needed]


PARQUET = Format(
    name="parquet",
    kind="a Parquet file",
    sample=_sample,
    split=_split,
    read=_read,
    rows=_rows,
    endings=(".parquet",),
    is_struct=_is_struct,
)
