"""A lock on a file for the life of a run: another process sees by it whether the run is alive, also from another
container, and after a restart of the machine.

Only a local disk is trusted, since there one kernel knows all locks. File servers may keep each machine's locks apart.
"""

import fcntl
import os
from contextlib import suppress
from pathlib import Path

_LOCAL = frozenset(("ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "bcachefs", "overlay", "tmpfs"))
_MOUNTS = Path("/proc/self/mountinfo")


class RunLock:
    """A lock that lasts as long as this object, and at most as long as its process."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def __del__(self) -> None:
        with suppress(OSError):  # a file server reports a full disk here, and nothing was written
            os.close(self._descriptor)


def hold(path: str) -> RunLock | None:
    """Create a file and lock it.

    Returns:
        None if locks on this disk do not show who is alive.

    Raises:
        OSError: the file cannot be created.
    """
    held = RunLock(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600))
    if not _is_local(path):
        return None
    try:
        fcntl.flock(held._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return None
    return held


def is_held(path: str) -> bool | None:
    """Return whether a process holds the lock that `hold` took on a file; None if this cannot be seen from here."""
    with suppress(OSError):
        if _is_local(path):
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)  # shared, so that two may ask at once
            except BlockingIOError:
                return True
            finally:
                os.close(descriptor)
            return False
    return None


def _is_local(path: str) -> bool:
    """Whether the folder of a file lies on a disk of this machine."""
    device = Path(path).parent.stat().st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    with suppress(OSError):
        for line in _MOUNTS.read_text(errors="surrogateescape").splitlines():
            of_mount, _, of_system = line.partition(" - ")
            if of_mount.split()[2] == number:
                return of_system.split()[0] in _LOCAL
    return False
