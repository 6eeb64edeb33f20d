"""Memory that this process may use, and smaller batches if it is little.

A container's limit is that of its control group. The system kills a process that exceeds it, without a message.
"""

import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path, PurePosixPath

MEBIBYTE = 2**20
GIBIBYTE = 2**30

AMPLE = GIBIBYTE
"""Bytes from which batches have their full size."""

NEEDED = GIBIBYTE // 2
"""Bytes with which a run of millions of rows succeeds (docs/operations.md, "Memory")."""

_LIMITS = {
    "cgroup/memory": "memory.limit_in_bytes",
    "cgroup": "memory.max",
    "cgroup/unified": "memory.max",
}
"""Paths under /sys/fs: groups of version 1 and of version 2, and the file with a group's limit."""


@lru_cache(maxsize=1)
def available() -> int:
    """Return the bytes of memory that this process may use: all of the machine's, or its control group's limit."""
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min([machine, *limits(Path("/"))])


def limits(root: Path) -> Iterator[int]:
    """Yield the limits in bytes of this process's control groups, and of all groups above them.

    Args:
        root: Root of the file system. In a container, a group's path can be one of the machine outside, and the
            container sees its own group at the top: so the limit there counts too.
    """
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:  # a system other than Linux
        return
    for line in lines:
        _, controllers, group = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        for hierarchy, name in _LIMITS.items():
            if (hierarchy == "cgroup/memory") == bool(controllers):
                for path in (PurePosixPath(group), *PurePosixPath(group).parents):
                    yield from _limit(root / "sys/fs" / hierarchy / str(path).lstrip("/") / name)


def _limit(file: Path) -> Iterator[int]:
    """Yield the number in a file; nothing if the file is missing or holds `max`."""
    try:
        yield int(file.read_text())
    except (OSError, ValueError):
        return


def shortage(memory: int | None = None) -> str | None:
    """Return a warning if this process may use less memory than a run needs, else None.

    Args:
        memory: Bytes; by default the available memory.

    >>> shortage(2 * GIBIBYTE)
    >>> (shortage(300 * MEBIBYTE) or "")[:64]
    'this process may use 300 MiB of memory, and a run of millions of'
    """
    memory = available() if memory is None else memory
    if memory >= NEEDED:
        return None
    return (
        f"this process may use {memory // MEBIBYTE:,} MiB of memory, and a run of millions of rows needs "
        f"{NEEDED // MEBIBYTE} MiB: the system may kill it without a message; raise the memory limit of its container "
        "or control group"
    )


def scaled(most: int, memory: int | None = None) -> int:
    """Return `most`, or less in proportion if there is less memory than `AMPLE`; at least 1.

    Args:
        most: Size with ample memory.
        memory: Bytes; by default the available memory.

    >>> scaled(16, 2 * GIBIBYTE), scaled(16, GIBIBYTE // 2), scaled(2, GIBIBYTE // 4)
    (16, 8, 1)
    """
    memory = available() if memory is None else memory
    return max(1, most * min(memory, AMPLE) // AMPLE)
