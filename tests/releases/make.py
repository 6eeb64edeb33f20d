"""Make the releases with which later versions are tested, and replace this version's existing ones.

    python -m tests.releases.make
    python -m tests.releases.make span owners      # some of them

There is one release for each guarantee, with two epochs and every kind of strategy that the guarantee has. The noise is
very small, so that tests can compare published values of later versions with exact values. `expected.json` holds this
version's output and published values of a third epoch, without noise.
"""

import csv
import json
import os
import shutil
import sys
import tarfile
import tempfile
from pathlib import Path

from pipelines.store.attempt import Run, text_of
from tests.e2e.specs import DAY, SCHEMA, START, Row, changelog
from tests.releases.continued import expected, run_third_epoch, said
from tests.test_house import setup_arguments

HERE = Path(__file__).parent

HEAD = """\
release: kept
changelog:
  format: csv
  path: data/*.csv
  entry: stay
  time: at
  before: before_
  after: after_
  types: {before_age: int64, after_age: int64, before_room: int64, after_room: int64}
schedule: {start: 2026-01-01T00:00:00Z, every: 1d, until: 2026-01-10T00:00:00Z}
output: {public: public, private: private, format: csv}
"""

BY_CALENDAR = HEAD.replace(
    "{start: 2026-01-01T00:00:00Z, every: 1d, until: 2026-01-10T00:00:00Z}",
    "{start: 2026-01-01, every: 1d, until: 2026-06-01, timezone: Europe/Berlin}",
)

GAUSSIAN = """\
privacy:
  epsilon: 10000000
  delta: 1.0e-9
  mechanism: gaussian
  accounting: zcdp
  constraint: {at_most: 4}
queries:
"""

EVERYTHING = """\
  - name: covers
    measure: count
    by: {ward: [a, b]}
    publish: [level, entered]
    strategy: {tree: {branching: 2, height: 3, refine: none}}
  - name: walks
    measure: count
    publish: [level, change]
    strategy: {tree: {branching: 2, height: 3, refine: subtraction}}
  - name: upward
    measure: count
    where: "age >= 33"
    publish: [level]
    strategy: {tree: {branching: 3, height: 2, refine: bottom_up}}
  - name: squares
    measure: {mean: age, min: 0, max: 100}
    publish: [level]
    strategy: {tree: {branching: 2, height: 3, refine: least_squares}}
  - name: pairs
    measure: count
    by: {ward: [a, b]}
    publish: [{sliding: 2d, every: 1d}]
    strategy: sliding
  - name: filtered
    measure: count
    by: {ward: [a, b]}
    publish: [level, change]
    strategy: {factorised: leaky}
  - name: poles
    measure: count
    publish: [level]
    strategy: {factorised: arma}
  - name: ages
    measure: count
    by: {age: {from: 0, to: 60, step: 20}}
    cells: {for: ranges, strategy: optimised}
    publish: [level, {quantiles: [0.5]}]
    strategy: {tree: {branching: 2, height: 3, refine: none}}
  - name: steered
    measure: count
    by: {ward: [a, b]}
    publish: [level]
    strategy: {adaptive: {policy: dsat, samples: 6}}
"""

SPAN = """\
privacy:
  epsilon: 10000000
  protects: {span: 3d}
queries:
  - name: stays
    measure: count
    by: {ward: [a, b]}
    publish: [level]
    strategy: direct
  - name: moves
    measure: count
    by: {ward: [a, b]}
    publish: [entered, left]
    strategy: disjoint
  - name: forest
    measure: count
    publish: [level, change]
    strategy: {tree: {branching: 2, height: 2, refine: none}}
  - name: rhythm
    measure: count
    by: {ward: [a, b]}
    publish: [level]
    strategy: {adaptive: {policy: fixed, interval: 2d}}
  - name: distance
    measure: count
    by: {ward: [a, b]}
    publish: [level]
    strategy: {adaptive: {policy: dsft, samples: 2, threshold: 1}}
  - name: weekends
    measure: count
    publish: [level]
    strategy: {direct: {weights: [1, 1, 3]}}
  - name: turns
    measure: count
    by: {ward: [a, b]}
    publish: [level]
    strategy: {adaptive: {policy: fixed, interval: 1d, weights: [1, 3]}}
  - name: medians
    measure: count
    by: {age: {from: 0, to: 60, step: 20}}
    publish: [level]
    cells: {strategy: kdtree, height: 5}
    strategy: {adaptive: {policy: fixed, interval: 1d}}
  - name: quarters
    measure: count
    by: {age: {from: 0, to: 60, step: 20}, room: {from: 1, to: 3, step: 1}}
    publish: [level]
    cells: {strategy: quadtree}
    strategy: {adaptive: {policy: fixed, interval: 2d}}
"""

BLOCKS = """\
privacy:
  epsilon: 10000000
  protects: {span: 3d}
  constraint: {at_most: 2}
queries:
  - name: held
    measure: count
    by: {ward: [a, b]}
    publish: [level]
    strategy: {tree: {branching: 2, height: 2, refine: none}}
"""

OWNERS = """\
privacy:
  unit: person
  epsilon: 10000000
  protects: {span: 3d}
  constraint: {at_most: 2, entries: 2}
queries:
  - name: held
    measure: count
    by: {ward: [a, b]}
    publish: [level]
    strategy: {tree: {branching: 2, height: 2, refine: none}}
"""

DISTANCE = """\
privacy:
  epsilon: 10000000
  protects: {span: 3d, distance: {age: 20}}
queries:
  - name: ages
    measure: count
    by: {ward: [a, b], age: {from: 0, to: 60, step: 20}}
    cells: {for: prefixes, strategy: prefix}
    publish: [level, change]
    strategy: disjoint
"""

RANGES = """\
  - name: listed
    measure: count
    by: {ward: [a, b], age: {from: 0, to: 60, step: 5}}
    cells: {for: listed, strategy: optimised}
    publish: [level, entered, {ranges: [{age: {from: 20, to: 40}}, {age: {from: 30}}]}]
    strategy: disjoint
  - name: whole
    measure: count
    by: {age: {from: 0, to: 60, step: 5}}
    cells: {for: ranges}
    publish: [level]
    consistent: true
    strategy: tree
  - name: found
    measure: count
    by: {ward: {discover: true}, room: [0, 1, 2, 3]}
    publish: [level]
    strategy: {tree: {branching: 2, height: 3, refine: none}}
"""

SPECS = {
    "everything": HEAD + GAUSSIAN + EVERYTHING,
    "span": HEAD + SPAN,
    "blocks": BY_CALENDAR + BLOCKS,
    "owners": HEAD + OWNERS,
    "distance": HEAD + DISTANCE,
    "ranges": HEAD + GAUSSIAN + RANGES,
}

EPOCHS = {"data/part-1.csv": 2, "data/part-2.csv": 4, "next/part-3.csv": 7}
"""The last day of each file, on which an epoch ends."""


def main() -> None:
    for name in sys.argv[1:] or SPECS:
        make(SPECS[name], HERE / str(setup_arguments()["version"]) / name)


def make(spec: str, release: Path) -> None:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        (folder / "spec.yaml").write_text(spec)
        for name, day in EPOCHS.items():
            write_part(folder / name, day)
            if name.startswith("data/"):
                said(folder, "run", "spec.yaml", f"--until={(START + day * DAY).isoformat()}")
        for run in folder.glob("private/attempts/*/run.json"):  # removes names of this machine
            run.write_bytes(text_of(Run(host="", place="", process="", began="2026-01-10T00:00:00+00:00")))
        shutil.rmtree(release, ignore_errors=True)
        release.mkdir(parents=True)
        with tarfile.open(release / "release.tar.gz", "w:gz") as packed:
            for path in sorted(folder.iterdir()):
                packed.add(path, path.name, filter=of_nobody)
        run_third_epoch(folder)
        (release / "expected.json").write_text(json.dumps(expected(folder), indent=1) + "\n")


def write_part(path: Path, day: int) -> None:
    """Write the rows of the days since the previous part. The first row of a stay has no state before.

    Three consecutive stays belong to one person; a room is a function of the age.
    """
    last = START + day * DAY
    first = START + max((end for end in EPOCHS.values() if end < day), default=-100) * DAY
    rows: list[Row] = []
    known = set()
    for row in changelog(56):
        new = {} if row["stay"] in known else {"before_ward": None, "before_age": None}
        known.add(row["stay"])
        if first <= row["at"] < last:
            rows.append({**row, **new})
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        table = csv.DictWriter(file, [*SCHEMA.names, *MORE], lineterminator="\n")
        table.writeheader()
        table.writerows({**row, "at": row["at"].strftime("%Y-%m-%dT%H:%M:%SZ"), **more(row)} for row in rows)
    os.utime(path, (last.timestamp(), last.timestamp()))


MORE = [f"{side}_{name}" for side in ("before", "after") for name in ("person", "room")]


def more(row: Row) -> Row:
    """Return columns that only these releases need; they are null if there is no state."""
    found = {}
    for side in ("before", "after"):
        there = row[f"{side}_age"] is not None
        found[f"{side}_person"] = f"p{int(row['stay'].split('-')[1]) // 3}" if there else None
        found[f"{side}_room"] = row[f"{side}_age"] % 4 if there else None
    return found


def of_nobody(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return None if entry.name.endswith("/lock") else entry


if __name__ == "__main__":
    main()
