"""The check's counts against a plain loop over the rows, and by hand where that says more."""

import random
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.changelog.check import check, check_text

STATE = pa.struct([("ward", pa.string()), ("age", pa.int64())])
SCHEMA = pa.schema(
    [
        ("entry", pa.string()),
        ("event_time", pa.timestamp("us", "UTC")),
        ("order_0", pa.int64()),
        ("before", STATE),
        ("after", STATE),
        ("source_file", pa.string()),
        ("source_row", pa.int64()),
    ]
)

Row = tuple[str | None, int, int, str | None, str | None]
"""Entry, time, order, and the wards before and after; no entry: a truncate."""

COUNTED = ("entries", "mutations", "duplicates", "gaps", "entries_there_before", "deletions", "insertions_again")


def written(rows: list[Row], path: Path, *, leave_out: tuple[str, ...] = ()) -> str:
    """The rows as one file, in reading order; null columns of a state do not make it none."""
    told = [
        {
            "entry": entry,
            "event_time": time,
            "order_0": order,
            "before": None if before is None else {"ward": before, "age": None},
            "after": None if after is None else {"ward": after, "age": None},
            "source_file": "a",
            "source_row": place,
        }
        for place, (entry, time, order, before, after) in enumerate(rows, 1)
    ]
    table = pa.Table.from_pylist(told, schema=SCHEMA).drop_columns(list(leave_out))
    pq.write_table(table, path, row_group_size=100)
    return str(path)


def checked(rows: list[Row], folder: Path, *, leave_out: tuple[str, ...] = ()) -> dict[str, Any]:
    path = written(rows, folder / "part.parquet", leave_out=leave_out)
    return check([path], owner=None, folder=str(folder))


def counted(rows: list[Row]) -> dict[str, int]:
    """The definitions, for changes that no two of an entry have the same time and order."""
    seen = dict.fromkeys(COUNTED, 0) | {"truncates": 0, "out_of_order": 0}
    told = {row for row in rows if row[0] is not None}
    emptied = {row[1:3] for row in rows if row[0] is None}
    seen["truncates"] = len(emptied)
    seen["mutations"] = len(told)
    seen["duplicates"] = sum(row[0] is not None for row in rows) - len(told)
    states: dict[str | None, str | None] = {}
    since: dict[str | None, tuple[int, int]] = {}
    for entry, time, order, before, after in sorted(told, key=lambda row: row[1:3]):
        fresh = any(since.get(entry, (-1, 0)) < moment <= (time, order) for moment in emptied)
        known = None if fresh else states.get(entry)
        if entry in states or fresh:
            seen["gaps"] += before != known
        else:
            seen["entries_there_before"] += before is not None
        seen["entries"] += entry not in states
        seen["insertions_again"] += entry in states and known is None and after is not None
        seen["deletions"] += after is None
        states[entry], since[entry] = after, (time, order)
    latest: dict[str, tuple[int, int]] = {}
    for entry, time, order, _, _ in rows:
        if entry is not None:
            seen["out_of_order"] += (time, order) < latest.get(entry, (time, order))
            latest[entry] = max((time, order), latest.get(entry, (time, order)))
    return seen


def awkward(seed: int, *, truncates: int = 0) -> list[Row]:
    """Chains with lost, repeated and misplaced rows."""
    chance = random.Random(seed)
    rows: list[Row] = []
    states = {f"e{number}": chance.choice([None, None, "a"]) for number in range(60)}
    for moment in range(1, 701):
        entry = chance.choice(list(states))
        after = chance.choice([None, "a", "b"])
        if chance.random() < 0.9:
            rows.append((entry, moment // 3, moment % 3, states[entry], after))
        states[entry] = after
    rows += chance.sample(rows, 40)
    for _ in range(truncates):
        rows.append((None, chance.randrange(240), chance.randrange(3), None, None))
    for _ in range(100):
        left = chance.randrange(len(rows) - 1)
        rows[left], rows[left + 1] = rows[left + 1], rows[left]
    return rows


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_counts_are_those_of_a_plain_loop(seed: int, tmp_path: Path) -> None:
    rows = awkward(seed, truncates=3 * (seed % 2))

    found = checked(rows, tmp_path)

    wanted = counted(rows)
    assert {name: found[name] for name in wanted} == wanted
    assert all(wanted[name] > 0 for name in (*COUNTED, "out_of_order"))


def test_without_images_from_before_gaps_are_not_known(tmp_path: Path) -> None:
    rows: list[Row] = [("x", 1, 0, None, None), ("x", 2, 0, None, "a"), ("y", 1, 0, None, "a")]

    found = checked(rows, tmp_path, leave_out=("before",))

    assert found["gaps"] is None
    assert (found["entries"], found["entries_there_before"], found["insertions_again"]) == (2, 1, 1)
    assert re.search(r"^  gaps +not known$", check_text(found), re.MULTILINE)


def test_changes_of_one_instant_fit_in_any_order(tmp_path: Path) -> None:
    rows: list[Row] = [
        ("x", 1, 0, None, "a"),
        ("x", 2, 0, "b", "c"),
        ("x", 2, 0, "a", "b"),
        ("x", 3, 0, "c", None),
        ("y", 2, 0, "b", "c"),
        ("y", 2, 0, None, "b"),
        ("z", 1, 0, None, "a"),
        ("z", 2, 0, "d", "e"),
        ("z", 2, 0, "a", "b"),
    ]

    found = checked(rows, tmp_path, leave_out=("order_0",))

    assert (found["gaps"], found["entries_there_before"], found["out_of_order"]) == (1, 0, 0)


def test_a_state_of_nulls_is_a_state(tmp_path: Path) -> None:
    path = written([("x", 1, 0, None, "a"), ("x", 2, 0, "a", None)], tmp_path / "part.parquet")
    table = pq.read_table(path)
    nulls = pa.StructArray.from_arrays([pa.nulls(2, pa.string()), pa.nulls(2, pa.int64())], fields=list(STATE))
    pq.write_table(table.set_column(4, "after", nulls), path)

    assert check([path], owner=None, folder=str(tmp_path))["deletions"] == 0


def test_times_outside_the_calendar_of_python_are_reported(tmp_path: Path) -> None:
    found = checked([("x", -(2**62), 0, None, "a"), ("x", 2**62, 0, "a", None)], tmp_path)

    assert found["first_time"].startswith("-144169-")
    assert found["last_time"].startswith("148108-")


def test_nothing_of_the_work_is_left(tmp_path: Path) -> None:
    checked(awkward(9), tmp_path)

    assert [path.name for path in tmp_path.iterdir()] == ["part.parquet"]


def test_rows_whose_states_name_no_owner_are_counted(tmp_path: Path) -> None:
    """The two rows below that `run` cannot charge to anyone: no state at all, and a state without an owner."""
    rows: list[Row] = [
        ("a", 1, 1, None, "p"),
        ("a", 2, 2, "p", None),
        ("b", 3, 3, None, None),
        (None, 4, 4, None, None),
    ]
    path = written(rows, tmp_path / "part.parquet")
    table = pq.read_table(path)
    keyed = pa.array([None, None, None, {"ward": None, "age": 3}], STATE)
    extra = table.slice(3).set_column(0, "entry", pa.array(["c"])).set_column(3, "before", keyed.slice(3))
    pq.write_table(pa.concat_tables([table, extra.cast(SCHEMA)]), path)

    assert check([path], owner=None, of_states="ward", folder=str(tmp_path))["rows_without_owner"] == 2
    assert "rows_without_owner" not in check([path], owner=None, folder=str(tmp_path))
