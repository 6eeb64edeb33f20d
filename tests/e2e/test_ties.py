"""Logs whose times are days: many changes of an entry at one time, told by `evaluate --truth` as they ended."""

import json
import random
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from tests.e2e.specs import CommandLine

DAYS = 100
WARDS = ["reception", "surgery", "medicine", "intensive care"]
STATE = pa.struct([("ward", pa.string()), ("score", pa.int64()), ("nurse", pa.string())])
OPERATED = """{name: operated, measure: count, where: "ward = 'surgery'", publish: [level]}"""
SCORES = "{name: scores, measure: {sum: score, min: 0, max: 9}, publish: [level]}"

Row = dict[str, Any]


@pytest.fixture
def slackwater(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(tmp_path, capsys)


def day(number: int) -> str:
    """1 is the first of January 2026."""
    return str(date(2026, 1, 1) + timedelta(days=number - 1))


def log() -> tuple[list[Row], list[int]]:
    """Up to five changes of each of three entries a day, none twice in a day; and how many end in surgery."""
    chance = random.Random(1)
    now: dict[str, Row | None] = dict.fromkeys("abc")
    rows, levels = [], []
    for number in range(1, DAYS + 1):
        for entry, state in now.items():
            seen = []
            for _ in range(chance.randint(0, 5)):
                after = {"ward": chance.choice(WARDS), "score": chance.randint(0, 1), "nurse": chance.choice("pq")}
                if (state, after) not in seen and state != after:
                    seen.append((state, after))
                    rows.append({"entry": entry, "at": day(number), "before": state, "after": after})
                    state = after
            now[entry] = state
        levels.append(sum(state is not None and state["ward"] == "surgery" for state in now.values()))
    return rows, levels


def write(folder: Path, rows: list[Row], format_: str, *, before: bool) -> str:
    """The log in one file; the changelog of the spec."""
    path, sides = folder / f"log.{format_}", ["before", "after"] if before else ["after"]
    if format_ == "jsonl":
        lines = [{name: row[name] for name in ("entry", "at", *sides)} for row in rows]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        named = {side: side for side in sides}
    else:
        columns: dict[str, pa.Array] = {"entry": pa.array([row["entry"] for row in rows])}
        times = pa.array([f"{row['at']}T00:00:00Z" for row in rows])
        columns["at"] = times if format_ == "csv" else times.cast(pa.timestamp("us", "UTC"))
        for side in sides:
            states = pa.array([row[side] for row in rows], STATE)
            columns |= {f"{side}_{field.name}": pc.struct_field(states, field.name) for field in STATE}
        table = pa.table(columns)
        pyarrow.csv.write_csv(table, path) if format_ == "csv" else pq.write_table(table, path)
        named = {side: f"{side}_" for side in sides}
    return json.dumps({"format": format_, "path": path.name, "entry": "entry", "time": "at", "timezone": "UTC"} | named)


def levels(slackwater: CommandLine, changelog: str, *queries: str) -> list[float]:
    """Of `operated` at the end of each day."""
    spec = [
        "release: log",
        f"changelog: {changelog}",
        "privacy: {unit: entry, epsilon: 1.0, constraint: {at_most: 1000}}",
        f"schedule: {{start: {day(1)}T00:00:00Z, every: 1d, until: {day(DAYS + 1)}T00:00:00Z}}",
        f"queries: [{', '.join(queries)}]",
        "strategy: disjoint",
        "output: {public: public, private: private}",
    ]
    (slackwater.folder / "spec.yaml").write_text("\n".join(spec))
    said = slackwater("evaluate", "spec.yaml", "--truth", "truth.parquet", "--runs=1")
    assert said.code == 0, said.err
    told = pq.read_table(slackwater.folder / "truth.parquet").filter(pc.field("query") == "operated")
    return told.sort_by("window_start")["exact"].to_pylist()


@pytest.mark.parametrize(
    ("format_", "before"), [("parquet", True), ("csv", True), ("csv", False), ("jsonl", True), ("jsonl", False)]
)
def test_levels_of_a_log_with_daily_times_are_right_next_to_any_other_measures(
    slackwater: CommandLine, format_: str, before: bool
) -> None:
    rows, right = log()
    if before:  # where the rows stand is of no matter
        random.Random(2).shuffle(rows)
    changelog = write(slackwater.folder, rows, format_, before=before)

    assert levels(slackwater, changelog, OPERATED) == right
    assert levels(slackwater, changelog, SCORES, OPERATED) == right


@pytest.mark.parametrize("format_", ["parquet", "csv", "jsonl"])
def test_an_entry_that_moves_at_once_is_not_kept_in_its_previous_cell(slackwater: CommandLine, format_: str) -> None:
    wards = ["reception", "surgery", "medicine"]
    rows = [{"entry": "a", "at": day(2), "after": {"ward": ward, "score": 0, "nurse": "p"}} for ward in wards]

    for length, level in ((2, 1), (3, 0)):
        changelog = write(slackwater.folder, rows[:length], format_, before=False)
        assert levels(slackwater, changelog, OPERATED) == [0] + [level] * (DAYS - 1)


def test_an_owner_of_the_mutation_may_be_asked_for_in_every_place(slackwater: CommandLine) -> None:
    table = pa.table({"nurse": ["p", "q", "r", "p"], "entry": ["a", "b", "c", "d"], "ward": ["surgery"] * 4})
    table = table.append_column("at", pa.array([f"{day(2)}T00:00:00Z"] * 4).cast(pa.timestamp("us", "UTC")))
    pq.write_table(table, slackwater.folder / "log.parquet")
    spec = f"""
release: log
changelog: {{format: parquet, path: log.parquet, entry: entry, time: at}}
privacy:
  unit: nurse
  epsilon: 1.0
  constraint: {{by: nurse, classes: {{p: {{at_most: 1}}, q: {{at_most: 9}}}}}}
schedule: {{start: {day(1)}T00:00:00Z, every: 1d, until: {day(3)}T00:00:00Z}}
queries:
  - {{name: all, measure: count, where: "nurse <> 'r'", by: {{nurse: [p, q, other]}}, publish: [change]}}
strategy: disjoint
output: {{public: public, private: private}}
"""
    (slackwater.folder / "spec.yaml").write_text(spec)

    said = slackwater("evaluate", "spec.yaml", "--truth", "truth.parquet", "--runs=1")

    assert said.code == 0, said.err
    told = pq.read_table(slackwater.folder / "truth.parquet").sort_by([("window_start", "ascending")])
    second = {row["nurse"]: (row["exact"], row["bounded"]) for row in told.to_pylist()[3:]}
    assert second == {"p": (2, 1), "q": (1, 1), "other": (0, 0)}
