"""Opening files of any of Beam's file systems, and segments of topics, as Arrow streams."""

import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
from apache_beam.io.filesystem import BeamIOError, CompressionTypes
from apache_beam.io.filesystems import FileSystems

from transforms.common.errors import InputError, SpecError
from transforms.common.listing import local_files
from transforms.sources.kafka import Lines, new_segments
from transforms.sources.topic_segments import Segment, is_of_topic
from transforms.sources.topic_segments import joined as joined_segments

UNREADABLE = (pa.ArrowException, OSError, EOFError, zlib.error, BeamIOError, UnicodeDecodeError)
"""What the libraries raise when a file has vanished, is truncated or is not of its format."""

_CODECS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
_BEGINS = {
    b"\x1f\x8b": "gzip",
    b"(\xb5/\xfd": "zstd",
    **{b"BZh%d1AY&SY" % size: "bz2" for size in range(1, 10)},
    b"PK\x03\x04": "zip",
    b"\xfd7zXZ\0": "xz",
}
"""What compressed files begin with, and text does not."""


class MisnamedError(OSError):
    """A file that is compressed otherwise than its name says; the message says how, and nothing of the content."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A file as its folder lists it: `updated` in seconds since the epoch, 0 where that is not known.

    A segment of a topic is a file as well (transforms.sources.topic_segments).
    """

    path: str
    size: int
    updated: float


def find(
    paths: tuple[str, ...], *, taken: Iterable[Listed] = (), settings: str | None = None, lines: bool = False
) -> tuple[Listed, ...]:
    """All files that match, sorted by path; of topics only what was not taken.

    Args:
        settings: as of `matching`.
        lines: whether files hold lines of JSON: without a byte they have no lines. Avro has a header all the same.

    Raises:
        SpecError: a glob that matches nothing.
        InputError: a file without any bytes where there must be some, or a file system that cannot be listed.
    """
    found: set[Listed] = set()
    for pattern in paths:
        listed = matching((pattern,), taken=taken, settings=settings)
        if not listed and not is_of_topic(pattern):
            raise SpecError(f"changelog.path: no file matches {pattern!r}; check the path, relative to where you run")
        found.update(listed)
    for file in found:
        may_be_empty = is_of_topic(file.path) or (lines and not file.path.endswith(".avro"))
        if file.size == 0 and not may_be_empty:
            raise InputError(f"{file.path}: the file is empty (0 bytes); remove it, or write it again")
    return tuple(sorted(found, key=lambda file: file.path))


def matching(
    paths: tuple[str, ...], *, taken: Iterable[Listed] = (), settings: str | None = None
) -> tuple[Listed, ...]:
    """All files that match, perhaps none, perhaps empty ones, sorted by path; of topics only what was not taken.

    Args:
        taken: files that were read before, or will be.
        settings: path of the settings of Kafka's client.

    Raises:
        InputError: a file system that cannot be listed, or a topic that cannot be read on from what was taken.
        SpecError: a topic that is not there or not fit.
    """
    found: dict[str, Listed] = {}
    for pattern in paths:
        if is_of_topic(pattern):
            known = [segment for segment in (Segment.parse(file.path) for file in taken) if segment is not None]
            found |= {segment.path: _listed(segment) for segment in new_segments(pattern, known, settings)}
            continue
        try:
            listed = _in_store(pattern) if "://" in pattern else _in_folders(pattern)
        except OSError as error:
            where = error.filename or pattern
            raise InputError(
                f"{pattern}: cannot be listed, {where}: {error.strerror or type(error).__name__}; check the path and "
                "your rights, since files that cannot be seen would be left out without a word"
            ) from error
        except ValueError as error:
            raise InputError(f"{pattern}: cannot be listed ({type(error).__name__}); check the path") from error
        found |= {file.path: file for file in listed}
    return tuple(found[path] for path in sorted(found))


def _in_store(pattern: str) -> list[Listed]:
    """Files of any of Beam's file systems but the local one."""
    listed = FileSystems.match([pattern])[0].metadata_list
    return [Listed(m.path, m.size_in_bytes, float(m.last_updated_in_seconds or 0.0)) for m in listed]


def _in_folders(pattern: str) -> list[Listed]:
    """Local files.

    Raises:
        OSError: a folder that may hold some cannot be listed, or a file cannot be looked at.
    """
    found = []
    for path in local_files(pattern):
        try:
            told = Path(path).stat()
        except FileNotFoundError:
            if Path(path).is_symlink():  # to something that should be there
                raise
            continue  # somebody has moved it away since
        found.append(Listed(path, told.st_size, told.st_mtime))
    return found


def joined(files: Iterable[Listed]) -> tuple[Listed, ...]:
    """Segments that follow on each other as one; other files as they are. Or a stream's list would grow for ever."""
    files = tuple(files)
    segments = [segment for segment in (Segment.parse(file.path) for file in files) if segment is not None]
    plain = [file for file in files if not is_of_topic(file.path)]
    return (*plain, *(_listed(segment) for segment in joined_segments(segments)))


def _listed(segment: Segment) -> Listed:
    return Listed(segment.path, segment.size, 0.0)


def open_random(path: str) -> pa.NativeFile:
    """For formats that seek (Parquet)."""
    if "://" not in path:
        return pa.memory_map(path)
    return pa.PythonFile(_open(path), mode="r")


def open_stream(path: str, settings: str | None = None) -> pa.NativeFile:
    """From begin to end, decompressed by the path's extension; a truncated stream raises instead of ending early.

    Args:
        settings: as of `matching`.
    """
    segment = Segment.parse(path)
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


def why(error: Exception, usual: str) -> str:
    """What to say of an error of `UNREADABLE`: its own words, or the usual with its kind in the braces."""
    return str(error) if isinstance(error, MisnamedError) else usual.format(type(error).__name__)


def _refuse_misnamed(begin: bytes, named: str | None) -> None:
    found = next((codec for mark, codec in _BEGINS.items() if begin.startswith(mark)), None)
    endings = {codec: extension for extension, codec in _CODECS.items()}
    if not begin or found == named:
        return
    if named is not None:
        told = f"the file's name ends with {endings[named]}, but it is not compressed with {named}; rename it"
    elif found in endings:
        told = f"the file is compressed with {found}, but its name does not say so; add {endings[found]} to it"
    else:
        told = f"the file is compressed with {found}; unpack it, or compress it with gzip, bz2 or zstd"
    raise MisnamedError(told)


def _open(path: str) -> BinaryIO:
    # Beam would end a truncated gzip stream without a word, so that Arrow decompresses.
    return FileSystems.open(path, "application/octet-stream", CompressionTypes.UNCOMPRESSED)
