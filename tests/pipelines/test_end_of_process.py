"""The end of a process that has read a broken CSV file, from which a thread of Arrow may still read ahead."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

CHILDREN = 4

BEGIN = """
import atexit, json, os, signal, sys, tempfile, threading, time
from pathlib import Path

from pipelines import cli
from transforms.common.source import Source
from transforms.sources.columns.normalise import Place
from transforms.sources.changelog import read_split, splits
from transforms.sources.formats import csv, csv_parser
from transforms.sources.inspection import inspect

layout = inspect(Source(format="csv", paths=("good.csv",), entry="id", time="at", before=None, after=None),
                 frozenset(), frozenset({"ward"}))
fast = csv._WithEnd.read

def slowly(stream, size):
    found = fast(stream, size)
    time.sleep(0.25)
    return found

def read():
    for split in splits(Place("broken.csv", 0), "csv"):
        for _ in read_split(layout, split, 1 << 18):
            pass
    return 3

def codes(end):
    children = []
    for _ in range(int(sys.argv[1])):
        children.append(os.fork())
        if not children[-1]:
            end()
    return [code_of(child, time.monotonic() + 60) for child in children]

def code_of(child, deadline):
    while not (ended := os.waitpid(child, os.WNOHANG))[0]:
        time.sleep(0.01)
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(ended[1])

csv._WithEnd.read = slowly
csv._LEAST_BLOCK = csv._BLOCK = 1 << 16
waiting = []
"""

LIBRARY = """
class Late:
    def __del__(self, sleep=time.sleep):
        sleep(0.75)  # while the interpreter is taken apart

def end():
    global late
    late = Late()
    read()
    sys.exit(3)
"""

NOT_AWAITED = """
csv_parser.CsvParser._wait = lambda parser: None
"""

COMMAND = """
def later():
    time.sleep(0.1)
    Path("written.txt").write_text("by a thread")

def main(*, alone):
    global folder
    folder = tempfile.TemporaryDirectory(dir=".")
    atexit.register(Path("registered.txt").write_text, "at the end")
    threading.Thread(target=later).start()
    print("said by the command")
    print("its error", file=sys.stderr)
    return read()

def end():
    cli.main = main
    sys.exit(cli.program())
"""

ENDS = """
print(json.dumps([waiting, codes(end)]))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    heading, at = "id,at,ward\n", "2026-01-01T12:00:00Z"
    (tmp_path / "good.csv").write_text(f"{heading}k,{at},a\n")
    (tmp_path / "broken.csv").write_text(f'{heading}1,{at},"' + "a" * (1 << 20))
    return tmp_path


def ended(folder: Path, *parts: str) -> tuple[list[list[int]], str, str]:
    """Return the exit codes of processes that read a broken file, those of `waiting` apart, and what they print."""
    # From Python 3.12 on, a fork next to Arrow's threads causes a warning; these threads are the test's subject.
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", "".join((BEGIN, *parts, ENDS)), str(CHILDREN)]
    said = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    *others, last = said.stdout.splitlines()
    return json.loads(last), "\n".join(others), said.stderr


@pytest.mark.slow
def test_a_command_ends_with_its_code_and_all_its_work_although_a_thread_reads_ahead(folder: Path) -> None:
    before = {path.name for path in folder.iterdir()}
    (_, codes), out, err = ended(folder, NOT_AWAITED, COMMAND)

    assert codes == [3] * CHILDREN
    assert out.splitlines() == ["said by the command"] * CHILDREN
    assert err.splitlines() == ["its error"] * CHILDREN
    assert {path.name for path in folder.iterdir()} - before == {"written.txt", "registered.txt"}


@pytest.mark.slow
def test_a_process_that_uses_the_library_ends_normally_since_the_parser_waits_for_the_thread(folder: Path) -> None:
    waiting, hasty = ended(folder, LIBRARY, "\nwaiting = codes(end)\n", NOT_AWAITED)[0]

    assert waiting == [3] * CHILDREN
    assert -6 in hasty
