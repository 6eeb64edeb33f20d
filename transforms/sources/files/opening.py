"""Open files of any of Beam's file systems, and segments of topics, as Arrow streams."""

import os
import zlib
from typing import BinaryIO

import pyarrow as pa
from apache_beam.io.filesystem import BeamIOError, CompressionTypes
from apache_beam.io.filesystems import FileSystems

from transforms.common.sinks import number_of
from transforms.sources.files.kafka import Lines
from transforms.sources.files.topic_segments import TopicSegment

UNREADABLE = (pa.ArrowException, OSError, EOFError, zlib.error, BeamIOError, UnicodeDecodeError)
"""Errors of the libraries if a file has vanished, is truncated or is not of its format."""

_CODECS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
_BEGINS = {
    b"\x1f\x8b": "gzip",
    b"(\xb5/\xfd": "zstd",
    **{b"BZh%d1AY&SY" % size: "bz2" for size in range(1, 10)},
    b"PK\x03\x04": "zip",
    b"\xfd7zXZ\0": "xz",
}
"""First bytes of compressed files, which text does not have."""


FIRST_BYTES = 1 << 22
"""Bytes that suffice to inspect a file."""


class MisnamedError(OSError):
    """The file is compressed in another way than its name states; the message names the way and shows no content."""


class OversizeError(OSError):
    """A part of the file would take too much memory; the message names the part and shows no content."""


def open_random(path: str) -> pa.NativeFile:
    """Return a stream for formats that seek (Parquet).

    Local files are not mapped into memory: the system would end the process if one is truncated while it is read.
    """
    if "://" not in path:
        return pa.OSFile(path)
    return pa.PythonFile(_open(path), mode="r")


def open_stream(path: str, settings: str | None = None) -> pa.NativeFile:
    """Return a stream of the whole file, decompressed by the path's extension; a truncated file raises an error.

    Args:
        path: Path of a file or a segment.
        settings: As in `matching`.
    """
    segment = TopicSegment.parse(path)
    if segment is not None:
        return pa.PythonFile(Lines(segment, settings), mode="r")
    file = _open(path)
    codec = next((name for extension, name in _CODECS.items() if path.endswith(extension)), None)
    try:
        _refuse_misnamed(file.read(16), codec)
    except MisnamedError:
        file.close()
        raise
    file.seek(0)
    raw = pa.PythonFile(file, mode="r")
    return raw if codec is None else pa.CompressedInputStream(raw, codec)


def first_lines(stream: pa.NativeFile) -> bytes:
    """Return the complete lines at the beginning of a file; of a single line its beginning."""
    head = stream.read(FIRST_BYTES)
    whole = head.rfind(b"\n") + 1 if len(head) == FIRST_BYTES else 0
    return head[:whole] if whole else head + b"\n"


def why(error: Exception, usual: str) -> str:
    """Return the description of an error of `UNREADABLE`: its own text, or `usual` with the error's class inserted."""
    if isinstance(error, MisnamedError | OversizeError):
        return str(error)
    if isinstance(error, IsADirectoryError):
        return "is a folder; name its files, such as data/*.csv"
    if isinstance(error, OSError) and (number := number_of(error)):
        return f"cannot be read ({os.strerror(number)}); check the disk, the path and your rights"
    return usual.format(type(error).__name__)


def _refuse_misnamed(begin: bytes, named: str | None) -> None:
    found = next((codec for mark, codec in _BEGINS.items() if begin.startswith(mark)), None)
    endings = {codec: extension for extension, codec in _CODECS.items()}
    if not begin or found == named:
        return
    if named is not None:
        reason = f"the file's name ends with {endings[named]}, but it is not compressed with {named}; rename it"
    elif found in endings:
        reason = f"the file is compressed with {found}, but its name does not say so; add {endings[found]} to it"
    else:
        reason = f"the file is compressed with {found}; unpack it, or compress it with gzip, bz2 or zstd"
    raise MisnamedError(reason)


def _open(path: str) -> BinaryIO:
    # Arrow decompresses, since Beam would end a truncated gzip stream without an error.
    return FileSystems.open(path, "application/octet-stream", CompressionTypes.UNCOMPRESSED)
