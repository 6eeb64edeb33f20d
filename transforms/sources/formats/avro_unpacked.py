"""Avro files decompressed, block by block and with bounded sizes.

    file    = "Obj" 0x01 metadata sync block*
    block   = records (long) bytes (long) data sync

fastavro decompresses a block as a whole at any size, and trusts the sizes that a block claims. Here a block that is
larger than `MOST_BYTES`, or claims more records than it has bytes, ends the file with an error before memory is used.
So does a block whose records could take more than `MOST_MEMORY` (`transforms.sources.formats.avro_memory`).
"""

import bz2
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from transforms.sources.files.opening import OversizeError
from transforms.sources.formats.avro_memory import MOST_MEMORY, measured

MOST_BYTES = 1 << 24
"""Largest block, decompressed. Writers start a new one after about 10 kB."""

_MOST_HEADER, _LEAST_MEMBER = 1 << 22, 1 << 8  # bytes; a member of the header counts as many as its Python objects
_MOST_TOGETHER = 10_000  # records, since they are Python objects
_MAGIC, _SYNC = b"Obj\x01", 16
_UNPACKERS: dict[bytes, Callable[[], Any]] = {
    b"deflate": lambda: zlib.decompressobj(-zlib.MAX_WBITS),
    b"bzip2": bz2.BZ2Decompressor,
    b"xz": lzma.LZMADecompressor,
}


class Unpacked:
    """The file with the codec `null`, for fastavro to read from start to end.

    Attributes:
        together: Number of records that may be in memory at once.

    Raises:
        OversizeError: A block is too large, or a record can be.
        ValueError, zlib.error, lzma.LZMAError: The file is not an Avro file, or a damaged one.
    """

    def __init__(self, stream: pa.NativeFile) -> None:
        if _exactly(stream, len(_MAGIC)) != _MAGIC:
            raise ValueError("not an Avro file")
        metadata = dict(_metadata(stream))
        codec = metadata.get(b"avro.codec", b"null")
        sync = _exactly(stream, _SYNC)
        schema, taken = measured(metadata[b"avro.schema"])
        self.together = int(min(_MOST_TOGETHER, MOST_MEMORY // max(1, taken.memory)))
        self._parts = _blocks(stream, codec, taken.rate)
        self._rest = io.BytesIO(_header(schema) + sync)
        self._at = 0

    def tell(self) -> int:
        return self._at

    def read(self, size: int = -1) -> bytes:
        found = self._rest.read(size)
        while (size < 0 or len(found) < size) and (part := next(self._parts, None)) is not None:
            self._rest = io.BytesIO(part)
            found += self._rest.read(size if size < 0 else size - len(found))
        self._at += len(found)
        return found


def _header(schema: bytes) -> bytes:
    """Return magic and metadata, without metadata that fastavro does not need."""
    members = {b"avro.schema": schema, b"avro.codec": b"null"}
    texts = b"".join(_long(len(text)) + text for member in members.items() for text in member)
    return _MAGIC + _long(len(members)) + texts + _long(0)


def _blocks(stream: pa.NativeFile, codec: bytes, rate: float) -> Iterator[bytes]:
    """Yield decompressed blocks.

    Args:
        stream: The file after its header.
        codec: Its codec.
        rate: Most bytes of memory for a byte of a block.
    """
    while (first := stream.read(1)) != b"":
        records, size = _read_long(stream, first), _read_long(stream)
        if size > MOST_BYTES:
            raise OversizeError(_TOO_LARGE)
        data = _unpack(_exactly(stream, size), codec)
        if records < 0 or records > len(data):
            raise ValueError("a block with more records than bytes")
        if len(data) * rate > MOST_MEMORY:
            raise OversizeError(_TOO_RICH)
        yield _long(records) + _long(len(data)) + data + _exactly(stream, _SYNC)


_TOO_LARGE = f"a block of the Avro file is larger than {MOST_BYTES >> 20} MiB; write smaller blocks"
_TOO_RICH = f"a block of the Avro file could take more than {MOST_MEMORY >> 20} MiB of memory; write smaller blocks"


def _unpack(data: bytes, codec: bytes) -> bytes:
    if codec == b"null":
        return data
    unpacker = _UNPACKERS[codec]()
    found: bytes = unpacker.decompress(data, MOST_BYTES + 1)
    if len(found) > MOST_BYTES:
        raise OversizeError(_TOO_LARGE)
    if not unpacker.eof:
        raise ValueError("a block ends early")
    return found


def _metadata(stream: pa.NativeFile) -> Iterator[tuple[bytes, bytes]]:
    left = _MOST_HEADER
    while count := _read_long(stream):
        if count < 0:
            count = -count
            _read_long(stream)  # bytes of the members
        for _ in range(count):
            pair = []
            for least in (_LEAST_MEMBER, 0):
                size = _read_long(stream)
                left -= max(size, least)
                if left < 0:
                    raise OversizeError(f"the header of the Avro file is larger than {_MOST_HEADER >> 20} MiB")
                pair.append(_exactly(stream, size))
            yield pair[0], pair[1]


def _exactly(stream: pa.NativeFile, size: int) -> bytes:
    if size < 0:
        raise ValueError("a negative size")
    data: bytes = stream.read(size)
    if len(data) < size:
        raise ValueError("the file ends early")  # fastavro interprets EOFError as the end of a valid file
    return data


def _read_long(stream: pa.NativeFile, first: bytes = b"") -> int:
    """Read a number in Avro's zigzag coding, of at most 64 bits."""
    value = 0
    for shift in range(0, 70, 7):
        (byte,) = first or _exactly(stream, 1)
        first = b""
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1)
    raise ValueError("a number of more than 64 bits")


def _long(value: int) -> bytes:
    r"""Return a number of at least 0 in Avro's zigzag coding.

    >>> _long(0), _long(1), _long(64)
    (b'\x00', b'\x02', b'\x80\x01')
    """
    value <<= 1
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])
