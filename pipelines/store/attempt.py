"""An attempt at an epoch: a run's private working folder, and whether that run may still be alive.

`attempts/<epoch>-<random>/` holds nodes, estimates, state and diagnostics. `run.json` names the process that works
there, and `read.json` has the number of rows read. A process is identified by its number and start, within its name
space of process numbers and its boot of a machine. From elsewhere, its lock on the file `held` shows whether it is
alive, if the disk is a local one.
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
    """A run's working folder. Its name is random, so that no two runs share one, and reveals nothing about the run.

    Attributes:
        held: lock that shows other runs that this run is alive, if the disk allows it.
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
        """Return the epoch in an attempt's name; None if this is not the name of an attempt.

        >>> Attempt.epoch_of("000012-8d1f0c22aa93b7e4"), Attempt.epoch_of("lost+found")
        (12, None)
        """
        found = re.fullmatch(r"(\d{6,})-[0-9a-f]{16}", id_)
        return int(found[1]) if found else None


@dataclass(frozen=True, slots=True)
class Run:
    """Process that works in a folder, and its start (ISO 8601, UTC).

    Attributes:
        place: boot and name space in which the number of the process is valid; empty if unknown.
        process: number and start of the process; empty if unknown.
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
        """Whether its process is alive; None if this cannot be seen from here.

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
        rows: number of rows of the changelog.
        dead: number of unusable rows.
        seconds: time from the first row to the last file of the attempt; None for a stream, which reads continuously.
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
    """Return the current boot of this machine, and the name space of its process numbers."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


def _start(pid: int) -> str | None:
    """Return when a process started, in ticks since the boot; None if it does not exist or is a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()  # its name may hold anything
    except OSError:
        return None
    return None if fields[0] in "ZX" else fields[19]
