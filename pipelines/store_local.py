"""A folder on a local disk as the release store sees it.

What is written is whole or not there, also after a loss of power: a draft is written and flushed, then linked or
renamed, then the folder is flushed. Files are private until the umask of the public side says otherwise.
"""

import errno
import fcntl
import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from transforms.errors import RefusedError

DRAFT = ".draft"


@dataclass(frozen=True, slots=True)
class LocalFolder:
    """Files by their names from the folder `root`, with slashes.

    Attributes:
        private: whether nobody else may look in.
    """

    root: str
    private: bool

    def path(self, name: str) -> str:
        return os.path.join(self.root, *name.split("/"))  # noqa: PTH118 - keeps a relative root as it was given

    def make(self, name: str = "") -> None:
        """Make a folder; what is private is closed to others."""
        mode = 0o700 if self.private else 0o777
        folder = Path(self.root)
        if not folder.is_dir():
            folder.mkdir(mode=mode, parents=True, exist_ok=True)
            _flush(folder.parent)
        if self.private:
            folder.chmod(mode)
        for part in filter(None, name.split("/")):
            folder /= part
            if not folder.is_dir():
                folder.mkdir(mode=mode, exist_ok=True)
                _flush(folder.parent)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold what one process at a time may hold; its death lets go."""
        self.make()
        descriptor = os.open(self.path("lock"), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def files(self, folder: str) -> dict[str, int]:
        """Sizes in bytes of all files under a folder, by name from `root`."""
        found = {}
        for path in Path(self.path(folder)).rglob("*"):
            if path.is_file() and not path.name.startswith("."):
                found[path.relative_to(self.root).as_posix()] = path.stat().st_size
        return dict(sorted(found.items()))

    def folders(self, folder: str) -> list[str]:
        """Names of the folders in a folder."""
        there = Path(self.path(folder))
        return sorted(path.name for path in there.iterdir() if path.is_dir()) if there.is_dir() else []

    def read(self, name: str) -> bytes | None:
        try:
            return Path(self.path(name)).read_bytes()
        except FileNotFoundError:
            return None

    def read_all(self, names: list[str]) -> list[bytes | None]:
        return [self.read(name) for name in names]

    def settle(self, names: list[str]) -> list[tuple[str, int]]:
        """SHA-256 and size of files that others wrote; these are now on the disk and, if private, closed to others."""
        settled = []
        for path in map(Path, map(self.path, names)):
            if self.private:
                path.chmod(0o600)
            with path.open("rb") as file:
                settled.append((hashlib.file_digest(file, "sha256").hexdigest(), file.tell()))
                os.fsync(file.fileno())
        for folder in {parent for name in names for parent in PurePosixPath(name).parents}:
            _flush(Path(self.path(str(folder))))
        return settled

    def write(self, name: str, content: bytes) -> None:
        """Put a file there, over an older one if need be.

        Where others write too, hold the lock: a folder has one draft, so that a run that dies leaves at most this one,
        and the next, which goes on with the same file, puts its own in its place.
        """
        path = Path(self.path(name))
        draft = path.parent / DRAFT
        self.make(name.rpartition("/")[0])
        try:
            self._draft(draft, content)
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)
        _flush(path.parent)

    def create(self, name: str, content: bytes, *, draft: str) -> bytes:
        """Create a file if none is there; what is there now, which is `content` for exactly one caller.

        The draft is a second name of the same file, in the caller's own folder.
        """
        path = Path(self.path(name))
        self.make(name.rpartition("/")[0])
        try:
            self._draft(Path(self.path(draft)), content)
            try:
                os.link(self.path(draft), path)  # fails if it is there, and shows it whole
            except FileExistsError:
                return path.read_bytes()  # ours, if the first of two requests to a file server went through
            except OSError as error:
                if error.errno not in (errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP):
                    raise
                raise RefusedError(
                    f"{self.root}: the disk has no hard links, which make sure that one run wins; use another"
                ) from None
        except BaseException:
            Path(self.path(draft)).unlink(missing_ok=True)
            raise
        _flush(path.parent)
        return content

    def versioned(self, name: str) -> tuple[bytes | None, int]:
        return self.read(name), 0  # who may swap holds the lock, so that no version need be told from another

    def swap(self, name: str, content: bytes, version: int) -> bool:
        """Put a file in the place of the version that was read; under the lock that is the one there."""
        self.write(name, content)
        return True

    def remove(self, folder: str) -> None:
        """Remove a folder with all that is in it; also if somebody else does so too."""
        shutil.rmtree(self.path(folder), ignore_errors=True)
        if Path(self.path(folder)).exists():
            shutil.rmtree(self.path(folder))  # and say why it cannot be removed

    def _draft(self, draft: Path, content: bytes) -> None:
        with open(draft, "wb", opener=self._opener) as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())

    def _opener(self, path: str, flags: int) -> int:
        return os.open(path, flags, 0o600 if self.private else 0o666)


def _flush(folder: Path) -> None:
    """Bring a folder's names to the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
