"""Runs of the command line in a child process, which can be killed with SIGKILL at a chosen moment.

The parent imports all modules of a run once; a forked child calls `pipelines.cli.main`.
"""

import logging
import os
import select
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from pipelines import cli
from pipelines.store.store import Store

for _name in (
    "pipelines.run.operation",
    "apache_beam.runners.portability.fn_api_runner",
    "dp_accounting.pld.privacy_loss_distribution",
    "opendp.prelude",
    "ruamel.yaml",
    "scipy.optimize",
    "scipy.stats",
):
    import_module(_name)  # late imports of a run, which would take half of its time

PATIENCE = 120.0
"""Seconds after which a run without a kill counts as stuck."""

MOMENTS = ("started", "begun", "sampled", "committed", "shown")
"""Moments of a run: it starts, begins an attempt, begins to commit its noise, has committed it, has shown it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """Time of a SIGKILL, in seconds after a moment."""

    since: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """Result of a run.

    Attributes:
        code: exit code; None if it was killed.
        seconds: from its start to its end.
        passed: seconds from its start to each moment that it passed.
        out: standard output.
        err: standard error.
    """

    code: int | None
    seconds: float
    passed: dict[str, float]
    out: str
    err: str


def run(
    folder: Path, arguments: Sequence[str], *, kill: Kill | None = None, fault: Callable[[], None] | None = None
) -> Ended:
    """Run a command in a folder.

    Args:
        folder: current folder of the command.
        arguments: of the command line.
        kill: time of a kill, if the run passes that moment; None for no kill.
        fault: called in the child before the command.

    Raises:
        TimeoutError: a run without a kill takes longer than `PATIENCE`.
    """
    (folder / "tmp").mkdir(exist_ok=True)
    began = time.monotonic()
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 70
        try:
            os.close(ours)
            code = _child(folder, arguments, theirs, fault)
        finally:
            os._exit(code)
    os.close(theirs)
    passed = {"started": 0.0}
    deadline = began + (kill.seconds if kill is not None and kill.since == "started" else PATIENCE)
    try:
        while True:
            ready, _, _ = select.select([ours], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                break
            told = os.read(ours, 1)
            if not told:  # the run has ended, or is about to end
                deadline = began + PATIENCE
                break
            moment = MOMENTS[told[0]]
            passed[moment] = time.monotonic() - began
            if kill is not None and kill.since == moment:
                deadline = time.monotonic() + kill.seconds
        while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None and time.monotonic() < deadline:
            time.sleep(0.001)
    finally:
        os.close(ours)
        os.kill(pid, signal.SIGKILL)  # not yet waited for, so the number still belongs to it
        _, status = os.waitpid(pid, 0)
    seconds = time.monotonic() - began
    code = os.waitstatus_to_exitcode(status)
    out, err = ((folder / name).read_text() for name in ("out.txt", "err.txt"))
    if code == -signal.SIGKILL and kill is None:
        raise TimeoutError(f"{folder}: {' '.join(arguments)} takes more than {PATIENCE} s\n{err}")
    return Ended(code=None if code == -signal.SIGKILL else code, seconds=seconds, passed=passed, out=out, err=err)


def _child(folder: Path, arguments: Sequence[str], signals: int, fault: Callable[[], None] | None) -> int:
    os.chdir(folder)
    for descriptor, name in ((1, "out.txt"), (2, "err.txt")):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), descriptor)
    tempfile.tempdir = str(Path("tmp").absolute())  # so that leftover temporary files are found
    _tell("begin", signals, before="begun")
    _tell("commit", signals, before="sampled", after="committed")
    _tell("clean", signals, before="shown")
    logging.root.handlers.clear()  # a separate process configures logging itself
    if fault is not None:
        fault()
    try:
        return cli.main(arguments)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


def _tell(name: str, signals: int, *, before: str, after: str | None = None) -> None:
    """Let a method of the store report moments to the parent, one before the call and one after it."""
    method = getattr(Store, name)

    def telling(*args: object) -> object:
        os.write(signals, bytes([MOMENTS.index(before)]))
        result = method(*args)
        if after is not None:
            os.write(signals, bytes([MOMENTS.index(after)]))
        return result

    setattr(Store, name, telling)
