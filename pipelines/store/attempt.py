"""An attempt at an epoch: a run's private working folder, and whether that run may still be alive.

`attempts/<epoch>-<chance>/` holds nodes, estimates, state and diagnostics, who works there in `run.json`, and how much
was read in `read.json`. A process is known by its number and start, in its own name space of numbers, on its own boot
of a machine. Elsewhere its lock on the file `held` says whether it is alive, if the disk is a local one.
"""

import os
import re
import secrets
import socket
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePosixPath
from typing import TypeVar

from pipelines.store.held import RunLock
from pipelines.store.record import CODEC
from privacy.json_values import indented, parsed

RUN = "run.json"
HELD = "held"
READING = "read.json"
DRAFT = "commit.json"
GRACE = timedelta(days=1)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Attempt:
    """A run's working folder. Its name is by chance, so that no two runs share one, and says nothing of the run.

    Attributes:
        held: shows others that the run is alive, if the disk allows it.
    """

    id: str
    folder: str
    epoch: int
    held: RunLock | None = field(default=None, repr=False, compare=False)

    @staticmethod
    def name(epoch: int) -> str:
        """
        >>> Attempt.name(12).startswith("000012-")
        True
        """
        return f"{epoch:06d}-{secrets.token_hex(8)}"

    @staticmethod
    def epoch_of(id_: str) -> int | None:
        """The epoch that an attempt's name holds; None if it is no attempt's name.

        >>> Attempt.epoch_of("000012-8d1f0c22aa93b7e4"), Attempt.epoch_of("lost+found")
        (12, None)
        """
        found = re.fullmatch(r"(\d{6,})-[0-9a-f]{16}", id_)
        return int(found[1]) if found else None


@dataclass(frozen=True, slots=True)
class Run:
    """Who works in a folder and since when (ISO 8601, UTC).

    Attributes:
        place: where the number of a process means something; empty if this is not known.
        process: its number and start; empty if this is not known.
        held: whether it holds the lock of its attempt as long as it lives.
    """

    host: str
    place: str
    process: str
    began: str
    held: bool = False

    @staticmethod
    def this(*, held: bool = False) -> "Run":
        now = datetime.now(UTC).isoformat(timespec="seconds")
        pid = os.getpid()
        start = _start(pid) or ""
        return Run(socket.gethostname(), _place(), f"{pid} {start}" if start else "", now, held)

    def alive(self) -> bool | None:
        """Whether its process is there; None if it runs where this one cannot look.

        >>> Run.this().alive() is not False
        True
        """
        if not self.place or not self.process or self.place != _place():
            return None
        pid, start = self.process.split(" ", 1)
        return _start(int(pid)) == start

    def is_old(self) -> bool:
        """Whether it began more than a day ago."""
        return datetime.now(UTC) - datetime.fromisoformat(self.began) > GRACE


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsRead:
    """Number of rows that an attempt read, for the operator of a release; no later run needs it.

    Attributes:
        rows: of the changelog.
        dead: those of them that cannot be used.
        seconds: from the first row to the last file of the attempt; None for a stream, which reads as it goes.
    """

    rows: int
    dead: int
    seconds: float | None = None


def text_of(value: Run | RowsRead) -> bytes:
    """Return the content of a file of an attempt, for `whole`."""
    return indented(CODEC.write(value))


def whole(class_: type[T], content: bytes | None) -> T | None:
    """Return the value that `text_of` was given.

    Returns:
        None if the file is missing or torn.

    >>> whole(RowsRead, b'{"rows": 3, "dead": 1, "seconds": 0.5}'), whole(RowsRead, b'{"rows": 3')
    (RowsRead(rows=3, dead=1, seconds=0.5), None)
    """
    try:
        found: T = CODEC.read(class_, parsed(content or b""))
    except ValueError:
        return None
    return found


def public_name(name: str, attempt: str) -> str:
    """Return the public name of a file of an attempt.

    >>> public_name("nodes/beds-0.parquet", "000012-8d1f")
    'nodes/beds-0-000012-8d1f.parquet'
    """
    path = PurePosixPath(name)
    return str(path.with_stem(f"{path.stem}-{attempt}"))


def own_name(public_name: str, attempt: str) -> str:
    """Return the name in its attempt of a public file.

    >>> own_name("nodes/beds-0-000012-8d1f.parquet", "000012-8d1f")
    'nodes/beds-0.parquet'
    """
    path = PurePosixPath(public_name)
    return str(path.with_stem(path.stem.removesuffix(f"-{attempt}")))


def _place() -> str:
    """This boot of this machine, and the name space of its process numbers."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


def _start(pid: int) -> str | None:
    """When a process started, in ticks since the boot; None if it is not there or only waits to be buried."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()  # its name may hold anything
    except OSError:
        return None
    return None if fields[0] in "ZX" else fields[19]
