"""Let each file-system call of a run fail once, and check the release after each failure.

    python -m benchmarks.crash.sweep                        # one call of each kind, before and after each decision
    python -m benchmarks.crash.sweep --errors EIO --all     # every call

A preloaded library (`failing.c`, needs `cc`) counts the calls below the release's folder, by Python, Arrow and DuckDB.
`HALF` lets a write take half of its bytes and the next write fail. Then either nothing or a whole epoch is
public, the command ends with one line that says which, and the next run completes the release. Published numbers do not
change. Every second release has hardly any noise: its sums equal those of a release without failures.
"""

import argparse
import ctypes
import errno
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.crash.checks import ESTIMATE, NODE, Files, Told, Watch, demand
from benchmarks.crash.runs import Ended, run
from benchmarks.crash.setting import CLEAR, CLOSED, NOISY, Place, document_of, rows_of
from benchmarks.emptied import emptied

ERRORS = {"EIO": errno.EIO, "ENOSPC": errno.ENOSPC, "EACCES": errno.EACCES, "HALF": -1}
WRITES = (
    "open w",
    "open64 w",
    "mkdir",
    "write",
    "pwrite",
    "pwrite64",
    "fsync",
    "close",
    "link",
    "rename",
    "ftruncate64",
)
"""Calls that a full disk lets fail."""

BY_NAME = (
    "open",
    "fopen",
    "mkdir",
    "rmdir",
    "unlink",
    "rename",
    "link",
    "chmod",
    "fchmod",
    "access",
    "faccess",
    "stat",
    "lstat",
    "fstatat",
    "readlink",
)
"""Beginnings of calls that missing rights let fail."""

FAIL = {"ENOSPC": WRITES, "EACCES": BY_NAME, "HALF": ("write", "pwrite")}
"""Beginnings of the calls that an error concerns; `EIO` concerns all."""

NOTHING, AWAITS, PUBLISHED = "nothing new was published", "is committed, and the next run publishes it", "is published"


def library(folder: Path) -> Path:
    """Compile the library, and return its path."""
    made = folder / "failing.so"
    source = Path(__file__).with_name("failing.c")
    subprocess.run(["cc", "-O2", "-Wall", "-shared", "-fPIC", "-o", made, source, "-ldl"], check=True)
    return made


def arm(folder: Path, number: int, error: int, log: Path) -> None:
    """Let one file-system call of this process fail, by the preloaded library.

    Args:
        folder: below which calls count.
        number: of the call; 0 for none.
        error: number of the error; -1 for half a write.
        log: file that gets a line for each call.
    """
    ctypes.CDLL(None).arm(os.fsencode(folder), number, error, os.fsencode(log))


def calls_of(log: Path) -> list[str]:
    """Return a line for each call, without the random parts of the names of attempts."""
    return re.sub(r"\d{6}-[0-9a-f]{16}", "ATTEMPT", log.read_text()).splitlines()


def kinds(calls: Sequence[str]) -> list[int]:
    """Return numbers of the first calls of each function on each folder, in each of three phases.

    Phases end with the commit, with the manifest, and with the run.
    """
    found: dict[tuple[str, int], int] = {}
    moment = 0
    for number, call in enumerate(calls, start=1):
        kind = re.sub(r"/[^/]*-\d{5}[^/]*\.parquet|/[0-9a-f]{32}|/\d{6}\.json|\w{8}$", "/*", call)
        found.setdefault((kind, moment), number)
        moment += call.startswith("link") or call == "renameat public/manifest.json"
    return list(found.values())


def nightly(place: Place, night: int, error: int, number: int) -> Ended:
    """Run one night with at most one failing call.

    Args:
        place: of the release.
        night: of the run.
        error: number of the error.
        number: of the call that fails; 0 for none.
    """
    log = place.folder.parent / "calls.log"
    fault = partial(arm, place.folder, number, error, log)
    return run(place.folder, ["run", "spec.yaml", f"--until={place.until(night).isoformat()}"], fault=fault)


def values(public: Files) -> dict[Told, tuple[str, float]]:
    """Return every public number and node with its file, whether a manifest lists the file or not."""
    found: dict[Told, tuple[str, float]] = {}
    for name, content in public.items():
        if not name.startswith(("nodes/", "estimates/")) or "/." in name:
            continue
        key, value = (NODE, "noisy_value") if name.startswith("nodes/") else (ESTIMATE, "value")
        for row in rows_of(content):
            told = (value, *(row[column] for column in key))
            demand(told not in found, f"{name}: {told} is published twice")
            found[told] = (name, row[value])
    return found


def epochs(public: Files) -> int:
    """Return the number of public epochs, and check that each is complete."""
    if "manifest.json" not in public:
        return 0
    document = document_of(public["manifest.json"])
    for number, epoch in enumerate(document["epochs"], start=1):
        demand(epoch["epoch"] == number, "an epoch is missing")
        for name, digest in epoch["files"].items():
            demand(
                hashlib.sha256(public[name]).hexdigest() == digest["sha256"],
                f"{name}: differs from its digest in the manifest",
            )
    return len(document["epochs"])


def check_message(ended: Ended, before: int, public: int, committed: int) -> None:
    """Check that a command's message is one line and true.

    Args:
        ended: the command.
        before: epochs that were public before.
        public: public epochs.
        committed: committed epochs.
    """
    said = [line for line in ended.err.splitlines() if not line.startswith("working: ")]
    demand(ended.code in (0, 1, 2, 3, 4), f"exit code {ended.code}: {ended.err}")
    demand("stay-" not in ended.err, "the message holds a key")
    demand(all(line.startswith("slackwater: ") for line in said), ended.err)
    if ended.code == 0:
        demand(public == before + 1, "exit code 0 without a new epoch")
        return
    demand(len(said) == 1 + ("a file that cannot be read is never skipped" in ended.err), f"{len(said)} lines: {said}")
    claimed = {
        NOTHING: committed == before,
        AWAITS: committed == before + 1 and public == before,
        PUBLISHED: public == before + 1,
    }
    for words, true in claimed.items():
        demand(true or words not in said[0], f"{committed} committed, {public} public: {said[0]}")
    demand(
        committed == before or ended.code == 0 or any(words in said[0] for words in claimed),
        f"the message does not name the outcome: {said}",
    )


def suffer(base: Place, work: Place, night: int, error: int, number: int, nights: int) -> tuple[Ended, str]:
    """Run with one fault and then for some nights without; return the run with the fault, and the call that failed.

    Threads make calls in another order in each run, so the call can differ from that of the run without faults.

    Args:
        base: the release before the night.
        work: place of the copy on which to run.
        night: of the fault.
        error: number of the error; 0 for none.
        number: of the call that fails; 0 for none.
        nights: number of nights to complete, the fault's night included.

    Raises:
        BrokenError: an invariant does not hold.
    """
    shutil.rmtree(work.folder, ignore_errors=True)
    shutil.copytree(base.folder, work.folder, symlinks=True)
    before = epochs(work.read("public"))
    ended = nightly(work, night, error, number)
    failed = dict(enumerate(calls_of(base.folder.parent / "calls.log"), start=1)).get(number, "none")
    public, private = work.read("public"), work.read("private")
    watch = Watch()
    watch.look({name: content for name, content in public.items() if "/." not in name}, private)
    seen, shown = values(public), epochs(public)
    committed = sum(bool(re.fullmatch(r"commits/\d+\.json", name)) for name in private)
    demand(before <= shown <= committed <= before + 1, f"{committed} committed, {shown} public")
    check_message(ended, before, shown, committed)
    for later in range(night, night + nights):
        if later > night:
            work.deliver(later)
        again = nightly(work, later, 0, 0)
        demand(again.code == 0, f"the run after the fault: {again.err}")
        public = {name: content for name, content in work.read("public").items() if "/." not in name}
        now = values(public)
        demand(seen.items() <= now.items(), "a number that was seen has changed")
        watch.look_at_end(public, work.read("private"), windows=CLOSED[later])
        seen = now
    return ended, failed


def sweep(folder: Path, night: int, error: str, epsilon: float, every: bool) -> Counter[str]:
    """Let the calls of one night's run fail; return the number of failed calls and of broken invariants.

    Args:
        folder: of the releases.
        night: whose run fails.
        error: a key of `ERRORS`.
        epsilon: `NOISY` or `CLEAR`.
        every: whether every call fails once, or one of each kind.
    """
    base = Place(folder=folder / f"base-{night}-{epsilon:g}", nights=len(CLOSED))
    work = Place(folder=folder / "work", nights=len(CLOSED))
    shutil.rmtree(base.folder, ignore_errors=True)
    base.prepare(epsilon)
    for earlier in range(night):
        base.deliver(earlier)
        demand(nightly(base, earlier, 0, 0).code == 0, "a run without a fault failed")
    base.deliver(night)
    nights = 2 if epsilon == CLEAR else 1
    suffer(base, work, night, 0, 0, nights)
    truth = estimates(work)
    shutil.rmtree(work.folder)
    shutil.copytree(base.folder, work.folder)
    nightly(work, night, 0, 0)
    tally = Counter[str]()
    calls = calls_of(folder / "calls.log")
    for number in range(1, len(calls) + 1) if every else kinds(calls):
        call = calls[number - 1]
        if not call.startswith(FAIL.get(error, "")):
            continue
        row: dict[str, Any] = {"night": night, "error": error, "number": number, "call": call}
        try:
            ended, failed = suffer(base, work, night, ERRORS[error], number, nights)
            row |= {"failed": failed, "code": ended.code, "err": ended.err}
            told = estimates(work)
            demand(told.keys() == truth.keys(), "the published numbers differ from those without failures")
            worst = max(abs(told[key] - truth[key]) for key in truth) if epsilon == CLEAR else 0
            demand(worst < 0.4, f"a number has an error of {worst}")
        except Exception as broken:
            row |= {"broken": f"{type(broken).__name__}: {broken}"}
            tally["broken"] += 1
            print(row, file=sys.stderr, flush=True)
        tally[error] += 1
        with (folder / "found.jsonl").open("a") as file:
            file.write(json.dumps(row) + "\n")
    return tally


def estimates(place: Place) -> dict[Told, float]:
    return {key: value for key, (_, value) in values(place.read("public")).items() if key[0] == "value"}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nights", type=int, nargs="+", default=[0, 2], help="nights whose runs fail")
    parser.add_argument("--errors", nargs="+", default=list(ERRORS), choices=ERRORS, help="default: all")
    parser.add_argument("--all", action="store_true", help="every call; by default one of each kind")
    parser.add_argument(
        "--folder", type=Path, default=Path("out/benchmarks/sweep"), help="folder of the releases; it is emptied first"
    )
    arguments = parser.parse_args()
    folder = arguments.folder.absolute()
    if "failing.so" not in os.environ.get("LD_PRELOAD", ""):
        emptied(folder)
        os.environ["LD_PRELOAD"] = str(library(folder))
        os.execv(sys.executable, [sys.executable, "-m", "benchmarks.crash.sweep", *sys.argv[1:]])
    began, tally = time.monotonic(), Counter[str]()
    for night in arguments.nights:
        for place, error in enumerate(arguments.errors):
            tally += sweep(folder, night, error, (NOISY, CLEAR)[place % 2], arguments.all)
    print(json.dumps(tally), f"{time.monotonic() - began:.0f} s")
    return bool(tally["broken"])


if __name__ == "__main__":
    sys.exit(main())
