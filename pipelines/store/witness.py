"""The witness of a release: a record of its commits outside its two folders, so that a rollback of both is noticed.

Each commit adds a line after it is made and before it is shown:

    {"release": ID, "epoch": 12, "commit": SHA-256 of the epoch's public record, "previous": SHA-256 of the line before}

All lines follow from the committed records, so they are compared as bytes, and no content of a witness is parsed: it
may come from somebody else. A run that finds more lines than epochs refuses to continue, since it would sample the
noise of the missing epochs again. A run that was killed between a commit and its line leaves one line less, or a part
of it; the next run completes it. On a local path the lines are one file, which is only ever appended to. On `gs://`
each line is an object, which is only ever created.
"""

import errno
import fcntl
import hashlib
import json
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pipelines.store.gcs import GcsFolder
from pipelines.store.record import EpochKind, R, record_json
from privacy.counted import counted
from transforms.common.errors import RefusedError

LINES = "lines"
"""Folder of a bucket's prefix that holds the objects."""

MORE = 1 << 20
"""Bytes that are read beyond the expected lines."""


class Witness(Protocol):
    """Lines at a path, of which none is ever changed or removed."""

    def read(self) -> bytes:
        """Return all lines.

        Raises:
            RefusedError: The witness is unavailable.
        """
        ...

    def count(self) -> int:
        """Return the number of complete lines.

        Raises:
            RefusedError: The witness is unavailable.
        """
        ...

    def extend(self, lines: Sequence[bytes], *, least: int, private: str) -> None:
        """Check that the witness holds the first of these lines and no other, and append the missing ones.

        Args:
            lines: Lines of all epochs.
            least: Number of lines that it must hold already.
            private: The private folder, for messages.

        Raises:
            RefusedError: It knows of later epochs or of others, is cut, or is unavailable.
        """
        ...


def witness_at(path: str) -> Witness:
    """Return the witness at a local path, or at a prefix of a bucket."""
    return BucketWitness(GcsFolder(path)) if "://" in path else FileWitness(path)


def lines_of(kind: EpochKind[R], records: Sequence[R], release: str, before: Sequence[bytes] = ()) -> list[bytes]:
    """Return the lines of epochs, each of them with its end of line.

    Args:
        kind: Kind of the epochs.
        records: Their records.
        release: Id of the release.
        before: Lines of the epochs before them.
    """
    lines = [*before]
    for record in records:
        members = {
            "release": release,
            "epoch": record.epoch,
            "commit": hashlib.sha256(record_json(kind.public(record))).hexdigest(),
            "previous": hashlib.sha256(lines[-1]).hexdigest() if lines else "",
        }
        lines.append(json.dumps(members).encode() + b"\n")
    return lines[len(before) :]


@dataclass(frozen=True, slots=True)
class FileWitness:
    """A local file with all lines."""

    path: str

    def read(self) -> bytes:
        with self._opened(os.O_RDONLY) as file:
            return _read(file, MORE * 64)

    def count(self) -> int:
        return self.read().count(b"\n")

    def extend(self, lines: Sequence[bytes], *, least: int, private: str) -> None:
        expected = b"".join(lines)
        with self._opened(os.O_RDWR | os.O_APPEND | os.O_CREAT) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            found = _read(file, len(expected) + MORE)
            complete = found.count(b"\n")
            if not expected.startswith(found):
                if found.startswith(expected):
                    raise _ahead(self.path, private, max(complete, len(lines) + 1), len(lines))
                pairs = zip(found.split(b"\n"), lines, strict=False)
                raise _differs(
                    self.path, private, next(n for n, (one, line) in enumerate(pairs, start=1) if one != line[:-1])
                )
            _refuse_cut(self.path, private, complete, least)
            rest = expected[len(found) :]
            while rest:
                rest = rest[os.write(file, rest) :]
            os.fsync(file)
        folder = os.open(Path(self.path).parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    @contextmanager
    def _opened(self, flags: int) -> Iterator[int]:
        try:
            file = os.open(self.path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
            try:
                if not stat.S_ISREG(os.fstat(file).st_mode):
                    raise OSError(errno.EINVAL, "not a file")
                yield file
            finally:
                os.close(file)
        except OSError as error:
            raise _unavailable(self.path, error.strerror or type(error).__name__) from None


@dataclass(frozen=True, slots=True)
class BucketWitness:
    """A prefix of a bucket with an object for each line."""

    folder: GcsFolder

    def read(self) -> bytes:
        with self._available():
            return b"".join(self.folder.read(name) or b"" for name in sorted(self.folder.files(LINES)))

    def count(self) -> int:
        with self._available():
            return len(self.folder.files(LINES))

    def extend(self, lines: Sequence[bytes], *, least: int, private: str) -> None:
        root = self.folder.root
        with self._available():
            found = self.folder.files(LINES)
            names = [_name(number) for number in range(1, len(found) + 1)]
            if [*found] != names:
                raise RefusedError(f"{root}: holds other objects than the lines of a witness; name another prefix")
            if len(found) > len(lines):
                raise _ahead(root, private, len(found), len(lines))
            # The last line holds the digest of the one before it, and so on.
            last = len(found)
            if found and (found[names[-1]] != len(lines[last - 1]) or self.folder.read(names[-1]) != lines[last - 1]):
                raise _differs(root, private, last)
            _refuse_cut(root, private, last, least)
            for number, line in enumerate(lines[last:], start=last + 1):
                name = _name(number)
                if not self.folder.swap(name, line, 0) and self.folder.read(name) != line:
                    raise _differs(root, private, number)

    @contextmanager
    def _available(self) -> Iterator[None]:
        try:
            yield
        except RefusedError:
            raise
        except Exception as error:  # the client has many
            raise _unavailable(self.folder.root, type(error).__name__) from None


def _name(number: int) -> str:
    return f"{LINES}/{number:06d}.json"


def _read(file: int, most: int) -> bytes:
    parts = []
    while most > 0 and (part := os.read(file, most)):
        parts.append(part)
        most -= len(part)
    return b"".join(parts)


def _unavailable(path: str, why: str) -> RefusedError:
    return RefusedError(
        f"{path}: the witness in output.witness is unavailable ({why}); make it available again, or name another path "
        "with a copy of it"
    )


def _ahead(path: str, private: str, known: int, epochs: int) -> RefusedError:
    return RefusedError(
        f"{private}: holds {counted(epochs, 'epoch')}, and the witness {path} knows of {known}; restore copies of both "
        f"folders from after epoch {known}, since the noise of what was published after epoch {epochs} would be "
        "sampled a second time"
    )


def _differs(path: str, private: str, epoch: int) -> RefusedError:
    return RefusedError(
        f"{path}: its line {epoch} is not of epoch {epoch} in {private}; restore the folders of the release that it "
        "records, or the witness from a copy if it was changed, or name the witness of this release"
    )


def _refuse_cut(path: str, private: str, complete: int, least: int) -> None:
    if complete < least:
        raise RefusedError(
            f"{path}: the witness ends after epoch {complete}, and {private} has recorded epochs up to {least} there; "
            "restore the witness from a copy"
        )
