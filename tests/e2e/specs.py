"""A small release for whole runs: its spec as text, its changelog in every format, and the command line in-process."""

import csv
import gzip
import io
import json
from collections.abc import Sequence
from contextlib import chdir
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq
import pytest

from pipelines import cli
from tests.pipelines.spec_text import changed

SPEC = """\
release: wards
changelog:
  format: parquet
  path: data/*.parquet
  entry: stay
  time: at
  before: before_
  after: after_
privacy:
  epsilon: 1.0
  constraint: {at_most: 4}
schedule:
  start: 2026-01-01T00:00:00Z
  every: 1d
  until: 2026-01-06T00:00:00Z
queries:
  - name: beds
    measure: count
    where: "age >= 0"
    by: {ward: [a, b, other]}
    publish: [level, change]
output:
  public: public
  private: private
strategy: disjoint
"""

START = datetime(2026, 1, 1, tzinfo=UTC)
WINDOWS = 5
DAY = timedelta(days=1)

KEY = "k7f3secret"
"""Every entry's key begins so: no output but the private one may hold it."""

WARD = "w9d2secret"
"""A ward that the spec does not list."""

AGE = 918_273
"""A value of the data that nothing else would print."""

SECRETS = (KEY, WARD, str(AGE), f"{AGE:,}")

NO_NOISE = ("epsilon: 1.0", "epsilon: 1.0e12")
"""A change of the spec. A node of whole numbers has other noise than 0 with probability below 1e-300."""

REPEATED = "--direct_runner_bundle_repeat=1"
"""The embedded runner processes each bundle once more and keeps the last outcome: nothing may count twice for it."""

Row = dict[str, Any]

SCHEMA = pa.schema(
    [
        ("stay", pa.string()),
        ("at", pa.timestamp("us", "UTC")),
        *(
            (f"{side}_{name}", kind)
            for side in ("before", "after")
            for name, kind in (("ward", pa.string()), ("age", pa.int64()))
        ),
    ]
)


def mutation(entry: int, at: datetime, before: tuple[str, int] | None, after: tuple[str, int] | None) -> Row:
    """One mutation; states are (ward, age)."""
    states = {"before": before or (None, None), "after": after or (None, None)}
    told = {
        f"{side}_{name}": value
        for side, state in states.items()
        for name, value in zip(("ward", "age"), state, strict=True)
    }
    return {"stay": f"{KEY}-{entry:04}", "at": at, **told}


def changelog(entries: int = 40) -> list[Row]:
    """Stays that begin in some ward, most of which move, and some of which end; a few began before the first row."""
    rows = []
    for entry in range(entries):
        ward = ("a", "b", WARD)[entry % 3]
        at = START - DAY + entry * timedelta(hours=3)
        first, second = (ward, 30 + entry), ("b", AGE if entry % 10 == 7 else 31 + entry)
        rows.append(mutation(entry, at, None if entry % 5 else ("a", 29 + entry), first))
        if entry % 4:
            rows.append(mutation(entry, at + DAY, first, second))
        if entry % 4 == 3:
            rows.append(mutation(entry, at + 2 * DAY, second, None))
    return rows


def write(path: Path, rows: Sequence[Row]) -> Path:
    """Write rows in the format of the path's suffix: parquet, csv or jsonl; text also with .gz."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(list(rows), schema=SCHEMA), path)
        return path
    plain = [{**row, "at": row["at"].strftime("%Y-%m-%dT%H:%M:%SZ")} for row in rows]
    if ".csv" in path.suffixes:
        table = io.StringIO(newline="")
        writer = csv.DictWriter(table, SCHEMA.names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(plain)
        text = table.getvalue()
    else:
        text = "".join(json.dumps(row) + "\n" for row in plain)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def write_spec(folder: Path, *changes: tuple[str, str], name: str = "spec.yaml") -> Path:
    """The spec with some of its text replaced."""
    text = SPEC
    for old, new in changes:
        text = changed(old, new, text)
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@dataclass(frozen=True, slots=True)
class Said:
    """Output and exit code of a command, without its lines of progress."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        """Lines on stderr."""
        return self.err.splitlines()


@dataclass(frozen=True, slots=True)
class CommandLine:
    """`slackwater` in this process, with this folder as the working directory."""

    folder: Path
    capsys: pytest.CaptureFixture[str]

    def __call__(self, *arguments: str) -> Said:
        self.capsys.readouterr()
        with chdir(self.folder):
            try:
                code = cli.main(arguments)
            except SystemExit as left:  # argparse, for a usage error
                code = int(left.code or 0)
        told = self.capsys.readouterr()
        return Said(code, told.out, without_progress(told.err))


def without_progress(err: str) -> str:
    return "".join(line for line in err.splitlines(keepends=True) if not line.startswith("working: "))


def files_under(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def contents(folder: Path) -> dict[str, bytes]:
    """Every file by its path from the folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in files_under(folder)}


def published(folder: Path, side: str) -> pa.Table:
    """All files of `estimates` or `nodes` as one table."""
    return pa.concat_tables(
        [_read(path) for path in files_under(folder / "public" / side)], promote_options="permissive"
    )


def _read(path: Path) -> pa.Table:
    if path.suffix == ".csv":
        return pyarrow.csv.read_csv(path)
    return pyarrow.json.read_json(path) if path.suffix == ".jsonl" else pq.read_table(path)
