"""`evaluate --truth` against the definitions in SQL, cell by cell, on changelogs with everything that is awkward."""

import json
import random
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from pipelines.cli import main
from pipelines.spec.times import microseconds
from tests.e2e.changelogs import DAYS, START, WRITERS, Mutation, cut, flat, generate, table
from tests.e2e.definitions import SLIDING, Asked, expected

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
        spec="""measure: count, where: "n >= 18 and care <> 'day'", by: {ward: [b, a], care: [in, out]}""",
        statistic="count",
        where="n >= 18 and care <> 'day'",
        by=(("care", ("in", "out")), ("ward", ("b", "a"))),
        kinds=("change", "sliding", "entered", "left"),
    ),
    Asked(
        name="total",
        spec="measure: {sum: x, min: -3, max: 5}, by: {ward: [a, b]}",
        statistic="sum",
        column="x",
        low=-3,
        high=5,
        by=(("ward", ("a", "b")),),
        kinds=("level", "sliding", "left"),
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
        spec="measure: {second_moment: x, min: -3, max: 5}, by: {care: [in, other]}",
        statistic="second_moment",
        column="x",
        low=-3,
        high=5,
        by=(("care", ("in", "other")),),
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

DAY = 86_400_000_000
TIMELINE = {"start": microseconds(START), "every": DAY, "days": DAYS}

TOLERANCE = 1e-4
"""Squares are on a grid of about 2^-20; everything else is exact."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A spec, the files it reads, and the same constraint in SQL.

    Attributes:
        order: whether the files say which mutation of one instant came first; `coarse`: up to a few that they link.
    """

    constraint: str
    allowed: str
    unit: str = "entry"
    format: str = "parquet"
    struct: bool = False
    before: bool = True
    order: bool = True
    coarse: bool = False
    shards: int = 2
    seed: int = 1
    files: int = 3
    only: str | None = None

    @property
    def queries(self) -> tuple[Asked, ...]:
        """All, or the one; a unit that changes once never leaves, and to ask for it is refused."""
        asked = [query for query in QUERIES if self.only in (None, query.name)]
        if self.constraint != "{at_most: 1}":
            return tuple(asked)
        return tuple(replace(q, kinds=tuple(kind for kind in q.kinds if kind != "left")) for q in asked)


def at_most(changes: int) -> dict[str, str]:
    return {"constraint": f"{{at_most: {changes}}}", "allowed": f"k <= {changes}"}


def within(days: int) -> dict[str, str]:
    return {
        "constraint": f"{{within: {days}d}}",
        "allowed": f"(moment is null or moment <= first_moment + {days * DAY})",
    }


BY_CLASS = {
    "constraint": "{by: fare, classes: {pass: {within: 2d}, multi: {at_most: 3}}}",
    "allowed": f"""case class when 'multi' then k <= 3
        when 'pass' then moment is null or moment <= first_moment + {2 * DAY} else false end""",
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
    "by class, of states that the query does not see": Case(**BY_CLASS, seed=23, only="adults"),
    "by class, without order": Case(**BY_CLASS, seed=8, order=False, struct=True),
    "at most two changes, csv without order": Case(**at_most(2), seed=9, order=False, format="csv"),
    "at most five changes, coarse order": Case(**at_most(5), seed=22, coarse=True),
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
    """Write the files of the changelog and the spec."""
    (folder / "data").mkdir()
    unused = {"before"} if not case.before else set()
    unused |= set() if case.order else {"lsn", "pos"}
    unused |= set() if case.unit == "person" else {"person"}  # without prefixes it would be one of the state
    for number, part in enumerate(cut(mutations, case.files)):
        rows = table(part) if case.struct else flat(table(part), prefixes=case.before)
        kept = [name for name in rows.column_names if name not in unused]
        WRITERS[case.format](rows.select(kept), folder / "data" / f"part-{number}.{case.format}")
    changelog = {"format": case.format, "path": f"data/*.{case.format}", "entry": "stay", "time": "at"}
    if case.struct:
        changelog |= {"after": "after"} | ({"before": "before"} if case.before else {})
    elif case.before:
        changelog |= {"before": "before_", "after": "after_"}
    if case.format == "jsonl" and case.unit == "person" and (case.struct or case.before):
        changelog["owner"] = "mutation"
    order = {"order": ["lsn"] if case.coarse else ["lsn", "pos"]} if case.order else {}
    lines = [
        "release: wards",
        f"changelog: {json.dumps(changelog | order)}",
        f"privacy: {{unit: {case.unit}, epsilon: 1.0, constraint: {case.constraint}}}",
        f"schedule: {{start: {START.isoformat()}, every: 1d, until: {(START + timedelta(days=DAYS)).isoformat()}}}",
        "queries:",
        *(f"  - {{name: {q.name}, {q.spec}, publish: [{', '.join(map(_asked, q.kinds))}]}}" for q in case.queries),
        "strategy: disjoint",  # sums are the same for all, and a search takes a quarter of the time
        "output: {public: public, private: private}",
    ]
    (folder / "spec.yaml").write_text("\n".join(lines), encoding="utf-8")


def _asked(kind: str) -> str:
    return SLIDING if kind == "sliding" else kind


def seen(case: Case, mutations: list[Mutation]) -> pa.Table:
    """The changelog as the SQL reads it: `seq` is the place in the files if nothing else orders the changes."""
    told = table(mutations)
    places = case.before or case.order
    seq = [m.seq for m in mutations] if places else list(range(1, len(mutations) + 1))
    told = told.append_column("seq", pa.array(seq))
    told = told.append_column("moment", told["at"].cast(pa.int64()))
    if not case.before:
        told = told.set_column(told.schema.get_field_index("before"), "before", pa.nulls(len(told), told["after"].type))
    return told


def truth(folder: Path, *flags: str, shards: int = 2) -> pa.Table:
    """Return the table that `evaluate --truth` writes."""
    path = folder / f"truth-{shards}.parquet"
    assert main(["evaluate", "spec.yaml", "--truth", str(path), "--runs=1", f"--shards={shards}", *flags]) == 0
    return pq.read_table(path)


def numbers(told: pa.Table) -> pa.Table:
    """The truth's rows as the SQL names them, in its order."""
    database = duckdb.connect(config={"threads": 1})
    database.register("told", told)
    return database.sql(
        """
        select query, kind, (epoch_us(window_start) - $start) // $every as day,
            concat_ws('|', care, ward) as cell, exact, bounded
        from told order by all
        """,
        params={"start": TIMELINE["start"], "every": TIMELINE["every"]},
    ).to_arrow_table()


def assert_equal(told: pa.Table, wanted: pa.Table) -> None:
    """Check that two tables have equal rows, nulls and numbers."""
    keys = ["query", "kind", "day", "cell"]
    wanted = wanted.sort_by([(key, "ascending") for key in keys])
    assert told.select(keys).to_pylist() == wanted.select(keys).to_pylist()
    for name in ("exact", "bounded"):
        left, right = (t[name].to_numpy(zero_copy_only=False) for t in (told, wanted))
        wrong = np.flatnonzero(~np.isclose(left, right, rtol=0, atol=TOLERANCE, equal_nan=True))
        assert len(wrong) == 0, (len(wrong), name, told.take(wrong[:5]).to_pylist(), right[wrong[:5]].tolist())


def wanted(case: Case, mutations: list[Mutation]) -> pa.Table:
    return expected(
        seen(case, mutations),
        case.queries,
        unit=case.unit,
        allowed=case.allowed,
        ordered=case.order,
        placed=not case.before and not case.order,
        timeline=TIMELINE,
    )


@pytest.mark.few(4)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_truth_matches_the_definitions_in_sql(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mutations = generate(case.seed, order=case.order and not case.coarse, plain=case.format == "jsonl")
    write(tmp_path, case, mutations)
    monkeypatch.chdir(tmp_path)

    told = numbers(truth(tmp_path, shards=case.shards))

    assert_equal(told, wanted(case, mutations))
    for query in case.queries:  # the constraint cut something off everywhere, so that `bounded` was put to the test
        rows = told.filter(pc.equal(told["query"], query.name))
        assert rows["exact"].to_pylist() != rows["bounded"].to_pylist()


def test_truth_depends_neither_on_the_order_of_rows_and_files_nor_on_the_shards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutations = generate(30)
    told = []
    for shards, files in ((1, 1), (7, 3)):
        case = Case(**at_most(3), shards=shards, files=files)
        folder = tmp_path / str(shards)
        folder.mkdir()
        write(folder, case, mutations)
        monkeypatch.chdir(folder)
        told.append(truth(folder, shards=shards))
        random.Random(shards).shuffle(mutations)

    assert told[0].equals(told[1])
    assert_equal(numbers(told[0]), wanted(case, mutations))


def test_truth_is_the_same_in_two_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case(**BY_CLASS, shards=3)
    mutations = generate(31, stays=200)
    write(tmp_path, case, mutations)
    monkeypatch.chdir(tmp_path)

    told = truth(tmp_path, "--direct_num_workers=2", "--direct_running_mode=multi_processing", shards=3)

    assert_equal(numbers(told), wanted(case, mutations))
