"""Memory and processor time of running processes, from Linux's /proc."""

import os
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

TICK = os.sysconf("SC_CLK_TCK")


@dataclass(slots=True)
class Watch:
    """Largest observed usage of processes. Look often, since an ended process has no record.

    Attributes:
        new: whether the processes start after the watch.
        peaks: peak memory of each process in bytes.
        seconds: processor seconds of each process since the first look at it, or since its start if `new`.
        at_once: largest sum of peaks over the processes of one look, in bytes.
    """

    new: bool = True
    peaks: dict[int, int] = field(default_factory=dict)
    seconds: dict[int, float] = field(default_factory=dict)
    at_once: int = 0
    _before: dict[int, float] = field(default_factory=dict)

    def look(self, *pids: int) -> None:
        together = 0
        for pid in pids:
            with suppress(FileNotFoundError, ProcessLookupError):  # the process has ended
                taken = _seconds(pid)
                peak = _peak(pid)
                self.peaks[pid] = max(peak, self.peaks.get(pid, 0))
                self.seconds[pid] = taken - self._before.setdefault(pid, 0.0 if self.new else taken)
                together += peak
        self.at_once = max(self.at_once, together)

    @property
    def largest(self) -> int:
        return max(self.peaks.values(), default=0)

    @property
    def processor(self) -> float:
        return sum(self.seconds.values())


def children(pid: int) -> list[int]:
    """Return running child processes."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(FileNotFoundError, ProcessLookupError):
                state, parent, *_ = _stat(int(folder.name))
                if int(parent) == pid and state != "Z":
                    found.append(int(folder.name))
    return found


def workers_of(pool: int) -> list[int]:
    """Return running Python workers; a child process of the pool forks them."""
    return [worker for started in children(pool) for worker in children(started)]


def _stat(pid: int) -> list[str]:
    """Return the fields after the name, which may hold any characters."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def _seconds(pid: int) -> float:
    user, system = _stat(pid)[11:13]
    return (int(user) + int(system)) / TICK


def _peak(pid: int) -> int:
    told = [line.split()[1] for line in Path(f"/proc/{pid}/status").read_text().splitlines() if "VmHWM" in line]
    return int(told[0]) * 1024 if told else 0
