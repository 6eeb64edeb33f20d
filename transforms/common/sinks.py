"""Write tables as files through Beam's file systems: local directories and `gs://` alike.

    in    (part name, bytes)     an Arrow IPC stream
    out   paths

A file's name depends on the part alone, so a step that runs twice writes one file twice.
"""

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import apache_beam as beam
import pyarrow as pa
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems

from transforms.common.errors import RefusedError
from transforms.common.ipc import from_bytes
from transforms.common.output_formats import DEFAULT, OUTPUT_FORMATS

NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
"""Flags that open a new file: a link in its place is an error."""


class WriteTables(beam.PTransform):
    """Transform that writes one file for each part: `<folder>/<part name>.<format>`."""

    def __init__(self, folder: str, *, format_: str = DEFAULT) -> None:
        super().__init__()
        if format_ not in OUTPUT_FORMATS:
            raise ValueError(f"{format_!r} is not one of {', '.join(OUTPUT_FORMATS)}")
        self._folder = folder
        self._format = format_

    def expand(self, parts: beam.PCollection[tuple[str, bytes]]) -> beam.PCollection[str]:
        return parts | "WriteFiles" >> beam.ParDo(_WriteFile(self._folder, self._format))


class _WriteFile(beam.DoFn):
    def __init__(self, folder: str, format_: str) -> None:
        self._folder = folder
        self._format = format_

    def process(self, part: tuple[str, bytes]) -> Iterator[str]:
        name, payload = part
        path = FileSystems.join(self._folder, f"{name}.{self._format}")
        write_table(from_bytes(payload), path, format_=self._format)
        yield path


class WriteBytes(beam.PTransform):
    """Transform that writes private `(file name, bytes)` unchanged: `<folder>/<file name>`."""

    def __init__(self, folder: str) -> None:
        super().__init__()
        self._folder = folder

    def expand(self, files: beam.PCollection[tuple[str, bytes]]) -> beam.PCollection[str]:
        return files | "WriteBytes" >> beam.Map(write_bytes, self._folder)


def write_bytes(named: tuple[str, bytes], folder: str) -> str:
    """Write one file of that name, and return its path."""
    name, content = named
    path = FileSystems.join(folder, name)
    with new_file(path) as file:
        file.write(content)
    return path


def write_text(path: str, text: str, *, mode: int = 0o666) -> None:
    """Write one file of text in UTF-8.

    Args:
        path: Path of the file.
        text: Its content.
        mode: Permissions of a local file.
    """
    with new_file(path, mode=mode) as file:
        file.write(text.encode())


@contextmanager
def new_file(path: str, *, mode: int = 0o666) -> Iterator[BinaryIO]:
    """Yield a file that replaces the one at `path` once it is complete; its folder is made if it is missing.

    It is created exclusively and follows no link.

    Raises:
        RefusedError: `path` is a link, or anything else that is not a file.
    """
    folder, slash, _ = path.rpartition("/")
    if slash:
        make_folder(folder)
    if "://" in path:
        with naming(path), whole(FileSystems.create(path, mime_type="application/octet-stream")) as file:
            yield file
        return
    target = Path(path)
    refuse_link(path)
    draft = target.with_name(f".{secrets.token_hex(8)}.draft")
    try:
        with naming(path), os.fdopen(os.open(draft, NEW, mode), "wb") as file:
            yield file
        draft.replace(target)
    except BaseException as error:
        with suppress(OSError):
            draft.unlink()
        if isinstance(error, OSError) and error.filename == str(draft):
            error.filename = path
        raise


def refuse_link(path: str) -> None:
    """Refuse a path that is a link.

    Raises:
        RefusedError: `path` is a link, or anything else that is not a file.
    """
    with suppress(FileNotFoundError):
        if not stat.S_ISREG(Path(path).lstat().st_mode):
            raise RefusedError(f"{path}: is a link, or something else that is not a file; remove it, or name a file")


@contextmanager
def whole(file: BinaryIO) -> Iterator[BinaryIO]:
    """Close a file after the block, or discard it if the block or closing fails.

    An object of Google Storage that failed would otherwise be uploaded again when Python's garbage collector finds it.
    """
    try:
        with file:
            yield file
    except BaseException:
        with suppress(Exception):
            getattr(file, "terminate", file.close)()
        raise


@contextmanager
def naming(path: str | Path) -> Iterator[None]:
    """Add the file's name to the error of a full disk: the system names none when a write fails."""
    try:
        yield
    except OSError as error:
        number = number_of(error)
        if number is None or error.filename is not None:
            raise
        raise OSError(number, os.strerror(number), str(path)) from error


def number_of(error: OSError) -> int | None:
    """Return the system's number of an error; Arrow leaves it out if a file cannot be closed."""
    return errno.EIO if error.errno is None and str(error) == "error closing file" else error.errno


def is_there(path: str) -> bool:
    """Return whether a file or folder exists. A failed lookup raises its error."""
    if "://" in path:
        return bool(FileSystems.exists(path))
    try:
        Path(path).stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def read_bytes(path: str) -> bytes:
    """Return the content of a file."""
    unpacked = CompressionTypes.UNCOMPRESSED
    with naming(path), FileSystems.open(path, "application/octet-stream", unpacked) as file:
        content: bytes = file.read()
    return content


def write_table(table: pa.Table, path: str, *, format_: str = DEFAULT, mode: int = 0o666) -> None:
    """Write one table as one file.

    Args:
        table: The table.
        path: Path of the file.
        format_: Name of its format.
        mode: Permissions of a local file.
    """
    with new_file(path, mode=mode) as file:
        OUTPUT_FORMATS[format_].write(table, file)


def make_folder(folder: str) -> None:
    """Make a folder, except on object stores, which have none.

    Raises:
        OSError: It cannot be made; the error names the folder, which Beam's own error does not.
    """
    if "://" not in folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
    elif not is_there(folder):
        try:
            FileSystems.mkdirs(folder)
        except OSError:
            if not is_there(folder):  # else another worker has made it
                raise
