"""`slackwater local` killed with SIGKILL before its accesses to what it writes."""

import os
import resource
import signal
import subprocess
import sys
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from pipelines import cli
from tests.pipelines.local.test_estimate import AT, Command, command, sent_files
from tests.searches import TIMES

__all__ = ["command"]

ACCESSES = {"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.listdir", "os.scandir"}


def sweep(step: int, output: str, arguments: list[str]) -> int:
    """Kill runs, each some accesses later than the one before, whose leftovers it finds; until one is not killed.

    The first is killed while it writes.

    Returns:
        Number of runs that were killed.
    """
    for name in ("pipelines.local.estimate", "apache_beam.runners.portability.fn_api_runner"):
        import_module(name)
    for number in count():
        if (child := os.fork()) == 0:
            _die_while_writing(output) if number == 0 else _die_before((number - 1) * step, output)
            os._exit(cli.main(["local", *arguments]))
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if Path(output).exists() and Path(output).read_bytes() != Path("expected").read_bytes():
            raise AssertionError(f"torn by kill {number}")
        if code not in (-signal.SIGKILL, -signal.SIGXFSZ):
            return number if code == 0 else -1
    raise AssertionError


def _die_while_writing(output: str) -> None:
    """After the first bytes of the file, or of its draft."""

    def limit(event: str, given: tuple[Any, ...]) -> None:
        if event == "open" and output in str(given[0]) and ".estimate" not in str(given[0]) and given[2] & os.O_CREAT:
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
            resource.setrlimit(resource.RLIMIT_FSIZE, (32, resource.RLIM_INFINITY))

    sys.addaudithook(limit)


def _die_before(access: int, output: str) -> None:
    accesses = count()

    def die(event: str, given: tuple[object, ...]) -> None:
        if event in ACCESSES and output in str(given[0]) and next(accesses) == access:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(die)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "output", "step"),
    [
        (["estimate", "design.json", "good.csv", *AT, "-o", "numbers.csv"], "numbers.csv", 18 if TIMES == 1 else 12),
        (["plan", "survey.yaml", "-o", "other.json"], "other.json", 2 if TIMES == 1 else 1),
    ],
    ids=["estimate", "plan"],
)
def test_a_killed_run_leaves_nothing_or_all_and_the_next_one_works(
    command: Command, arguments: list[str], output: str, step: int
) -> None:
    sent_files(command)
    assert command(*arguments)[0] == 0
    Path(output).rename("expected")
    before = set(Path().iterdir())

    script = f"from {__name__} import sweep; print(sweep({step}, {output!r}, {arguments}))"
    root = str(Path(__file__).parents[3])
    done = subprocess.run(
        [sys.executable, "-c", script], env={**os.environ, "PYTHONPATH": root}, capture_output=True, text=True
    )

    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[-1]) >= (3 if TIMES == 1 else 4)
    assert set(Path().iterdir()) == before | {Path(output)}
