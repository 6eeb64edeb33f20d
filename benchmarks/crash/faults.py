"""Faults of storage: installed in the child process of a run, or applied to files between two runs.

The first kind lets the n-th write or read of a run fail, in Beam's file systems or in the release store. A full disk
stores half of the file.
"""

import errno
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

from apache_beam.io.filesystems import FileSystems

from benchmarks.crash.checks import demand
from benchmarks.crash.runs import Ended
from benchmarks.crash.setting import Place, document_of
from pipelines.store.gcs import GcsFolder
from pipelines.store.local import LocalFolder

WRITES, READS = 22, 30
"""Approximate number of each in a run."""


def full_disk(number: int) -> None:
    """Let the n-th write and all later ones store half of the file and fail."""
    _patch_writes(lambda found: found >= number, OSError(errno.ENOSPC, "No space left on device"), half=True)


def failed_write(number: int) -> None:
    """Let the n-th write fail, and no other."""
    _patch_writes(lambda found: found == number, OSError(errno.EIO, "Input/output error"), half=False)


def slow_read(number: int) -> None:
    """Let the n-th read time out."""
    numbers = count(1)

    def patched(read: Callable[..., Any]) -> Callable[..., Any]:
        def maybe(*args: Any, **named: Any) -> Any:
            if next(numbers) == number:
                raise TimeoutError(errno.ETIMEDOUT, "Connection timed out")
            return read(*args, **named)

        return maybe

    LocalFolder.read = patched(LocalFolder.read)  # type: ignore[method-assign]
    GcsFolder.read = patched(GcsFolder.read)  # type: ignore[method-assign]
    FileSystems.open = staticmethod(patched(FileSystems.open))


def _patch_writes(fails: Callable[[int], bool], error: OSError, *, half: bool) -> None:
    numbers = count(1)

    def patched(write: Callable[..., Any]) -> Callable[..., Any]:
        def maybe(owner: Any, name: Any, content: bytes, *args: Any, **named: Any) -> Any:
            if not fails(next(numbers)):
                return write(owner, name, content, *args, **named)
            if half and isinstance(owner, LocalFolder):  # an object is written whole or not at all
                write(owner, name, content[: len(content) // 2])
            raise error

        return maybe

    create = FileSystems.create

    def maybe_create(path: str, *args: Any, **named: Any) -> Any:
        failing = fails(next(numbers))
        if failing and not half:
            raise error
        file = create(path, *args, **named)
        if failing:
            file.write(b"half")
            file.close()
            raise error
        return file

    LocalFolder._draft = patched(LocalFolder._draft)  # type: ignore[method-assign]
    GcsFolder.write = patched(GcsFolder.write)  # type: ignore[method-assign]
    GcsFolder.swap = patched(GcsFolder.swap)  # type: ignore[method-assign]
    FileSystems.create = staticmethod(maybe_create)


def damaged(place: Place, fault: str, earlier: Mapping[str, bytes], again: Callable[[], Ended]) -> int:
    """Damage a file of a release, check that a run refuses it, and restore it; return the number of damages.

    Args:
        place: of the release.
        fault: `torn manifest`, `torn record` (the last commit record), `torn state` (a file of the last epoch's state)
            or `stale state` (the version of that file from an epoch before).
        earlier: private files of one night ago, by path.
        again: runs the release.

    Raises:
        BrokenError: the run is not refused, or its message does not name the file.
    """
    side, name = "public", "manifest.json"
    if fault != "torn manifest":
        side, private = "private", place.read("private")
        name = _last_record(private) if fault == "torn record" else _last_noise(private)
    whole = place.read(side)[name]
    wrong = [earlier[_last_noise(earlier)]] if fault == "stale state" else [whole[: len(whole) // 2], b""]
    for content in wrong:
        place.put(f"{side}/{name}", content)
        said = again()
        demand(said.code == 1 and name.rpartition("/")[2] in said.err, f"{fault}: {name} is not refused: {said}")
    place.put(f"{side}/{name}", whole)
    return len(wrong)


def _last_record(private: Mapping[str, bytes]) -> str:
    return max(name for name in private if name.startswith("commits/"))


def _last_noise(private: Mapping[str, bytes]) -> str:
    """Return the path of the state file that holds the noise of the first query in the last epoch."""
    commit = document_of(private[_last_record(private)])
    return f"attempts/{commit['attempt']}/state/{min(name for name in commit['state'] if name.startswith('release-'))}"
