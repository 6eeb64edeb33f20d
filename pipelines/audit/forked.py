"""Runs in forked processes that end themselves, as a kill would, at a chosen access to a file."""

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CHANGES = ("os.rename", "os.link", "os.remove", "os.mkdir", "os.rmdir", "os.truncate")
"""Events of the interpreter that change files; so does `open` with a flag that writes."""

KILLED, FAILED = 9, 70


@dataclass(frozen=True, slots=True)
class Access:
    """An access to a file or folder.

    Attributes:
        number: 0, 1, ...: how many come before it.
        after: Accesses are counted from the first change of a file on whose path this text is, which is number 0, and
            reads count, too; empty: changes alone are counted, from the beginning.
    """

    number: int
    after: str = ""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process ended.

    Attributes:
        code: 0: it did its work; `KILLED`: it ended itself; another: it failed.
        changes: Number of its changes of files; 0 if it did not end by itself.
    """

    code: int
    changes: int

    @property
    def done(self) -> bool:
        """Whether it has done its work."""
        return self.code == 0


def forked(base: Path, work: Callable[[], object], kill: Access | None = None) -> Ended:
    """Do work in a forked process without output.

    Args:
        base: Folder whose files count, and those whose paths are relative to an open folder.
        work: The work.
        kill: Access at which the process ends itself, before it happens; None: it does not.
    """
    count = base / "accesses"
    count.unlink(missing_ok=True)
    pid = os.fork()
    if pid:
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        return Ended(code, int(count.read_text()) if code == 0 else 0)
    code = FAILED
    try:
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
        changes = _watched(str(base), kill)
        work()
        count.write_text(str(changes[0]))
        code = 0
    finally:
        os._exit(code)


def _watched(base: str, kill: Access | None) -> list[int]:
    """Count accesses of this process, and end it at one of them; return the list with the number of changes."""
    changes, since = [0], [-1]

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event not in CHANGES and event != "open":
            return
        paths = [str(one) for one in arguments if isinstance(one, str | Path)]
        if not paths or (paths[0].startswith("/") and not paths[0].startswith(base)):
            return
        writes = event != "open" or (isinstance(arguments[2], int) and bool(arguments[2] & (os.O_WRONLY | os.O_RDWR)))
        number = changes[0]
        changes[0] += writes
        if kill is None or kill.after == "":
            at = number if writes else -1
        else:
            if since[0] >= 0 or (writes and any(kill.after in path for path in paths)):
                since[0] += 1
            at = since[0]
        if kill is not None and at == kill.number:
            os._exit(KILLED)

    sys.addaudithook(hook)
    return changes
