"""Atomic writes of files: a file appears complete or not at all, even if the process that writes it is killed."""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from transforms.common.sinks import naming, refuse_link


@contextmanager
def drafted(path: str) -> Iterator[str]:
    """Yield the path of a draft, which replaces `path` at the end if it was written.

    The draft of a killed process is removed by the next one that writes this file. If several processes write one file,
    each waits for the previous one. Object stores show files only when they are complete, so there the draft is the
    file.

    Raises:
        OSError: An error of the file, not of its draft.
        RefusedError: `path` is a link, or anything else that is not a file.
    """
    if "://" in path:
        yield path
        return
    target = Path(path)
    refuse_link(path)
    try:
        with own_folder(target.with_name(f".{target.name}.part")) as folder:
            draft = folder / target.name
            yield str(draft)
            if draft.exists():
                draft.replace(target)
    except OSError as error:
        if target.name in str(error.filename):
            error.filename = path
        raise


@contextmanager
def own_folder(path: Path) -> Iterator[Path]:
    """Yield an empty folder of one process at a time, removed at the end; after a kill, the next process removes it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as outer, own_folder(Path(outer) / "a/b") as folder:
    ...     (folder / "left").touch()
    ...     print(folder.exists())
    True
    """
    descriptor = _taken(path)
    try:
        for left in path.iterdir():
            shutil.rmtree(left) if left.is_dir() else left.unlink()
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        with naming(path):
            os.close(descriptor)


def _taken(path: Path) -> int:
    """Return a lock on the folder, which the death of the process releases."""
    while True:
        path.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        try:
            if os.path.samestat(path.stat(), os.fstat(descriptor)):
                return descriptor
        except FileNotFoundError:
            pass
        os.close(descriptor)  # the previous process has removed it
