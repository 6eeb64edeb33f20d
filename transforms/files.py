"""Opening files of any of Beam's file systems as Arrow streams."""

import zlib
from dataclasses import dataclass

import pyarrow as pa
from apache_beam.io.filesystem import BeamIOError, CompressionTypes
from apache_beam.io.filesystems import FileSystems

from transforms.errors import InputError, SpecError

UNREADABLE = (pa.ArrowException, OSError, EOFError, zlib.error, BeamIOError, UnicodeDecodeError)
"""What the libraries raise when a file has vanished, is truncated or is not of its format."""

_CODECS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}


@dataclass(frozen=True, slots=True)
class Listed:
    """A file as its folder lists it: `updated` in seconds since the epoch, 0 where that is not known."""

    path: str
    size: int
    updated: float


def find(paths: tuple[str, ...]) -> tuple[Listed, ...]:
    """All files that match, sorted by path.

    Raises:
        SpecError: a glob that matches nothing.
        InputError: a file without any bytes, or a file system that cannot be listed.
    """
    found: set[Listed] = set()
    for pattern in paths:
        listed = matching((pattern,))
        if not listed:
            raise SpecError(f"changelog.path: no file matches {pattern!r}; check the path, relative to where you run")
        found.update(listed)
    for file in found:
        if file.size == 0:
            raise InputError(f"{file.path}: the file is empty (0 bytes); remove it, or write it again")
    return tuple(sorted(found, key=lambda file: file.path))


def matching(paths: tuple[str, ...]) -> tuple[Listed, ...]:
    """All files that match, perhaps none, perhaps empty ones, sorted by path.

    Raises:
        InputError: a file system that cannot be listed.
    """
    found: dict[str, Listed] = {}
    for pattern in paths:
        try:
            # Beam lists the folder that a glob begins with, and finds nothing where it names none.
            listed = FileSystems.match([pattern if "/" in pattern else f"./{pattern}"])[0].metadata_list
        except (BeamIOError, ValueError) as error:
            raise InputError(
                f"{pattern}: cannot be listed ({type(error).__name__}); check the path and your rights"
            ) from error
        for metadata in listed:
            updated = metadata.last_updated_in_seconds or 0.0
            found[metadata.path] = Listed(metadata.path, metadata.size_in_bytes, float(updated))
    return tuple(found[path] for path in sorted(found))


def open_random(path: str) -> pa.NativeFile:
    """For formats that seek (Parquet)."""
    if "://" not in path:
        return pa.memory_map(path)
    return pa.PythonFile(_open(path), mode="r")


def open_stream(path: str) -> pa.NativeFile:
    """From begin to end, decompressed by the path's extension; a truncated stream raises instead of ending early."""
    raw = pa.PythonFile(_open(path), mode="r")
    codec = next((name for extension, name in _CODECS.items() if path.endswith(extension)), None)
    return raw if codec is None else pa.CompressedInputStream(raw, codec)


def _open(path: str) -> object:
    # Beam would end a truncated gzip stream without a word, so that Arrow decompresses.
    return FileSystems.open(path, "application/octet-stream", CompressionTypes.UNCOMPRESSED)
