"""Sizes that the pages of a Parquet file claim, read from their headers before anything is decompressed.

A few bytes of a compressed page can expand to gigabytes, and a dictionary with one long text to as much in each row.
The reader allocates what pages claim, so the claims are checked first.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from transforms.sources.files.opening import OversizeError

MOST_BYTES = 1 << 28
"""Largest page, decompressed. Writers start a new one after about 1 MB."""

MOST_TEXT = 1 << 30
"""Most bytes of texts or bytes of one column in a row group, if it is read without a dictionary."""

_DICTIONARY = 2  # PageType
_HEADER = 1 << 12  # bytes that hold nearly all headers
_LONGEST_HEADER = 1 << 24  # as in Arrow's reader
_STOP, _DOUBLE, _BINARY, _STRUCT = 0, 7, 8, 12
_EXPANSION = {"UNCOMPRESSED": 1, "SNAPPY": 22}  # most bytes from one: 3 bytes of Snappy copy at most 64
_CODECS = ("UNCOMPRESSED", "SNAPPY", "GZIP", "ZSTD")  # "LZ4" has two forms that the metadata does not tell apart


@dataclass(frozen=True, slots=True)
class _Page:
    """A page as its header claims it: its type, decompressed and compressed bytes, and the place after the header."""

    kind: int
    size: int
    packed: int
    at: int


def refuse_large(stream: pa.NativeFile, file: pq.ParquetFile, group: int, columns: list[str], plain: list[str]) -> None:
    """Refuse a row group whose pages or texts would take much more memory than writers ever need.

    Args:
        stream: Stream of the file, at any place.
        file: The file.
        group: Number of the row group.
        columns: Names of the columns that are read, or of the structs that hold them.
        plain: Those of them that are read without a dictionary.

    Raises:
        OversizeError: A page is larger than `MOST_BYTES`, or the texts of a plain column than `MOST_TEXT`.
        pa.ArrowInvalid: A page's header cannot be read.
    """
    found = file.metadata.row_group(group)
    for place in range(found.num_columns):
        chunk = found.column(place)
        path = chunk.path_in_schema
        if not chunk.num_values or not any(path == name or path.startswith(f"{name}.") for name in columns):
            continue  # a column without values has no pages
        measured = path in plain and chunk.physical_type == "BYTE_ARRAY"
        if not measured and chunk.total_compressed_size * _EXPANSION.get(chunk.compression, MOST_BYTES) <= MOST_BYTES:
            continue  # no page can be too large, and the headers of many pages take time
        dictionary, others = _Page(_DICTIONARY, 0, 0, 0), 0
        for page in _pages(stream, chunk):
            if page.size > MOST_BYTES:
                raise OversizeError(
                    f"row group {group + 1} has a page of more than {MOST_BYTES >> 20} MiB; write smaller pages"
                )
            if page.kind == _DICTIONARY:
                dictionary = page
            else:
                others += page.size
        # Texts that are not in the dictionary are in their pages, each once.
        most = found.num_rows * dictionary.size + others
        if not measured or most <= MOST_TEXT:
            continue
        longest = _only_length(stream, chunk.compression, dictionary)
        if longest is None:
            longest = _longest_text(stream, file, group, path)
        if found.num_rows * longest + others > MOST_TEXT:
            _refuse_long_texts(file, group, path, longest)


def _only_length(stream: pa.NativeFile, compression: str, page: _Page) -> int | None:
    """Return the bytes of each text in a dictionary if all have the same length; None if they differ or are unknown.

    A dictionary is a sequence of lengths, each with its text (the encoding PLAIN), so that the first length gives the
    places of the others. This is about twice as fast as `_longest_text`.
    """
    if compression not in _CODECS or not page.packed:
        return None
    stream.seek(page.at)
    data = stream.read(page.packed)
    if compression != "UNCOMPRESSED":
        data = pa.Codec(compression.lower()).decompress(data, page.size)
    if len(data) < 4:
        return None
    length = int.from_bytes(memoryview(data)[:4], "little")
    entries, rest = divmod(len(data), 4 + length)
    if rest:
        return None
    lengths = np.ndarray(entries, "<u4", data, strides=(4 + length,))
    return length if (lengths == length).all() else None


def _longest_text(stream: pa.NativeFile, file: pq.ParquetFile, group: int, column: str) -> int:
    """Return the bytes of the longest text in the dictionary of a column chunk; reads its first pages only."""
    coded = pq.ParquetFile(stream, metadata=file.metadata, read_dictionary=[column])
    texts = next(coded.iter_batches(batch_size=1, row_groups=[group], columns=[column], use_threads=False)).column(0)
    if not pa.types.is_dictionary(texts.type):  # the reader knows dictionaries of texts and bytes only
        return MOST_BYTES
    return int(pc.max(pc.binary_length(texts.dictionary)).as_py() or 0)


def _refuse_long_texts(file: pq.ParquetFile, group: int, column: str, longest: int) -> None:
    total, rows = 0, max(1, (MOST_BYTES >> 2) // max(1, longest))
    for batch in file.iter_batches(batch_size=min(rows, 1 << 16), row_groups=[group], columns=[column]):
        total += _bytes_of(batch.column(0))
        if total > MOST_TEXT:
            raise OversizeError(
                f"row group {group + 1} has more than {MOST_TEXT >> 30} GiB of text in column {column!r}; write "
                "smaller row groups"
            )


def _bytes_of(texts: pa.Array) -> int:
    """Return the bytes that the texts take without a dictionary."""
    if not pa.types.is_dictionary(texts.type):
        return int(texts.nbytes)
    lengths = pc.binary_length(texts.dictionary).cast(pa.int64())
    return int(pc.sum(lengths.take(texts.indices)).as_py() or 0)


def _pages(stream: pa.NativeFile, chunk: pq.ColumnChunkMetaData) -> Iterator[_Page]:
    """Yield the pages of a column chunk, as their headers claim them."""
    at = chunk.data_page_offset
    if chunk.has_dictionary_page and chunk.dictionary_page_offset:
        at = min(at, chunk.dictionary_page_offset)
    end = at + chunk.total_compressed_size
    while at < end:
        kind, size, packed, length = _header(stream, at)
        if min(size, packed) < 0:
            raise pa.ArrowInvalid("a negative size")
        at += length
        yield _Page(kind, size, packed, at)
        at += packed


def _header(stream: pa.NativeFile, at: int) -> tuple[int, int, int, int]:
    """Return type, decompressed and compressed size of the page at a place, and the bytes of its header."""
    window = _HEADER
    while True:
        stream.seek(at)
        data = stream.read(window)
        try:
            numbers, length = _struct(data, 0)
            return numbers[1], numbers[2], numbers[3], length
        except (IndexError, KeyError):
            if len(data) < window or window > _LONGEST_HEADER:
                raise pa.ArrowInvalid("not the header of a page") from None
            window *= 16


def _struct(data: bytes, at: int, depth: int = 0) -> tuple[dict[int, int], int]:
    """Return the integers of a struct in Thrift's compact protocol by their fields, and the place of its end."""
    numbers: dict[int, int] = {}
    field = 0
    if depth > 8:
        raise pa.ArrowInvalid("not the header of a page")
    while (byte := data[at]) != _STOP:
        at, kind = at + 1, byte & 0x0F
        if byte >> 4:
            field += byte >> 4
        else:
            field, at = _number(data, at)
        if kind in (4, 5, 6):
            numbers[field], at = _number(data, at)
        else:
            at = _after(data, at, kind, depth)
    return numbers, at + 1


def _after(data: bytes, at: int, kind: int, depth: int) -> int:
    """Return the place where a value ends that is not an integer, or is an item of a list."""
    if kind in (1, 2):  # the type is the value
        return at
    if kind == 3:
        return at + 1
    if kind in (4, 5, 6):
        return _number(data, at)[1]
    if kind == _DOUBLE:
        return at + 8
    if kind == _BINARY:
        size, at = _raw(data, at)
        return at + size
    if kind == _STRUCT:
        return _struct(data, at, depth + 1)[1]
    raise pa.ArrowInvalid("not the header of a page")  # pages have no lists, sets or maps


def _number(data: bytes, at: int) -> tuple[int, int]:
    value, at = _raw(data, at)
    return (value >> 1) ^ -(value & 1), at


def _raw(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
        if shift > 63:
            raise pa.ArrowInvalid("not the header of a page")
