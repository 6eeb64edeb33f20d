"""A disk that forgets: what a machine still knows after the power went, as strictly as POSIX allows.

A file keeps what it held when it was last flushed, a folder the names that it had then; everything else is only in the
machine's memory. So a file survives if it was flushed, and each folder above it since it got its name. What was not
flushed is lost, or has come to the disk by itself, as chance wills. Calls that flush are recorded in the process that
makes them and not done, so that a run is no slower; a kill at any moment leaves what was recorded before.

This runs anywhere. Real file systems forget less: ext4's journal, for one, keeps the order of names.
"""

import ctypes
import json
import os
import shutil
import signal
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

Chance = Callable[[], bool]
"""Whether something that was not flushed survives."""

Names = dict[str, str]
"""What a folder holds: names to inodes."""

NAMES = ("link", "mkdir", "rename", "replace", "rmdir", "unlink")
"""Calls that change what a folder holds."""

FLUSHES = ("fdatasync", "fsync")


@dataclass(frozen=True, slots=True)
class Disk:
    """A file system of its own.

    Attributes:
        root: where it is mounted; this folder itself is never lost.
        memory: a folder outside, for what is on the disk: by inode, contents and names.
    """

    root: Path
    memory: Path

    def flushed(self, path: Path) -> None:
        """A file or folder is on the disk as it is now."""
        content = json.dumps(_names(path)).encode() if path.is_dir() else path.read_bytes()
        kept = self.memory / _inode(path)
        draft = kept.with_suffix(f".{os.getpid()}")
        draft.write_bytes(content)
        _replace(draft, kept)

    def all_flushed(self) -> None:
        """Everything is on the disk."""
        self.memory.mkdir(parents=True, exist_ok=True)
        for path in (self.root, *self.root.rglob("*")):
            self.flushed(path)

    def lose_power(self, survives: Chance) -> None:
        """Put what is left in the place of what is there. Nothing may be running."""
        live = {_inode(path): path for path in (self.root, *self.root.rglob("*"))}
        left = self.root.with_name(f"{self.root.name}.left")
        self._rebuild(_inode(self.root), left, live, survives)
        shutil.rmtree(self.root)
        left.rename(self.root)
        shutil.rmtree(self.memory)
        self.all_flushed()

    def _rebuild(self, inode: str, target: Path, live: dict[str, Path], survives: Chance) -> None:
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
    """From now on this process flushes to these disks alone; once, and for as long as it lives.

    Args:
        flushes: whether it flushes as ever, to real disks.
        dies_after: SIGKILL comes right after so many calls that flush or change names, or after one of this name.
        told: a file that gets a line for each such call, its name.
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
"""As it was before `forget`."""

_LIBC = ctypes.CDLL(None, use_errno=True)
_NOT_FOLLOWED, _BORN = 0x100, 0x800


def _inode(path: Path) -> str:
    """Which file or folder this is, whatever it is called: its number, and when it was born, as numbers come again."""
    told = ctypes.create_string_buffer(256)
    if _LIBC.statx(-100, os.fsencode(path), _NOT_FOLLOWED, 0xFFF, told):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), str(path))
    content = bytes(told)
    mask, mode = int.from_bytes(content[0:4], "little"), int.from_bytes(content[28:30], "little")
    if not mask & _BORN:
        raise RuntimeError(f"{path}: this file system does not tell when a file was made; take another, such as ext4")
    number, seconds = (int.from_bytes(content[at : at + 8], "little") for at in (32, 80))
    nanoseconds = int.from_bytes(content[88:92], "little")
    return f"{number}-{seconds}-{nanoseconds}{'d' if mode & 0o170000 == 0o040000 else 'f'}"
