"""A folder on a local disk as the release store sees it.

A file is complete or absent, also after a power loss: a draft is written and flushed, then linked or renamed, then all
folders above it are flushed, up to the root of the machine. If the writer died before it flushed a file, the file may
be only in memory: code that relies on a file flushes it first (`flush`). Files are private until the umask of the
public side says otherwise. Below the root no link is followed, and files are created exclusively: an account that may
write to the public folder must not cause a run to write or remove files elsewhere.
"""

import errno
import fcntl
import hashlib
import os
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from pipelines.store.held import RunLock, hold, is_held
from transforms.common.errors import RefusedError
from transforms.common.sinks import NEW, naming

_DRAFT = ".draft"


@dataclass(frozen=True, slots=True)
class LocalFolder:
    """Files by their names from the folder `root`, with slashes.

    Attributes:
        private: whether the folder is closed to other accounts.
    """

    root: str
    private: bool
    _above: list[Path] = field(default_factory=list, repr=False, compare=False)
    """Folders above `root` that are flushed to the disk."""

    def path(self, name: str) -> str:
        return os.path.join(self.root, *name.split("/"))  # noqa: PTH118 - keeps a relative root as it was given

    def make(self, name: str = "") -> None:
        """Make a folder, closed to other accounts if it is private. The writer of its first file flushes it."""
        mode = 0o700 if self.private else 0o777
        folder = Path(self.root)
        if not folder.is_dir():
            folder.mkdir(mode=mode, parents=True, exist_ok=True)
        if self.private and stat.S_IMODE(folder.stat().st_mode) != mode:
            folder.chmod(mode)
        for part in filter(None, name.split("/")):
            folder /= part
            _refuse_link(folder)
            if not folder.is_dir():
                folder.mkdir(mode=mode, exist_ok=True)

    def refuse_unwritable(self) -> None:
        """Check before any work whether something can be written here; nothing is created.

        Raises:
            OSError: of the folder, or of the one above it in which it would be made.
        """
        folder = next(above for above in (Path(self.root), *Path(self.root).absolute().parents) if above.exists())
        if not os.access(folder, os.W_OK | os.X_OK, effective_ids=True):
            read_only = os.statvfs(folder).f_flag & os.ST_RDONLY
            code = errno.EROFS if read_only else errno.EACCES
            raise OSError(code, os.strerror(code), str(folder))

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the lock of the folder, which one process at a time can hold. It is released when the process ends."""
        self.make()
        descriptor = os.open(self.path("lock"), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            with naming(self.path("lock")):
                os.close(descriptor)

    def hold(self, name: str) -> RunLock | None:
        """Lock a new file for the life of a run; None if locks on this disk do not show whether a run is alive."""
        return hold(self.path(name))

    def is_held(self, name: str) -> bool | None:
        """Return whether a run holds its lock on a file; None if this cannot be seen from here."""
        return is_held(self.path(name))

    def files(self, folder: str) -> dict[str, int]:
        """Sizes in bytes of all files under a folder, by name from `root`; none if it is not there.

        Raises:
            OSError: one of its folders cannot be listed. It must not look empty.
        """
        found = {}
        for above, _, names in os.walk(self.path(folder), onerror=_raise):
            for name in names:
                path = Path(above, name)
                if not name.startswith("."):
                    with suppress(FileNotFoundError):  # somebody has removed it since
                        found[path.relative_to(self.root).as_posix()] = path.stat().st_size
        return dict(sorted(found.items()))

    def folders(self, folder: str) -> list[str]:
        """Names of the folders in a folder."""
        there = Path(self.path(folder))
        return sorted(path.name for path in there.iterdir() if path.is_dir()) if there.is_dir() else []

    def read(self, name: str) -> bytes | None:
        try:
            with naming(self.path(name)):
                return Path(self.path(name)).read_bytes()
        except FileNotFoundError:
            return None

    def read_all(self, names: list[str]) -> list[bytes | None]:
        return [self.read(name) for name in names]

    def settle(self, names: list[str]) -> list[tuple[str, int] | None]:
        """SHA-256 and size of files that others wrote, None for one that is missing; the others are now on the disk
        and, if private, closed to others."""
        settled: list[tuple[str, int] | None] = []
        for path in map(Path, map(self.path, names)):
            try:
                with naming(path), os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
                    if self.private:
                        os.fchmod(file.fileno(), 0o600)
                    settled.append((hashlib.file_digest(file, "sha256").hexdigest(), file.tell()))
                    os.fsync(file.fileno())
            except FileNotFoundError:
                settled.append(None)
        self._flush_folders(name for name, found in zip(names, settled, strict=True) if found is not None)
        return settled

    def flush(self, names: Iterable[str]) -> None:
        """Flush files and the folders above them to the disk, also if another run wrote them."""
        names = list(names)
        for name in names:
            _flush(Path(self.path(name)))
        self._flush_folders(names)

    def write(self, name: str, content: bytes) -> None:
        """Write a file, and replace an older one if it exists. Afterwards it is on the disk."""
        self.put(name, content)
        self._flush_folders([name])

    def put(self, name: str, content: bytes) -> None:
        """Same as `write` for one of many files, whose names reach the disk with `flush`.

        If other processes write too, hold the lock. A folder has one draft, so that a dead run leaves at most one;
        the next run, which continues with the same file, replaces it.
        """
        self.make(name.rpartition("/")[0])
        with self._inside(name) as (folder, last):
            try:
                self._draft(_DRAFT, folder, content)
                os.replace(_DRAFT, last, src_dir_fd=folder, dst_dir_fd=folder)
            finally:
                _unlink(_DRAFT, folder)

    def create(self, name: str, content: bytes, *, draft: str) -> bytes:
        """Create a file unless it exists; return the content of the file, which is `content` for exactly one caller.

        Args:
            name: Name of the file.
            content: Its content.
            draft: Second name of the same file, in the caller's own folder.

        Raises:
            RefusedError: The disk has no hard links.
        """
        path = Path(self.path(name))
        self.make(name.rpartition("/")[0])
        try:
            with self._inside(draft) as (folder, last):
                self._draft(last, folder, content)
            try:
                os.link(self.path(draft), path)  # fails if the file exists, and shows it complete
            except FileExistsError:
                self.flush([name])  # who wins may have died before it did
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
        self._flush_folders([name])
        return content

    def versioned(self, name: str) -> tuple[bytes | None, int]:
        return self.read(name), 0  # who may swap holds the lock, so that no version is needed

    def swap(self, name: str, content: bytes, version: int) -> bool:
        """Replace the version of a file that was read; under the lock no other version can exist.

        Args:
            name: Name of the file.
            content: New content.
            version: Not used: the caller holds the lock.

        Returns:
            True always.
        """
        self.write(name, content)
        return True

    def remove(self, folder: str) -> None:
        """Remove a folder with its content. Another process may do so at the same time."""
        shutil.rmtree(self.path(folder), ignore_errors=True)
        if Path(self.path(folder)).exists():
            shutil.rmtree(self.path(folder))  # and say why it cannot be removed

    def drop(self, names: Iterable[str]) -> None:
        """Remove files. Another process may do so at the same time."""
        for name in names:
            with suppress(FileNotFoundError), self._inside(name) as (folder, last):
                _unlink(last, folder)

    def _flush_folders(self, names: Iterable[str]) -> None:
        """Flush the folders of files, and all folders above them, to the disk."""
        within = {parent for name in names for parent in PurePosixPath(name).parents}
        for folder in sorted(within, reverse=True):
            _flush(Path(self.path(str(folder))))
        if within and not self._above:
            root = Path(self.root)
            above = dict.fromkeys((*root.resolve().parents, *root.absolute().parents))  # links on the way too
            for folder_above in above:
                _flush(folder_above)
            self._above.extend(above)

    @contextmanager
    def _inside(self, name: str) -> Iterator[tuple[int, str]]:
        """The open folder of a file, and the file's name in it. Errors name the whole path.

        Raises:
            RefusedError: a folder below the root is a link.
        """
        *folders, last = name.split("/")
        path = Path(self.root)
        with naming(path), ExitStack() as opened:
            folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
            opened.callback(os.close, folder)
            try:
                for part in folders:
                    _refuse_link(path / part)
                    folder = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
                    opened.callback(os.close, folder)
                    path /= part
                yield folder, last
            except OSError as error:
                error.filename = str(path / Path(error.filename or last).name)
                raise

    def _draft(self, draft: str, folder: int, content: bytes) -> None:
        """Write a draft into an open folder, and replace a draft of a killed run."""
        mode = 0o600 if self.private else 0o666
        try:
            descriptor = os.open(draft, NEW, mode, dir_fd=folder)
        except FileExistsError:
            os.unlink(draft, dir_fd=folder)
            descriptor = os.open(draft, NEW, mode, dir_fd=folder)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())


def _unlink(name: str, folder: int) -> None:
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)


def _refuse_link(path: Path) -> None:
    """
    Raises:
        RefusedError: a folder of a release is a link.
    """
    if path.is_symlink():
        raise RefusedError(f"{path}: is a link, and the folders of a release hold none; remove it")


def _raise(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error


def _flush(path: Path) -> None:
    """Flush a file's content, or a folder's names, to the disk."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except PermissionError:
        os.sync()  # this account may not list a folder above: flush everything
        return
    with naming(path):
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
