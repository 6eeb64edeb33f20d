"""The five kinds of columns of a state, and the conversion of values in files to them."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transforms.common.instants import Bad, convert_each, to_microseconds

ARROW = {
    "int64": pa.int64(),
    "float64": pa.float64(),
    "string": pa.dictionary(pa.int32(), pa.string()),  # later steps map codes, not texts
    "bool": pa.bool_(),
    "timestamp": pa.timestamp("us", "UTC"),
}
"""Kind to the Arrow type of a state's column. Keys (entry, order, owner) are plain int64 or string."""

NUMERIC = ("int64", "float64")

_EXACT_POWER = 22
"""Highest power of ten that a float64 represents exactly."""


def kind_of(type_: pa.DataType) -> str | None:
    """Return the kind that holds values of an Arrow type; None if there is no such kind.

    >>> kind_of(pa.decimal128(9, 2)), kind_of(pa.dictionary(pa.int8(), pa.large_string())), kind_of(pa.binary())
    ('float64', 'string', None)
    """
    if pa.types.is_dictionary(type_):
        return kind_of(type_.value_type)
    if pa.types.is_integer(type_):
        return "int64"
    if pa.types.is_floating(type_) or pa.types.is_decimal(type_):
        return "float64"
    if is_text(type_) or pa.types.is_null(type_):
        return "string"
    if pa.types.is_boolean(type_):
        return "bool"
    return "timestamp" if pa.types.is_timestamp(type_) or pa.types.is_date(type_) else None


def is_text(type_: pa.DataType) -> bool:
    """Return whether values are strings, in any layout of Arrow."""
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_) or pa.types.is_string_view(type_))


def to_kind(values: pa.Array, kind: str, timezone: str | None = None) -> tuple[pa.Array, Bad]:
    """Return a state's column as its kind, null if the value is null or bad, and the bad positions.

    Args:
        values: Values as the file holds them.
        kind: Key of `ARROW`.
        timezone: IANA name of the zone of times without one; None: UTC.
    """
    if values.type == ARROW[kind]:
        return values, []
    if kind in ("string", "int64"):
        keys, bad = to_key(values, kind)
        return keys if kind == "int64" else keys.dictionary_encode(), bad
    if kind == "timestamp":
        ticks, bad = to_microseconds(plain(values), timezone or "UTC")
        return ticks.cast(ARROW[kind]), bad
    return _cast(plain(values), ARROW[kind])


def to_key(values: pa.Array, kind: str) -> tuple[pa.Array, Bad]:
    """Return a key's column as plain int64 or string, null if the value is null or bad, and the bad positions.

    A float that is a whole number becomes that number, up to where adjacent floats differ by more than 1: many writers
    turn a column of integers into floats if one row has no value.

    >>> to_key(pa.array([7.0, None, 1e15, 0.5]), "string")[0].to_pylist()
    ['7', None, '1000000000000000', '0.5']
    """
    values = plain(values)
    if not pa.types.is_floating(values.type):
        return _cast(values, pa.string() if kind == "string" else pa.int64())
    values = values.cast(pa.float64())
    whole = pc.and_(pc.equal(pc.floor(values), values), pc.less_equal(pc.abs(values), 2.0**53))
    numbers = pc.if_else(whole, values, None).cast(pa.int64())
    if kind == "string":
        return pc.coalesce(numbers.cast(pa.string()), values.cast(pa.string())), []
    bad = np.flatnonzero(to_mask(pc.and_(values.is_valid(), numbers.is_null())))
    return numbers, [(bad, "value not understood as int64")] if len(bad) else []


def decode(values: pa.Array) -> tuple[pa.Array, Bad]:
    r"""Return bytes as text, bad if it is not UTF-8, which Parquet promises and does not check; other values unchanged.

    >>> decode(pa.array([b"a", None, b"\xff"]))[1]
    [(array([2]), 'not text in UTF-8')]
    """
    if pa.types.is_dictionary(values.type):
        words, undecoded = decode(values.dictionary)
        if not undecoded:
            return values, []
        values = pa.DictionaryArray.from_arrays(values.indices, words)
        found = np.isin(values.indices.fill_null(-1).to_numpy(zero_copy_only=False), undecoded[0][0])
        return values, [(np.flatnonzero(found), undecoded[0][1])] if found.any() else []
    if is_text(values.type):
        try:
            values.validate(full=True)
            return values, []
        except pa.ArrowInvalid:
            values = values.cast(pa.binary())
    if not pa.types.is_binary(values.type):
        return values, []
    texts, bad = convert_each(values, lambda part: pc.cast(part, pa.string()))
    return texts, [(bad, "not text in UTF-8")] if len(bad) else []


def plain(values: pa.Array) -> pa.Array:
    """Return the values without a dictionary."""
    return values.dictionary_decode() if pa.types.is_dictionary(values.type) else values


def _cast(values: pa.Array, type_: pa.DataType) -> tuple[pa.Array, Bad]:
    if values.type == type_:
        return values, []
    if pa.types.is_decimal(values.type) and type_ == pa.float64():
        return _decimals(values), []
    # Whole numbers beyond 2^53 may be rounded: they are far beyond clamping bounds.
    safe = not (pa.types.is_integer(values.type) and type_ == pa.float64())
    result, bad = convert_each(values, lambda part: pc.cast(part, type_, safe=safe))
    return result, [(bad, f"value not understood as {type_}")] if len(bad) else []


def _decimals(values: pa.Array) -> pa.Array:
    """Return the nearest floats of decimals. Arrow's own conversion multiplies, and is often wrong in the last place.

    >>> _decimals(pa.array([3, None, -11]).cast(pa.decimal128(20, 1))).to_pylist()
    [3.0, None, -11.0]
    """
    if pa.types.is_decimal128(values.type) and 0 <= values.type.scale <= _EXACT_POWER and len(values):
        words = np.frombuffer(values.buffers()[1], np.int64).reshape(-1, 2)
        units, rest = words[values.offset : values.offset + len(values)].T
        known = valid(values)
        if (((np.abs(units) < 2**53) & (rest == units >> 63)) | ~known).all():  # quotient of two exact floats
            return pa.array(units / 10.0**values.type.scale, mask=~known)
    return values.cast(pa.string()).cast(pa.float64())


def one_chunk(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Return the column as one array."""
    if isinstance(column, pa.Array):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def to_mask(values: pa.Array | pa.ChunkedArray) -> np.ndarray:
    """Return booleans without nulls as a NumPy mask, bool [n].

    >>> to_mask(pa.array([True, False, True])[1:]).tolist()
    [False, True]
    """
    array = one_chunk(values)
    return _unpacked(array.buffers()[1], array)


def valid(values: pa.Array) -> np.ndarray:
    """Return which values are not null, bool [n].

    >>> valid(pa.array([1, None, 3])[1:]).tolist(), valid(pa.nulls(2)).tolist()
    ([False, True], [False, False])
    """
    if values.null_count == 0:
        return to_mask(values.is_valid()) if pa.types.is_union(values.type) else np.ones(len(values), dtype=bool)
    bits = values.buffers()[0]
    return to_mask(values.is_valid()) if bits is None else _unpacked(bits, values)


def _unpacked(bits: pa.Buffer, array: pa.Array) -> np.ndarray:
    """Return one bit per value as one byte per value: NumPy takes a tenth of Arrow's time."""
    if not len(array):
        return np.zeros(0, dtype=bool)  # Arrow need not have a bitmap then
    first, skipped = divmod(array.offset, 8)
    packed = np.frombuffer(bits, dtype=np.uint8)[first:]
    return np.unpackbits(packed, count=skipped + len(array), bitorder="little")[skipped:].view(bool)


def unmasked(values: pa.Array) -> np.ndarray:
    """Return numbers as NumPy without a copy, [n]; values at nulls are undefined.

    >>> unmasked(pa.array([1, None, 3]))[valid(pa.array([1, None, 3]))].tolist()
    [1, 3]
    """
    buffers = [None, values.buffers()[1]]
    whole = (
        pa.Array.from_buffers(values.type, len(values), buffers, offset=values.offset) if values.null_count else values
    )
    return whole.to_numpy(zero_copy_only=False)


def any_valid(columns: list[pa.Array], rows: int) -> np.ndarray:
    """Return the rows in which any of the columns is not null, bool [rows]."""
    found = np.zeros(rows, dtype=bool)
    for values in columns:
        if values.null_count == 0:
            return np.ones(rows, dtype=bool)
        found |= valid(values)
    return found
