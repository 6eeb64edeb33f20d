"""Parquet changelogs: runs of row groups, of which only the needed columns are read.

Where a state's columns stand under a prefix, whether the state exists can depend on columns that nothing else needs:
these are read only for row groups where a row has all needed columns null. Where states before are there too, all
columns that both sides have are read, a few at a time, for the digests of the whole images (transforms.images).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from transforms import files
from transforms.batches import Batch, dead_file
from transforms.first_file import Side, find
from transforms.images import IMAGE, digest, shared
from transforms.kinds import is_text, one_chunk, to_mask
from transforms.layout import Layout
from transforms.normalise import Place, normalise

TRUNCATES = b"slackwater.truncates"
"""In the metadata of a schema: rows without an entry are truncates."""

_RUN_ROWS = 1 << 20  # a split has at least so many rows, if its file has
_AT_ONCE = 8  # columns that are read for nothing but the images: files may have hundreds


@dataclass(frozen=True, slots=True)
class RowGroups:
    """Row groups [first, last) of a file; `row` is the number of their first row, from 1."""

    first: int
    last: int
    row: int


def runs(path: str) -> list[RowGroups]:
    """Cut a file into runs of row groups that workers can read apart; none for a file without rows.

    Raises:
        one of `files.UNREADABLE`.
    """
    with files.open_random(path) as stream:
        metadata = pq.read_metadata(stream)
    found: list[RowGroups] = []
    first, row, rows = 0, 1, 0
    for group in range(metadata.num_row_groups):
        rows += metadata.row_group(group).num_rows
        if rows >= _RUN_ROWS or group == metadata.num_row_groups - 1:
            found.append(RowGroups(first, group + 1, row))
            first, row, rows = group + 1, row + rows, 0
    return found


def read_parquet(layout: Layout, place: Place, run: RowGroups, batch_rows: int) -> Iterator[Batch | pa.Table]:
    """Batches and dead letters of a run of row groups; a fault of the file is one dead letter."""
    try:
        with files.open_random(place.file) as stream:
            metadata = pq.read_metadata(stream)
            schema = metadata.schema.to_arrow_schema()
            fault = layout.fault(schema)
            if fault is not None:
                yield dead_file(place.file, fault)
                return
            texts = _texts(schema, layout)
            file = pq.ParquetFile(stream, metadata=metadata, read_dictionary=texts, pre_buffer="://" in place.file)
            row = run.row
            for group in range(run.first, run.last):
                raw = _raw(file, group, layout)
                numbers = np.arange(row, row + raw.num_rows)
                yield from normalise(raw, numbers, layout, place, batch_rows)
                row += raw.num_rows
    except files.UNREADABLE as error:
        yield dead_file(place.file, f"the file cannot be read ({type(error).__name__}); it may be truncated or gone")


def _texts(schema: pa.Schema, layout: Layout) -> list[str]:
    """Paths of the texts among what is read of states: as dictionaries, of which each word is looked at once."""
    both = _imaged(schema, layout)
    read = [side.path(column) for side in layout.sides for column in {*both, *(name for name, _ in layout.states)}]
    return [path for path in read if is_text(find(schema, path, layout.sides) or pa.null())]


def _imaged(schema: pa.Schema, layout: Layout) -> list[str]:
    """The columns of states that digests are of; none where there are no states before."""
    if len(layout.sides) == 1:
        return []
    return shared(
        [field.name for field in schema.field(side.name).type]
        if side.struct
        else [name.removeprefix(side.name) for name in layout.members(side, schema.names)]
        for side in layout.sides
    )


def _raw(file: pq.ParquetFile, group: int, layout: Layout) -> pa.Table:
    """The raw table (see `normalise`) of one row group."""
    names = file.schema_arrow.names
    wanted = set(layout.roles.values())
    for side in layout.sides:
        if side.struct:
            children = [column for column, _ in layout.states] or [file.schema_arrow.field(side.name).type[0].name]
            wanted |= {side.path(child) for child in children}
        else:
            wanted |= {side.path(column) for column, _ in layout.states}
    table = file.read_row_group(group, columns=sorted(wanted))
    columns = {name: one_chunk(table[column]) for name, column in layout.roles.items()}
    if TRUNCATES in (file.schema_arrow.metadata or {}):
        columns["truncate"] = columns["entry"].is_null()
    for side in layout.sides:
        if side.struct:
            struct = one_chunk(table[side.name])
            states = {column: pc.struct_field(struct, column) for column, _ in layout.states}
            exists = struct.is_valid()
        else:
            states = {column: one_chunk(table[side.path(column)]) for column, _ in layout.states}
            exists = _exists(file, group, side, layout, list(states.values()), names, table.num_rows)
        columns[side.side] = exists
        columns |= {f"{side.side}.{column}": values for column, values in states.items()}
    if len(layout.sides) == 2:
        for side in layout.sides:
            images = _states(file, group, side, _imaged(file.schema_arrow, layout), columns)
            columns[f"{IMAGE}.{side.side}"] = digest(images, to_mask(columns[side.side]))
    return pa.table(columns)


def _states(
    file: pq.ParquetFile, group: int, side: Side, wanted: list[str], read: dict[str, pa.Array]
) -> Iterator[tuple[str, pa.Array]]:
    """The wanted columns of a side, those that are read already first."""
    yield from ((name, read[f"{side.side}.{name}"]) for name in wanted if f"{side.side}.{name}" in read)
    others = [name for name in wanted if f"{side.side}.{name}" not in read]
    for begin in range(0, len(others), _AT_ONCE):
        names = others[begin : begin + _AT_ONCE]
        table = file.read_row_group(group, columns=[side.path(name) for name in names])
        for name in names:
            values = pc.struct_field(one_chunk(table[side.name]), name) if side.struct else table[side.path(name)]
            yield name, one_chunk(values)


def _exists(
    file: pq.ParquetFile, group: int, side: Side, layout: Layout, states: list[pa.Array], names: list[str], rows: int
) -> pa.Array:
    """Rows where any column of the side is not null."""
    roles = set(layout.roles.values())
    own = [values for (column, _), values in zip(layout.states, states, strict=True) if side.path(column) not in roles]
    exists = any_valid(own, rows)
    rest = layout.rest(side, names)
    if rest and not exists.all():
        table = file.read_row_group(group, columns=rest)
        exists |= any_valid([one_chunk(column) for column in table.columns], rows)
    return pa.array(exists)


def any_valid(columns: list[pa.Array], rows: int) -> np.ndarray:
    """Rows where any of the columns is not null; [rows]."""
    found = np.zeros(rows, dtype=bool)
    for values in columns:
        if values.null_count == 0:
            return np.ones(rows, dtype=bool)
        found |= to_mask(values.is_valid())
    return found
