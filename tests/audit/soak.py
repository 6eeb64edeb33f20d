"""A release of many epochs, whose runs are killed, find a full disk, or are repeated: `python -m tests.audit.soak`.

Each hour a file arrives, and runs fail in turns until one succeeds: killed at any change of a file, killed after the
commit or before the manifest, out of space for files of some size, or twice in the same hour. Every fifty hours the
small files are merged, and this is killed, too. After each hour every file that was public before must be the same, and
at the end each node must be public exactly once.
"""

import argparse
import hashlib
import os
import random
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import chdir
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pyarrow.csv

from pipelines.audit.forked import Access, forked
from pipelines.compact.operation import compact
from pipelines.published.release import published
from pipelines.run.operation import run

START = datetime(2025, 1, 1, tzinfo=UTC)
MERGED = 50
SPEC = """\
release: soak
changelog: {{format: csv, path: "data/*.csv", entry: stay, time: at}}
privacy: {{epsilon: 1.0, protects: {{span: 6h}}}}
schedule: {{start: 2025-01-01T00:00:00Z, every: 1h, until: {until}}}
queries: [{{name: beds, measure: count, by: {{ward: [a, b]}}, publish: [level]}}]
output: {{public: public, private: private, format: csv, witness: witness}}
"""


def soaked(folder: Path, epochs: int) -> Counter[str]:
    """Release a number of epochs in a folder; return the number of failures of each kind.

    Raises:
        AssertionError: A number has changed, is lost, or is public twice.
    """
    (folder / "data").mkdir()
    until = START + timedelta(hours=epochs)
    (folder / "spec.yaml").write_text(SPEC.format(until=f"{until:%Y-%m-%dT%H:%M:%SZ}"))
    failed, seen = Counter[str](), dict[str, str]()
    for epoch in range(1, epochs + 1):
        end = START + timedelta(hours=epoch)
        lines = [
            f"{epoch * 10 + n},{end - timedelta(minutes=5 * n + 1):%Y-%m-%dT%H:%M:%SZ},{'ab'[n % 2]}" for n in range(4)
        ]
        (folder / f"data/{epoch:05d}.csv").write_text("\n".join(["stay,at,ward", *lines, ""]))
        once = partial(run, folder / "spec.yaml", until=end, shards=1)
        for kind, kill, work in _faults(once):
            failed[kind] += not forked(folder, work, kill).done
            seen = _same(folder, seen)
        assert forked(folder, once).done, f"epoch {epoch} cannot be completed"
        seen = _same(folder, seen)
        if epoch % MERGED == 0:
            merge = partial(compact, folder / "spec.yaml")
            failed["merge"] += not forked(folder, merge, Access(random.randrange(30))).done
            assert forked(folder, merge).done, f"the files of epoch {epoch} cannot be merged"
            seen = _public(folder)
            print(f"{epoch} epochs, failed runs: {dict(failed)}", file=sys.stderr, flush=True)
    _each_once(folder, epochs)
    return failed


def _faults(once: Callable[[], object]) -> list[tuple[str, Access | None, Callable[[], object]]]:
    faults: list[tuple[str, Access | None, Callable[[], object]]] = [
        ("killed", Access(random.randrange(60)), once),
        ("killed at the commit", Access(random.randrange(8), "/commits/"), once),
        ("killed at the manifest", Access(random.randrange(4), "manifest.json"), once),
        ("out of space", None, partial(_out_of_space, once, random.choice([100, 1000, 3000, 10_000]))),
    ]
    return random.sample(faults, random.choice([0, 1, 1, 2]))


def _out_of_space(work: Callable[[], object], largest: int) -> None:
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest, most))
    work()


def _public(folder: Path) -> dict[str, str]:
    files = [path for side in ("nodes", "estimates") for path in (folder / "public" / side).glob("[!.]*")]
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def _same(folder: Path, seen: dict[str, str]) -> dict[str, str]:
    now = _public(folder)
    assert {name: now.get(name) for name in seen} == seen, "a public file has changed, or is lost"
    return now


def _each_once(folder: Path, epochs: int) -> None:
    release = published(str(folder / "public"))
    assert release.windows == epochs
    listed = {name for epoch in release.epochs for name in epoch.files if name.startswith("nodes/")}
    assert {Path(name).name for name in listed} == {path.name for path in (folder / "public/nodes").glob("[!.]*")}
    tables = [pyarrow.csv.read_csv(folder / "public" / name) for name in listed]
    keys = [key for key in tables[0].column_names if key not in ("noisy_value", "scale")]
    nodes = [row for table in tables for row in zip(*(table[key].to_pylist() for key in keys), strict=True)]
    assert len(nodes) == len(set(nodes)), "a node is public twice"
    assert len(nodes) == 2 * (epochs + 1), f"{len(nodes)} nodes"


def main() -> int:
    parser = argparse.ArgumentParser(description="Release many epochs with failing runs.")
    parser.add_argument("--epochs", type=int, default=1000)
    epochs, began = parser.parse_args().epochs, time.monotonic()
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        failed = soaked(Path(folder), epochs)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(
        f"{epochs} epochs, failed runs: {dict(failed)}, in {time.monotonic() - began:.0f} s, "
        f"{used.ru_utime + used.ru_stime:.0f} s of processor time"
    )
    return 0


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
