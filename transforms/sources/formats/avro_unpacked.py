"""Avro files decompressed, block by block and with bounded sizes.

    file    = "Obj" 0x01 metadata sync block*
    block   = records (long) bytes (long) data sync

fastavro decompresses a block as a whole at any size, and trusts the sizes that a block claims. Here a block that is
larger than `MOST_BYTES`, or claims more records than it has bytes, ends the file with an error before memory is used.
"""

import bz2
import lzma
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from transforms.sources.files.opening import OversizeError

MOST_BYTES = 1 << 24
"""Largest block, decompressed. Writers start a new one after about 10 kB."""

_MAGIC, _SYNC = b"Obj\x01", 16
_UNPACKERS: dict[bytes, Callable[[], Any]] = {
    b"deflate": lambda: zlib.decompressobj(-zlib.MAX_WBITS),
    b"bzip2": bz2.BZ2Decompressor,
    b"xz": lzma.LZMADecompressor,
}


class Unpacked:
    """The file with the codec `null`, for fastavro to read from start to end.

    Raises:
        OversizeError: A block is too large.
        ValueError, zlib.error, lzma.LZMAError: The file is not an Avro file, or a damaged one.
    """

    def __init__(self, stream: pa.NativeFile) -> None:
        self._parts = _parts(stream)
        self._rest = b""
        self._at = 0

    def tell(self) -> int:
        return self._at

    def read(self, size: int = -1) -> bytes:
        while size < 0 or len(self._rest) < size:
            part = next(self._parts, None)
            if part is None:
                size = len(self._rest)
                break
            self._rest += part
        found, self._rest = self._rest[:size], self._rest[size:]
        self._at += len(found)
        return found


def _parts(stream: pa.NativeFile) -> Iterator[bytes]:
    if _exactly(stream, len(_MAGIC)) != _MAGIC:
        raise ValueError("not an Avro file")
    metadata = dict(_metadata(stream))
    codec = metadata.get(b"avro.codec", b"null")
    sync = _exactly(stream, _SYNC)
    metadata[b"avro.codec"] = b"null"
    members = b"".join(_long(len(text)) + text for member in metadata.items() for text in member)
    yield _MAGIC + _long(len(metadata)) + members + _long(0) + sync
    while (first := stream.read(1)) != b"":
        records, size = _read_long(stream, first), _read_long(stream)
        if size > MOST_BYTES:
            raise OversizeError(_TOO_LARGE)
        data = _unpack(_exactly(stream, size), codec)
        if records < 0 or records > len(data):
            raise ValueError("a block with more records than bytes")
        yield _long(records) + _long(len(data)) + data + _exactly(stream, _SYNC)


_TOO_LARGE = f"a block of the Avro file is larger than {MOST_BYTES >> 20} MiB; write smaller blocks"


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
    left = MOST_BYTES
    while count := _read_long(stream):
        if count < 0:
            count = -count
            _read_long(stream)  # bytes of the members
        for _ in range(count):
            pair = []
            for _ in range(2):
                size = _read_long(stream)
                left -= size + 1
                if left < 0:
                    raise OversizeError(f"the header of the Avro file is larger than {MOST_BYTES >> 20} MiB")
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
