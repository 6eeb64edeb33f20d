"""`evaluate --truth` against the definitions in SQL, cell by cell, on changelogs with everything that is awkward."""

import json
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.cli import main
from tests.e2e.changelogs import DAYS, START, WRITERS, Mutation, cut, flat, table
from tests.e2e.definitions import Asked

QUERIES = (
    Asked(
        name="beds",
        spec="measure: count, by: {ward: [a, b, other]}",
        statistic="count",
        by=(("ward", ("a", "b", "other")),),
        kinds=("level", "change", "entered", "left"),
    ),
    Asked(
        name="adults",
        spec="""measure: count, where: "n >= 18 and kind <> 'day'", by: {ward: [b, a], kind: [in, out]}""",
        statistic="count",
        where="n >= 18 and kind <> 'day'",
        by=(("kind", ("in", "out")), ("ward", ("b", "a"))),
        kinds=("change", "entered", "left"),
    ),
    Asked(
        name="total",
        spec="measure: {sum: x, min: -3, max: 5}, by: {ward: [a, b]}",
        statistic="sum",
        column="x",
        low=-3,
        high=5,
        by=(("ward", ("a", "b")),),
        kinds=("level", "change", "left"),
    ),
    Asked(
        name="middle",
        spec="measure: {mean: x, min: -3, max: 5, invalid: max}",
        statistic="mean",
        column="x",
        low=-3,
        high=5,
        invalid=5,
        kinds=("level", "change", "entered"),
    ),
    Asked(
        name="squares",
        spec="measure: {second_moment: x, min: -3, max: 5}, by: {kind: [in, other]}",
        statistic="second_moment",
        column="x",
        low=-3,
        high=5,
        by=(("kind", ("in", "other")),),
        kinds=("level", "left"),
    ),
    Asked(
        name="spread",
        spec="""measure: {variance: n, min: 5, max: 30, invalid: min}, where: "ward <> 'c'" """,
        statistic="variance",
        where="ward <> 'c'",
        column="n",
        low=5,
        high=30,
        invalid=5,
        kinds=("level", "entered"),
    ),
)

TOLERANCE = 1e-4
"""Squares stand on a grid of about 2^-20; everything else is exact."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A spec, the files it reads, and the same constraint in SQL."""

    constraint: str
    allowed: str
    unit: str = "entry"
    format: str = "parquet"
    struct: bool = False
    before: bool = True
    order: bool = True
    shards: int = 2
    seed: int = 1
    files: int = 3


def at_most(changes: int) -> dict[str, str]:
    return {"constraint": f"{{at_most: {changes}}}", "allowed": f"k <= {changes}"}


def within(days: int) -> dict[str, str]:
    return {
        "constraint": f"{{within: {days}d}}",
        "allowed": f"(at is null or at <= first_at + interval {days} day)",
    }


BY_CLASS = {
    "constraint": "{by: fare, classes: {pass: {within: 2d}, multi: {at_most: 3}}}",
    "allowed": """case class when 'multi' then k <= 3
        when 'pass' then at is null or at <= first_at + interval 2 day else false end""",
}
OWNERS_BY_CLASS = {
    "constraint": "{by: fare, classes: {pass: {at_most: 1}, multi: {at_most: 6}}}",
    "allowed": "case class when 'multi' then k <= 6 when 'pass' then k <= 1 else false end",
}

CASES = {
    "at most one change": Case(**at_most(1), shards=1),
    "at most two changes": Case(**at_most(2), seed=2),
    "at most five changes, structs": Case(**at_most(5), shards=7, seed=3, struct=True),
    "within no time": Case(**within(0), seed=4),
    "within a day, csv": Case(**within(1), shards=1, seed=5, format="csv"),
    "within four days, jsonl": Case(**within(4), shards=7, seed=6, format="jsonl"),
    "by class": Case(**BY_CLASS, shards=7, seed=7),
    "by class, without order": Case(**BY_CLASS, seed=8, order=False, struct=True),
    "at most two changes, csv without order": Case(**at_most(2), seed=9, order=False, format="csv"),
    "new values only": Case(**at_most(2), shards=7, seed=10, before=False),
    "new values only, csv without order": Case(**at_most(5), seed=11, before=False, order=False, format="csv"),
    "new values only, jsonl structs": Case(**within(4), seed=12, before=False, format="jsonl", struct=True),
    "new values only, by class, without order": Case(**BY_CLASS, seed=13, before=False, order=False),
    "owner, at most one change": Case(**at_most(1), unit="person", shards=1, seed=14),
    "owner, at most five changes, jsonl": Case(**at_most(5), unit="person", seed=15, format="jsonl", struct=True),
    "owner, without order": Case(**at_most(5), unit="person", seed=16, order=False, shards=7),
    "owner, by class": Case(**OWNERS_BY_CLASS, unit="person", seed=17, struct=True),
    "owner of the state, at most two changes": Case(**at_most(2), unit="nurse", shards=7, seed=18),
    "owner of the state, at most five, csv": Case(**at_most(5), unit="nurse", seed=19, format="csv"),
    "owner of the state, by class, structs": Case(**OWNERS_BY_CLASS, unit="nurse", seed=20, struct=True),
    "owner of the state, without order": Case(**at_most(5), unit="nurse", seed=21, order=False, shards=1),
}


def write(folder: Path, case: Case, mutations: list[Mutation]) -> None:
    """The changelog's files and the spec."""
    (folder / "data").mkdir()
    unused = {"before"} if not case.before else set()
    unused |= set() if case.order else {"lsn", "pos"}
    for number, part in enumerate(cut(mutations, case.files)):
        rows = table(part) if case.struct else flat(table(part), prefixes=case.before)
        # Without prefixes every column that has no role is one of the state.
        unused |= {"person"} if case.unit != "person" else set()
        kept = [name for name in rows.column_names if name not in unused]
        WRITERS[case.format](rows.select(kept), folder / "data" / f"part-{number}.{case.format}")
    sides = {"before": "before" if case.struct else "before_", "after": "after" if case.struct else "after_"}
    if not case.before:
        sides = {"after": "after"} if case.struct else {}
    spec = {
        "changelog": {"format": case.format, "path": f"data/*.{case.format}", "entry": "stay", "time": "at", **sides}
        | ({"order": ["lsn", "pos"]} if case.order else {}),
    }
    queries = [f"  - {{name: {q.name}, {q.spec}, publish: [{', '.join(q.kinds)}]}}" for q in QUERIES]
    (folder / "spec.yaml").write_text(
        "\n".join(
            [
                "release: wards",
                f"changelog: {json.dumps(spec['changelog'])}",
                f"privacy: {{unit: {case.unit}, epsilon: 1.0, constraint: {case.constraint}}}",
                f"schedule: {{start: {START.isoformat()}, every: 1d, until: {_until().isoformat()}}}",
                "queries:",
                *queries,
                "output: {public: public, private: private}",
            ]
        )
    )


def _until():
    return START + timedelta(days=DAYS)


def seen(case: Case, mutations: list[Mutation]) -> pa.Table:
    """The changelog as the SQL reads it: `seq` is the place in the files if nothing else orders what was told."""
    told = table(mutations)
    places = case.before or case.order
    seq = [m.seq for m in mutations] if places else list(range(1, len(mutations) + 1))
    told = told.append_column("seq", pa.array(seq))
    if not case.before:
        told = told.set_column(told.schema.get_field_index("before"), "before", pa.nulls(len(told), told["after"].type))
    return told


def truth(folder: Path, *flags: str, shards: int = 2) -> pa.Table:
    """What `evaluate --truth` writes."""
    path = folder / f"truth-{shards}.parquet"
    assert main(["evaluate", "spec.yaml", "--truth", str(path), "--runs=1", f"--shards={shards}", *flags]) == 0
    return pq.read_table(path)


COMPARED = """
select told.*, expected.*
from (
    select query, kind, date_diff('day', $start::timestamptz, window_start) as day, exact, bounded,
        concat_ws('|', kind_1, ward) as cell
    from told
) as told full join expected using (query, kind, day, cell)
where told.query is null or expected.query is null
    or told.exact is distinct from expected.exact and (abs(told.exact - expected.exact) < $tolerance) is not true
    or told.bounded is distinct from expected.bounded
        and (abs(told.bounded - expected.bounded) < $tolerance) is not true
"""


def differences(told: pa.Table, wanted: pa.Table) -> list[tuple[object, ...]]:
    """Rows of one that the other does not have, or has with another number."""
    names = [f"{name}_1" if name == "kind" and place > 1 else name for place, name in enumerate(told.column_names)]
    database = duckdb.connect(config={"TimeZone": "UTC"})
    database.register("told", told.rename_columns(names))
    database.register("expected", wanted)
    return database.execute(COMPARED, {"start": START, "tolerance": TOLERANCE}).fetchall()
