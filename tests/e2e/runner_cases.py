"""Releases that every runner must make alike: the demo's, two with everything that is awkward in them, and one that
finds keys, from two changelogs that differ only in keys that are not found.

Each has its files, and the epochs in which they land: rows of a later file are late, early or both.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from examples.flights import build
from tests.e2e.changelogs import cut, flat, generate, table

DEMO = Path(__file__).resolve().parents[2] / "examples/flights/spec.yaml"
WARDS_BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
FLIGHTS_BEGIN = datetime(2013, 1, 1, 5, tzinfo=UTC)
SPEC = """\
release: wards
changelog: {{format: parquet, path: out/data/*.parquet, entry: stay, time: at, order: [lsn, pos],
  before: before_, after: after_}}
privacy: {{unit: {unit}, epsilon: 1.0e12, constraint: {constraint}}}
schedule: {schedule}
queries:
  - {{name: beds, measure: count, by: {{ward: [a, b, other], care: [in, other]}}, publish: [level, change, entered]}}
  - {{name: people, measure: units, by: {{ward: [a, b, other]}}, publish: [level, entered, left]}}
  - name: total
    measure: {{sum: x, min: -3, max: 5}}
    by: {{ward: [a, b]}}
    publish: [level, {{sliding: 3d, every: 2d}}, left]
  - name: seldom
    measure: count
    by: {{ward: [a, b, other]}}
    publish: [level]
    strategy: {{adaptive: {{policy: dsft, samples: 4, threshold: 15}}}}
  - name: sizes
    measure: count
    by: {{ward: [a, b], x: {{from: -3, to: 5, step: 1}}}}
    publish: [level, entered, {{quantiles: [0.5]}}, {{ranges: [{{x: {{from: -1, to: 3}}}}, {{x: {{to: 0}}}}]}}]
    cells: {{strategy: tree, branching: 3, for: listed}}
strategy: {strategy}
output: {{public: out/public, private: out/private}}
"""
FINDS = """\
release: towns
changelog: {format: parquet, path: out/data/*.parquet, entry: stay, time: at, before: before_, after: after_}
privacy: {epsilon: 1.0e12, delta: 1.0e-9, mechanism: laplace, constraint: {at_most: 3}}
schedule: {start: 2026-01-01T00:00:00Z, every: 1d, until: 2026-01-11T00:00:00Z}
queries:
  - {name: towns, measure: count, by: {town: {discover: true}}, publish: [level, change], strategy: disjoint}
  - {name: pairs, measure: units, by: {town: {discover: true}, sex: [f, m]}, publish: [level]}
  - {name: total, measure: count, publish: [level]}
  - {name: means, measure: {mean: n, min: 0, max: 9}, by: {town: {discover: true}}, publish: [level, entered, left]}
  - {name: sums, measure: {sum: n, min: 0, max: 9}, by: {town: {discover: true}}, publish: [left, {sliding: 2d}, level]}
  - {name: listed_means, measure: {mean: n, min: 0, max: 9}, by: {town: [Bad Ems, Hof, Ulm]},
     publish: [level, entered, left]}
  - {name: listed_sums, measure: {sum: n, min: 0, max: 9}, by: {town: [Bad Ems, Hof, Ulm]},
     publish: [left, {sliding: 2d}, level]}
output: {public: out/public, private: out/private}
"""
"""Without noise, a key is found if two entries are in it at once."""


@dataclass(frozen=True, slots=True)
class Case:
    """A release and what lands.

    Attributes:
        spec: its paths begin with `out/`.
        files: make the files, one for each epoch.
        epochs: when they are run, after their file has landed; windows are left after the last, so that state is kept.
    """

    spec: str
    files: Callable[[], list[pa.Table]]
    epochs: tuple[datetime, ...]

    def prepare(self, folder: Path) -> Path:
        """Write the spec, with absolute paths, and the files, in `coming`; the spec's path."""
        for name in ("coming", "data"):
            (folder / name).mkdir(parents=True)
        for name, rows in zip(self.names, self.files(), strict=True):
            pq.write_table(rows, folder / "coming" / name, row_group_size=300)
        (folder / "spec.yaml").write_text(self.spec.replace("out/", f"{folder}/"), encoding="utf-8")
        return folder / "spec.yaml"

    @property
    def names(self) -> list[str]:
        """Return the names of the files."""
        return [f"{number}.parquet" for number, _ in enumerate(self.epochs)]


def flights() -> list[pa.Table]:
    """Return the flights of the first days of January in the demo's changelog."""
    table = build.read_flights()
    first = pc.and_(pc.equal(table["month"], 1), pc.less_equal(table["day"], 6))
    return [build.play_back(table.filter(first)).drop_columns("month")]


def stays(seed: int, files: int) -> list[pa.Table]:
    """Stays that end and begin again, told in any order, some of it twice; every third belongs to one person."""
    mutations = generate(seed, stays=200)
    owned = [replace(m, person="p000") if int(m.stay[1:]) % 3 == 0 else m for m in mutations]
    return [flat(table(part)) for part in cut(owned, files)]


def towns(alone: str, moves: int) -> list[pa.Table]:
    """Return stays of many in three towns, and of 12 that are each alone in a town, and move to another one.

    Args:
        alone: First part of the names of these towns.
        moves: Day on which the first of them moves.
    """
    rows = []
    for stay in range(42):
        there = ("Ulm", "Hof", "Bad Ems")[stay % 3] if stay < 30 else f"{alone} {stay}"
        then = "Hof" if stay < 30 else f"{alone} {stay + 100}"
        day = stay % 4 + 2 if stay < 30 else (stay + moves) % 4 + 2
        sex = "fm"[stay % 2]
        steps = [(stay % 3, None, there), (day, there, then)] + ([(7, then, None)] if stay % 5 == 0 else [])
        for at, before, after in steps:
            states = {"before": before, "after": after}
            told = {f"{side}_town": town for side, town in states.items()}
            told |= {f"{side}_sex": None if town is None else sex for side, town in states.items()}
            told |= {f"{side}_n": None if town is None else stay % 7 for side, town in states.items()}
            rows.append({"stay": f"s{stay}", "at": WARDS_BEGIN + timedelta(days=at, hours=12), **told})
    first = [row for row in rows if row["at"] < WARDS_BEGIN + timedelta(days=4)]
    return [pa.Table.from_pylist(part) for part in (first, [row for row in rows if row not in first])]


CASES = {
    "demo": Case(
        DEMO.read_text()
        .replace("out/flights/changelog/", "out/data/")
        .replace("releases/flights/", "out/")
        .replace("epsilon: 1.0", "epsilon: 1.0e12"),
        flights,
        (FLIGHTS_BEGIN + timedelta(days=7),),
    ),
    "owners": Case(
        SPEC.format(
            unit="person",
            constraint="{by: fare, classes: {pass: {at_most: 1}, multi: {at_most: 6}}}",
            strategy="disjoint",
            schedule="{start: 2026-01-01T00:00:00Z, every: 1d, until: 2026-01-11T00:00:00Z}",
        ),
        lambda: stays(41, 3),
        tuple(WARDS_BEGIN + timedelta(days=days) for days in (3, 6, 9)),
    ),
    "entries": Case(
        SPEC.format(
            unit="entry",
            constraint="{by: fare, classes: {pass: {within: 2d}, multi: {at_most: 3}}}",
            strategy="{tree: {branching: 2, height: 3, refine: subtraction}}",
            schedule="{start: 2026-01-01, every: 1d, until: 2026-01-11, timezone: Atlantic/Reykjavik}",  # a calendar
        ),
        lambda: stays(43, 1),
        (WARDS_BEGIN + timedelta(days=9),),
    ),
    **{
        name: Case(FINDS, partial(towns, *arguments), tuple(WARDS_BEGIN + timedelta(days=days) for days in (4, 9)))
        for name, arguments in (("keys", ("Alone", 0)), ("other keys", ("Zell-é", 1)))
    },
}
