"""Run a command in a separate control group with a memory limit, if this account may make one."""

import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

GROUPS = {"/sys/fs/cgroup/memory": "memory.limit_in_bytes", "/sys/fs/cgroup": "memory.max"}
"""Where control groups of version 1 and of version 2 are made, and the file with a group's limit."""


@contextmanager
def limited(memory: int) -> Iterator[list[str] | None]:
    """Make a control group, and yield what goes before a command that is to run in it; None if that is impossible.

    Args:
        memory: the limit in bytes.
    """
    group = _made(memory)
    if group is None:
        yield None
        return
    try:
        yield ["sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh"]
    finally:
        while (group / "cgroup.procs").read_text():
            time.sleep(0.01)
        group.rmdir()


def _made(memory: int) -> Path | None:
    for hierarchy, name in GROUPS.items():
        if not Path(hierarchy, "cgroup.procs").exists() or not os.access(hierarchy, os.W_OK):
            continue
        group = Path(hierarchy, f"slackwater-{secrets.token_hex(4)}")
        with suppress(OSError):
            group.mkdir()
            try:
                (group / name).write_text(str(memory))
            except OSError:
                group.rmdir()
                raise
            return group
    return None
