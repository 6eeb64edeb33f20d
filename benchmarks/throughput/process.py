"""Run a command to its end and measure it from outside: time and memory of the whole process."""

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Cost of a process: wall-clock seconds, processor seconds, and peak memory in bytes."""

    seconds: float
    processor: float
    peak: int


def measure(command: Sequence[str], log: Path) -> Cost:
    """Run `command`, write its output to `log`, and return its cost.

    Raises:
        SystemExit: the command fails; the message names the log.
    """
    with log.open("wb") as output:
        start = time.perf_counter()
        child = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=_installed())
        _, status, usage = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - start
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: exit code {child.returncode}; see {log}")
    unit = 1 if sys.platform == "darwin" else 1024  # ru_maxrss is in bytes or in KiB
    return Cost(seconds=seconds, processor=usage.ru_utime + usage.ru_stime, peak=usage.ru_maxrss * unit)


def _installed() -> dict[str, str]:
    """Return the environment, in which Python keeps compiled modules, as an installed program has them.

    Without them, a start compiles 330 modules of this project, which takes as long as importing Beam.
    """
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
