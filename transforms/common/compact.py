"""Shrink integer columns before a shuffle: runners copy shuffled data about ten times.

A column becomes (x - base) / unit in the narrowest type that holds it: times in whole seconds or sums in whole units
lose most of their bytes. Base and unit are in the field's metadata, so each table can be restored alone.
"""

import numpy as np
import pyarrow as pa

_BASE, _UNIT = b"base", b"unit"
_TYPES = (np.uint8, np.uint16, np.uint32)
_SAMPLE = 256


def compact(table: pa.Table) -> pa.Table:
    """Return the rows with narrower columns; `restore` makes all of them int64.

    >>> times = pa.table({"time": pa.array([1_700_000_000_000_000, 1_700_000_060_000_000])})
    >>> compact(times)["time"].to_pylist(), restore(compact(times)).equals(times)
    ([0, 1], True)
    """
    columns, fields = [], []
    for field, column in zip(table.schema, table.columns, strict=True):
        if pa.types.is_signed_integer(field.type) and column.null_count == 0 and len(column) > 0:
            field, column = _narrowed(field, column.to_numpy().astype(np.int64, copy=False))
        columns.append(column)
        fields.append(field)
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def restore(table: pa.Table) -> pa.Table:
    """Undo `compact`."""
    for place, field in enumerate(table.schema):
        if field.metadata and _BASE in field.metadata:
            values = table.column(place).to_numpy().astype(np.int64)
            values *= int(field.metadata[_UNIT])
            values += int(field.metadata[_BASE])
            table = table.set_column(place, field.name, pa.array(values))
    return table


def _narrowed(field: pa.Field, values: np.ndarray) -> tuple[pa.Field, pa.Array]:
    base, top = int(values.min()), int(values.max())
    if top - base >= 2**63:
        return field, pa.array(values)
    offsets = values - base
    unit = int(np.gcd.reduce(offsets[:_SAMPLE])) or 1
    if unit > 1:
        steps = offsets // unit
        if (steps * unit != offsets).any():
            unit = 1
        else:
            offsets = steps
    narrow = next((kind for kind in _TYPES if (top - base) // unit <= np.iinfo(kind).max), None)
    if narrow is None:
        return field, pa.array(values)
    metadata = {_BASE: str(base).encode(), _UNIT: str(unit).encode()}
    narrowed = pa.array(offsets.astype(narrow))
    return pa.field(field.name, narrowed.type, metadata=metadata), narrowed
