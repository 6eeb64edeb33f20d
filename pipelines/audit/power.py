"""A simulated disk that loses unflushed writes when power is lost, as strictly as POSIX allows.

A file keeps its contents from its last flush, and a folder its names from then; everything else is only in the
machine's memory. So a file survives if it was flushed, and each folder above it was flushed after it got its name.
Unflushed writes are lost, or reach the disk by chance. The process that calls a flush records it and does not perform
it, so that runs are not slower. After a kill, everything that was recorded remains.

This runs on any machine. Real file systems lose less: for example, ext4's journal keeps the order of names.
"""

import ctypes
import json
import os
import shutil
import signal
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

Survives = Callable[[], bool]
"""Whether an unflushed write survives; called for each."""

Names = dict[str, str]
"""Inodes by name in a folder."""

NAMES = ("link", "mkdir", "rename", "replace", "rmdir", "unlink")
"""Calls that change names in a folder."""

FLUSHES = ("fdatasync", "fsync")


@dataclass(frozen=True, slots=True)
class Disk:
    """A simulated file system.

    Attributes:
        root: mount point; this folder itself is never lost.
        memory: a folder outside with the flushed state: contents and names by inode.
    """

    root: Path
    memory: Path

    def flushed(self, path: Path) -> None:
        """Record that a file or folder is on the disk in its present state."""
        content = json.dumps(_names(path)).encode() if path.is_dir() else path.read_bytes()
        kept = self.memory / _inode(path)
        draft = kept.with_suffix(f".{os.getpid()}")
        draft.write_bytes(content)
        _replace(draft, kept)

    def all_flushed(self) -> None:
        """Record that everything is on the disk."""
        self.memory.mkdir(parents=True, exist_ok=True)
        for path in (self.root, *self.root.rglob("*")):
            self.flushed(path)

    def lose_power(self, survives: Survives) -> None:
        """Replace the files by those that survive. No process may use the disk."""
        live = {_inode(path): path for path in (self.root, *self.root.rglob("*"))}
        left = self.root.with_name(f"{self.root.name}.left")
        self._rebuild(_inode(self.root), left, live, survives)
        shutil.rmtree(self.root)
        left.rename(self.root)
        shutil.rmtree(self.memory)
        self.all_flushed()

    def _rebuild(self, inode: str, target: Path, live: dict[str, Path], survives: Survives) -> None:
        on_disk = self.memory / inode
        if not inode.endswith("d"):
            contents = [on_disk.read_bytes() if on_disk.exists() else b""]
            if inode in live and survives():
                contents.append(live[inode].read_bytes())
            target.write_bytes(contents[-1])
            return
        before: Names = json.loads(on_disk.read_bytes()) if on_disk.exists() else {}
        now = _names(live[inode]) if inode in live else before
        target.mkdir(mode=0o700)
        for name in sorted(before.keys() | now.keys()):
            child = before.get(name) if before.get(name) == now.get(name) or not survives() else now.get(name)
            if child is not None:
                self._rebuild(child, target / name, live, survives)


def forget(
    disks: Iterable[Disk], *, dies_after: int | str | None = None, told: Path | None = None, flushes: bool = False
) -> None:
    """Replace calls of this process that flush or change names, once and until its end.

    Args:
        disks: that record flushes.
        dies_after: number, or name, of the call after which the process kills itself with SIGKILL.
        told: a file that gets a line with the name of each such call.
        flushes: whether flushes go to real disks, as usual.
    """
    disks = tuple(disks)
    calls = [0]

    def counted(name: str, call: Callable[..., object]) -> Callable[..., object]:
        def counting(*arguments: object, **named: object) -> object:
            result = call(*arguments, **named)
            calls[0] += 1
            if told is not None:
                with told.open("a") as file:
                    file.write(f"{name}\n")
            if dies_after in (calls[0], name):
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return counting

    def flush(descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        for disk in disks:
            if path.is_relative_to(disk.root):
                disk.flushed(path)

    def sync() -> None:
        for disk in disks:
            disk.all_flushed()

    replaced = {name: getattr(os, name) for name in NAMES} | dict.fromkeys(FLUSHES, flush)
    if flushes:
        replaced = {name: getattr(os, name) for name in (*NAMES, *FLUSHES)}
    recorder = {name: counted(name, call) for name, call in replaced.items()}
    for name, call in (recorder if flushes else recorder | {"sync": sync}).items():
        setattr(os, name, call)


def _names(folder: Path) -> Names:
    return {entry.name: _inode(Path(entry.path)) for entry in os.scandir(folder)}


_replace = os.replace
"""The original function, without the changes of `forget`."""

_LIBC = ctypes.CDLL(None, use_errno=True)
_NOT_FOLLOWED, _BORN = 0x100, 0x800


def _inode(path: Path) -> str:
    """Return the identity of a file or folder: inode number and time of birth, since numbers are used again."""
    told = ctypes.create_string_buffer(256)
    if _LIBC.statx(-100, os.fsencode(path), _NOT_FOLLOWED, 0xFFF, told):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), str(path))
    content = bytes(told)
    mask, mode = int.from_bytes(content[0:4], "little"), int.from_bytes(content[28:30], "little")
    if not mask & _BORN:
        raise RuntimeError(
            f"{path}: this file system does not record when a file was created; use another, such as ext4"
        )
    number, seconds = (int.from_bytes(content[at : at + 8], "little") for at in (32, 80))
    nanoseconds = int.from_bytes(content[88:92], "little")
    return f"{number}-{seconds}-{nanoseconds}{'d' if mode & 0o170000 == 0o040000 else 'f'}"
