"""A small release of several nights, on a disk or in `gs://`: its spec, its files and its place."""

import json
import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

START = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
CLOSED = (1, 2, 4, 5, 7, 8, 10, 12)
"""Number of closed windows by each night: one or two more than the night before."""

CLEAR = 10_000_000.0
"""An epsilon with hardly any noise, so that numbers can be compared with the exact ones."""

NOISY = 1.0
"""An epsilon at which two samples of a night's noise never agree."""

SPEC = """\
release: wards
changelog:
  format: parquet
  path: {data}/*.parquet
  entry: stay
  time: at
  before: before_
  after: after_
privacy:
  epsilon: {epsilon}
  delta: 1.0e-9
  mechanism: gaussian
  accounting: zcdp
  constraint: {{at_most: 4}}
schedule:
  start: {start}
  every: 1d
  until: {until}
queries:
  - name: beds
    measure: count
    by: {{ward: [a, b, other]}}
    publish: [level, change]
    strategy: {{tree: {{branching: 2, height: 3, refine: least_squares}}}}
  - name: load
    measure: {{sum: weight, min: 0, max: 8}}
    publish: [level, {{sliding: 2d, every: 1d}}]
    strategy: {{factorised: leaky}}
  - name: flow
    measure: count
    by: {{ward: [a, b, other]}}
    publish: [entered, left]
    strategy: disjoint
output:
  public: {public}
  private: {private}
"""

SCHEMA = pa.schema(
    [
        ("stay", pa.string()),
        ("at", pa.timestamp("us", "UTC")),
        *(
            (f"{side}_{n}", t)
            for side in ("before", "after")
            for n, t in (("ward", pa.string()), ("weight", pa.int64()))
        ),
    ]
)


def changelog(nights: int) -> list[dict[str, Any]]:
    """Return every mutation of the release in order of time; the same for each call."""
    chance = random.Random(1)
    rows = []
    for stay in range(80):
        state: tuple[str | None, int | None] = (None, None)
        at = START + chance.random() * CLOSED[nights - 1] * DAY
        for change in range(chance.randint(1, 6)):
            gone = change > 0 and chance.random() < 0.2
            after = (None, None) if gone else (chance.choice("abcd"), chance.randint(0, 8))
            told = zip(("before_ward", "before_weight", "after_ward", "after_weight"), state + after, strict=True)
            rows.append({"stay": f"stay-{stay:03}", "at": at, **dict(told)})
            if gone:
                break
            state, at = after, at + (0.1 + 2 * chance.random()) * DAY
    return sorted(rows, key=lambda row: row["at"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Place of one release.

    Attributes:
        folder: of the spec, in which commands run; of all other files too, unless there is a bucket.
        bucket: a bucket of google-cloud-storage; None for local files.
        prefix: of names in the bucket.
        nights: number of nights.
        apart: whether each side is on a separate disk, below folders that do not exist yet.
    """

    folder: Path
    bucket: Any = None
    prefix: str = ""
    nights: int = len(CLOSED)
    apart: bool = False

    def name(self, side: str) -> str:
        """Return the path of `data`, `public` or `private`, relative to the folder."""
        return f"disks/{side}/of/wards" if self.apart and side != "data" else side

    def prepare(self, epsilon: float) -> None:
        """Write the spec."""
        root = "." if self.bucket is None else f"gs://{self.bucket.name}/{self.prefix}"
        self.folder.mkdir(parents=True)
        (self.folder / "spec.yaml").write_text(
            SPEC.format(
                epsilon=epsilon,
                start=START.isoformat(),
                until=(START + CLOSED[self.nights - 1] * DAY).isoformat(),
                **{side: f"{root}/{self.name(side)}" for side in ("data", "public", "private")},
            )
        )

    def until(self, night: int) -> datetime:
        """Return the time of the run of a night, some hours after its last window closed."""
        return START + CLOSED[night] * DAY + timedelta(hours=5)

    def deliver(self, night: int) -> None:
        """Write the file of mutations since the night before."""
        since = self.until(night - 1) if night else START
        rows = [row for row in changelog(self.nights) if since <= row["at"] < self.until(night)]
        file = BytesIO()
        pq.write_table(pa.Table.from_pylist(rows, schema=SCHEMA), file)
        self.put(f"data/{night:02}.parquet", file.getvalue())

    def read(self, side: str) -> dict[str, bytes]:
        """Return the contents of every file of a side, by path."""
        if self.bucket is None:
            root = self.folder / self.name(side)
            return {p.relative_to(root).as_posix(): p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file()}
        prefix = f"{self.prefix}/{side}/"
        return {b.name.removeprefix(prefix): b.download_as_bytes() for b in self.bucket.list_blobs(prefix=prefix)}

    def put(self, name: str, content: bytes) -> None:
        """Write a file, and replace an existing one."""
        if self.bucket is None:
            path = self.folder / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)
        else:
            self.bucket.blob(f"{self.prefix}/{name}").upload_from_string(content)


def rows_of(content: bytes) -> list[dict[str, Any]]:
    """Return the rows of a published file, read in this thread, since Arrow's threads would not survive a fork."""
    rows: list[dict[str, Any]] = pq.read_table(pa.BufferReader(content), use_threads=False).to_pylist()
    return rows


def document_of(content: bytes) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(content)
    return document
