"""Layer: runs that are killed at any access to their files, and completed by the next run.

A forked process runs the copy of a spec with real noise, and ends itself, as a kill would, at a chosen change of a file
or folder. All files that are public then must stay: the next run completes the release, and no node may have a
second sample. Power losses, which also lose unflushed writes, are not tried here.
"""

import hashlib
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

from pipelines.audit.files import write
from pipelines.audit.findings import LayerResult
from pipelines.audit.lives import neighbours
from pipelines.audit.mutations import random_life
from pipelines.audit.prepared import Prepared
from pipelines.audit.whole import emptied
from pipelines.run.operation import run
from pipelines.spec.times import moment_text
from transforms.common.output_formats import read_whole

CHANGES = ("os.rename", "os.link", "os.remove", "os.mkdir", "os.rmdir", "os.truncate")
"""Events of the interpreter that change files; so does `open` with a flag that writes."""

KILLED, FAILED = 9, 70


def check_kills(ready: Prepared, kills: int, choose: Random) -> LayerResult:
    """Kill runs at random accesses to files, complete them, and compare everything that was ever public.

    Args:
        ready: The copy of a spec.
        kills: Number of killed runs.
        choose: Source of random choices.
    """
    setting = ready.setting
    ((rows, _), *_), _ = neighbours(random_life(setting, choose), setting)
    cuts = sorted({max(1, setting.timeline.windows // 2), setting.timeline.windows})
    ends = [setting.end(windows) for windows in cuts]
    _begun(ready, rows)
    accesses = [_count(_forked(ready, end, None)) for end in ends]
    faults: dict[str, None] = {}
    done = 0
    if None in accesses:
        faults["a run that nobody kills fails"] = None
    for _ in range(kills):
        if faults:
            break
        _begun(ready, rows)
        for windows, end, most in zip(cuts, ends, accesses, strict=True):
            _forked(ready, end, choose.randint(1, most or 1))
            before = _public(ready)
            if _count(_forked(ready, end, None)) is None:
                faults["a run that was killed cannot be completed"] = None
                break
            done += 1
            faults |= dict.fromkeys([*_changed(before, _public(ready)), *_repeated(ready, windows)])
    return LayerResult(
        name="kills",
        question="Can a run that is killed publish a second sample of a node, or lose one?",
        tried={"killed and completed runs": done, "accesses of one run": sum(filter(None, accesses))},
        faults=(*faults,),
        untested=("Power losses, which also lose writes that are not durable yet.",),
    )


def _begun(ready: Prepared, rows: Sequence[Any]) -> None:
    data = emptied(ready.spec)
    write(ready.spec, ready.stages.columns, rows, data / f"00{Path(ready.spec.changelog.source.paths[0]).suffix}")


def _forked(ready: Prepared, until: int, kill: int | None) -> tuple[int, Path]:
    """Run in a forked process that ends at its access number `kill`; return its exit code and the file of its count."""
    count = ready.spec.base / "accesses"
    count.unlink(missing_ok=True)
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), count
    code = FAILED
    try:
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
        seen = _killing(str(ready.spec.base), kill)
        run(ready.spec.path, until=moment_text(until), shards=2)
        accesses = seen[0]
        count.write_text(str(accesses))
        code = 0
    finally:
        os._exit(code)


def _killing(base: str, kill: int | None) -> list[int]:
    """Count changes of files under a folder, and end the process at one of them; return the list with the count."""
    seen = [0]

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        writes = event == "open" and isinstance(arguments[2], int) and bool(arguments[2] & (os.O_WRONLY | os.O_RDWR))
        if (writes or event in CHANGES) and str(arguments[0]).startswith(base):
            seen[0] += 1
            if seen[0] == kill:
                os._exit(KILLED)

    sys.addaudithook(hook)
    return seen


def _count(ended: tuple[int, Path]) -> int | None:
    """Return the number of accesses of a run; None if it failed."""
    code, count = ended
    return int(count.read_text()) if code == 0 else None


def _public(ready: Prepared) -> dict[str, str]:
    """Return the digest of each public table."""
    folder = Path(ready.spec.output.public)
    names = [path for path in folder.rglob("*") if path.is_file() and path.parent != folder]
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in names}


def _changed(before: dict[str, str], after: dict[str, str]) -> list[str]:
    if any(after.get(name) != digest for name, digest in before.items()):
        return ["a public file has changed, or is lost, after a run that was killed"]
    return []


def _repeated(ready: Prepared, windows: int) -> list[str]:
    """Return whether a node is public twice, windows are missing, or a public table is not one of the manifest."""
    folder = Path(ready.spec.output.public)
    manifest = folder / "manifest.json"
    if not manifest.exists() or (document := json.loads(manifest.read_text(encoding="utf-8")))["windows"] != windows:
        return ["windows that a killed run has committed are never published"]
    epochs = document["epochs"]
    listed = {name for epoch in epochs for name in epoch["files"]}
    public = _public(ready)
    found = [] if public.keys() == listed else ["the public tables are not those of the manifest"]
    rows: list[tuple[Any, ...]] = []
    for name in public:
        if name.startswith("nodes/"):
            table = read_whole((folder / name).read_bytes(), name)
            keys = [key for key in table.column_names if key not in ("noisy_value", "scale")]
            rows += zip(*(map(str, table[key].to_pylist()) for key in keys), strict=True)
    return found if len(rows) == len(set(rows)) else [*found, "a node is public twice"]
