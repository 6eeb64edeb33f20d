"""Differences of snapshots against a row-by-row version, and the transform on files."""

import math
import struct
from collections import Counter, defaultdict
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from hypothesis import given
from hypothesis import strategies as st

from pipelines.spec.times import microseconds
from tests.searches import examples
from tests.transforms.writing import write_csv, write_parquet
from transforms.common.errors import SpecError
from transforms.common.source import Source
from transforms.sources import snapshots
from transforms.sources.changelog import DEAD, READ, ReadChangelog, read_split, splits
from transforms.sources.columns.layout import Layout
from transforms.sources.columns.normalise import Place
from transforms.sources.formats.parquet import PARQUET
from transforms.sources.inspection import inspect
from transforms.sources.snapshots import REPEATED, differences

START = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
STATES = {"x": pa.float64(), "n": pa.int64(), "ward": pa.string(), "ok": pa.bool_(), "at": pa.timestamp("us", "UTC")}

Row = dict[str, Any]

OTHER_NAN = struct.unpack("<d", b"\x01\0\0\0\0\0\xf8\x7f")[0]
VALUES = {
    "x": [None, math.nan, OTHER_NAN, -math.inf, -0.0, 0.0, 1.5],
    "n": [None, 0, 2**53 + 1, 2**53],
    "ward": [None, "", "a", "\0"],
    "ok": [None, True, False],
    "at": [None, START, START + timedelta(microseconds=1)],
}

# States differ in one column, so that most are equal.
rows = st.builds(
    lambda varied, **keys: {**dict.fromkeys(STATES), "x": 0.0, "n": 0, **keys, varied[0]: varied[1]},
    st.sampled_from([(name, value) for name, values in VALUES.items() for value in values]),
    snapshot=st.integers(0, 3),
    entry=st.sampled_from("ab"),
    owner=st.sampled_from("AB"),
)


def content(row: Row) -> tuple[Any, ...]:
    """Return the states as values with the right equality and order: null last, NaN before it."""
    numbers = ((row["x"] is None, row["x"] != row["x"], 0.0 if row["x"] != row["x"] else row["x"] or 0.0),)
    others = ((row[name] is None, row[name] if row[name] is not None else 0) for name in STATES if name != "x")
    return (*numbers, *others)


def reference(told: list[Row], *, owners: bool, snapshots: int, opens: bool) -> tuple[Counter, Counter]:
    """Return changes as (key, snapshot, content before, content after), and rows that are left out."""
    tables: list[dict[tuple, list[tuple]]] = [defaultdict(list) for _ in range(snapshots)]
    for row in told:
        key = (row["owner"], row["entry"]) if owners else (row["entry"],)
        tables[row["snapshot"]][key].append(content(row))
    repeats = Counter({(n, *key): len(t[key]) - 1 for n, t in enumerate(tables) for key in t if len(t[key]) > 1})
    states = [{key: found[0] for key, found in table.items()} for table in tables]
    changes: Counter = Counter()
    known: dict = {}
    for number, state in enumerate(states):
        if number or opens:
            for key in known.keys() | state.keys():
                if known.get(key) != state.get(key):
                    changes[key, number, known.get(key), state.get(key)] += 1
        known = state
    return changes, repeats


@examples(50)
@given(st.lists(rows, max_size=24), st.booleans(), st.booleans(), st.randoms(use_true_random=False))
def test_the_difference_is_the_one_made_row_by_row(told: list[Row], owners: bool, opens: bool, chance: Any) -> None:
    chance.shuffle(told)
    columns: dict[str, Any] = {"entry": pa.array([row["entry"] for row in told], pa.string())}
    if owners:
        columns["owner"] = pa.array([row["owner"] for row in told], pa.string())
    columns |= {f"after.{name}": pa.array([row[name] for row in told], kind) for name, kind in STATES.items()}
    columns |= {"file": pa.array([row["snapshot"] for row in told], pa.int64()), "row": np.arange(len(told))}
    snapshot = np.array([row["snapshot"] for row in told], dtype=np.int64)

    found, repeated = differences(pa.table(columns), snapshot, [10, 20, 30, 40], opens=opens)

    wanted, repeats = reference(told, owners=owners, snapshots=4, opens=opens)
    changes: Counter = Counter()
    for row in found.to_pylist():
        sides = []
        for side in ("before", "after"):
            state = {name: row[f"{side}.{name}"] for name in STATES}
            assert row[side] or set(state.values()) == {None}
            sides.append(content(state) if row[side] else None)
        key = (row["owner"], row["entry"]) if owners else (row["entry"],)
        changes[key, [10, 20, 30, 40].index(row["time"] + 1), *sides] += 1
    assert changes == wanted
    assert repeats == Counter(
        (told[i]["snapshot"], *((told[i]["owner"],) if owners else ()), told[i]["entry"]) for i in repeated
    )


def test_the_first_row_of_a_repeated_entry_counts_for_any_queries() -> None:
    def first(file: list[int], row: list[int], **columns: list[float | None]) -> tuple[list, list[int]]:
        states = {f"after.{name}": pa.array(values, pa.float64()) for name, values in columns.items()}
        table = pa.table({"entry": ["a"] * 3, **states, "file": file, "row": row})
        found, repeated = differences(table, np.zeros(3, np.int64), [10], opens=True)
        return found["after.x"].to_pylist(), [row[i] for i in repeated]

    assert first([0, 0, 0], [2, 1, 3], x=[3.0, 5.0, None]) == ([5.0], [2, 3])
    assert first([0, 0, 0], [2, 1, 3], x=[3.0, 5.0, None], a=[1.0, 2.0, 3.0]) == ([5.0], [2, 3])
    assert first([1, 2, 0], [1, 2, 3], x=[3.0, 5.0, None]) == ([None], [1, 2])


def test_all_nans_are_equal_and_all_zeros_are_equal() -> None:
    bits = np.array([0x7FF8000000000000, 0x7FF8000000000001, 0xFFF8000000000000, 0x8000000000000000, 0], np.uint64)
    columns = {"entry": ["a"] * 5, "after.x": bits.view(np.float64), "file": range(5), "row": range(5)}

    found, _ = differences(pa.table(columns), np.arange(5), [10, 20, 30, 40, 50], opens=False)

    assert found["time"].to_pylist() == [39]


# On files


def look(path: Path | str, *, numbers: str = "", others: str = "", owner: str | None = None, **changes: Any) -> Layout:
    usual: dict[str, Any] = {
        "entry": "id",
        "time": None,
        "before": None,
        "after": None,
        "every": DAY // timedelta(microseconds=1),
    }
    source = Source(format="snapshots", paths=(str(path),), owner=owner, **(usual | changes))
    return inspect(source, frozenset(numbers.split()), frozenset(others.split()))


def run(layout: Layout, into: Path) -> dict[str, list[str]]:
    """Return the three outputs of the transform as lines in any order."""
    with beam.Pipeline(options=PipelineOptions(["--runner=FnApiRunner"])) as pipeline:
        outputs = pipeline | ReadChangelog(layout, 1000)
        lines = {
            "rows": outputs["rows"] | "Rows" >> beam.FlatMap(lambda batch: map(repr, batch.table.to_pylist())),
            DEAD: outputs[DEAD] | "Dead" >> beam.FlatMap(lambda table: map(repr, table.to_pylist())),
            READ: outputs[READ] | "Read" >> beam.Map(repr),
        }
        for name, collection in lines.items():
            collection | f"Write{name}" >> beam.io.WriteToText(str(into / name), shard_name_template="")
    return {name: sorted((into / name).read_text().splitlines()) for name in lines}


def day(number: int) -> str:
    return (START + number * DAY).strftime("%Y-%m-%d")


def changed(entry: str, at: int, before: Row | None, after: Row | None, columns: str, **owner: str) -> str:
    """Return a normalised row in the form of `run`: a change between the snapshots of `at - 1` and `at`."""
    row: Row = {"entry": entry, "time": microseconds(START + at * DAY) - 1, **owner}
    for side, state in (("before", before), ("after", after)):
        row[side] = state is not None
        row[f"image.{side}"] = int(state is not None)
        row |= {f"{side}.{name}": (state or {}).get(name) for name in columns.split()}
    return repr(row)


@pytest.mark.slow
@pytest.mark.parametrize("format_", ["parquet", "csv"])
def test_files_become_the_changes_between_them(tmp_path: Path, format_: str) -> None:
    tables = [
        {"a": (1.0, "x"), "b": (None, None), "c": (3.0, "z")},
        {"a": (1.0, "x"), "b": (None, "y"), "d": (4.0, "w")},
        {"a": (1.5, "x"), "b": (None, "y"), "c": (3.0, "z"), "d": (4.0, "w")},
    ]
    for number, table in enumerate(tables):
        path = tmp_path / f"{day(number)}.{format_}"
        if format_ == "parquet":
            columns = {"id": list(table), "n": [v[0] for v in table.values()], "w": [v[1] for v in table.values()]}
            write_parquet(path, columns)
        else:
            write_csv(path, ["id", "w", "n"], [[key, w, n] for key, (n, w) in table.items()])
    layout = look(tmp_path / f"%Y-%m-%d.{format_}", numbers="n", others="w")

    outputs = run(layout, tmp_path)

    a, b, c, d = ({"n": 1.0, "w": "x"}, {"n": None, "w": None}, {"n": 3.0, "w": "z"}, {"n": 4.0, "w": "w"})
    wanted = [
        *(changed(entry, 0, None, state, "n w") for entry, state in zip("abc", (a, b, c), strict=True)),
        changed("b", 1, b, b | {"w": "y"}, "n w"),
        changed("c", 1, c, None, "n w"),
        changed("d", 1, None, d, "n w"),
        changed("a", 2, a, a | {"n": 1.5}, "n w"),
        changed("c", 2, None, c, "n w"),
    ]
    assert outputs["rows"] == sorted(wanted)
    assert outputs[DEAD] == []
    assert [line.split(", ")[1:3] for line in outputs[READ]] == [["3", "0"], ["3", "0"], ["4", "0"]]


@pytest.mark.slow
def test_a_row_with_only_a_key_is_a_state(tmp_path: Path) -> None:
    write_parquet(tmp_path / f"{day(0)}.parquet", {"id": ["a", "b"], "n": pa.nulls(2, pa.int64())})

    for needs in ({}, {"others": "n"}, {"others": "id"}):
        outputs = run(look(tmp_path / "%Y-%m-%d.parquet", **needs), tmp_path)
        assert [("'after': True" in line, "'before': False" in line) for line in outputs["rows"]] == [(True, True)] * 2
    assert ["'after.id': 'a'" in line for line in outputs["rows"]] == [True, False]


@pytest.mark.slow
def test_an_entry_that_changes_hands_is_deleted_for_one_owner_and_inserted_for_the_other(tmp_path: Path) -> None:
    for number, owner in enumerate(["A", "A", "B"]):
        write_parquet(tmp_path / f"{day(number)}.parquet", {"id": ["a"], "who": [owner], "n": [7]})

    outputs = run(look(tmp_path / "%Y-%m-%d.parquet", numbers="n", owner="who"), tmp_path)

    assert outputs["rows"] == sorted(
        [
            changed("a", 0, None, {"n": 7}, "n", owner="A"),
            changed("a", 2, {"n": 7}, None, "n", owner="A"),
            changed("a", 2, None, {"n": 7}, "n", owner="B"),
        ]
    )


@pytest.mark.slow
def test_unusable_rows_are_dead_letters_and_have_no_other_effect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "SPAN", 1)
    key = {"id": pa.array(["a", None, "b", "b"]), "who": pa.array([None, "A", "A", "A"]), "n": [1, 2, 3, 4]}
    for number in range(3):
        columns = key if number == 1 else {"id": ["a", "b"], "who": ["A", "A"], "n": [1, 3]}
        write_parquet(tmp_path / f"{day(number)}.parquet", columns)

    outputs = run(look(tmp_path / "%Y-%m-%d.parquet", numbers="n", owner="who"), tmp_path)

    file = f"{tmp_path}/{day(1)}.parquet"
    reasons = [
        (1, "column 'who': owner is null; every row must name it, a deletion too"),
        (2, "column 'id': entry is null"),
        (4, REPEATED),
    ]
    assert outputs[DEAD] == [repr({"file": file, "row": row, "reason": reason}) for row, reason in reasons]
    one, three = {"n": 1}, {"n": 3}
    assert outputs["rows"] == sorted(
        [
            changed("a", 0, None, one, "n", owner="A"),
            changed("b", 0, None, three, "n", owner="A"),
            changed("a", 1, one, None, "n", owner="A"),
            changed("a", 2, None, one, "n", owner="A"),
        ]
    )


@pytest.mark.slow
def test_a_later_file_of_another_type_is_a_dead_file(tmp_path: Path) -> None:
    for number, values in enumerate([[1.5, 2.5], [1, 2], ["1", "2"]]):
        write_parquet(tmp_path / f"{day(number)}.parquet", {"id": ["a", "b"], "n": values})

    outputs = run(look(tmp_path / "%Y-%m-%d.parquet", numbers="n"), tmp_path)

    (dead,) = outputs[DEAD]
    assert f"{day(2)}.parquet" in dead
    assert "column 'n' is string, but the first file has float64 there" in dead
    assert changed("a", 1, {"n": 1.5}, {"n": 1.0}, "n") in outputs["rows"]  # integers are allowed for floats


@pytest.mark.few(2)
@pytest.mark.slow
@pytest.mark.parametrize(("span", "group"), [(1, 1), (2, 40), (3, 2**20), (8, 100)])
def test_blocks_and_shards_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, span: int, group: int
) -> None:
    chance = np.random.default_rng(7)
    days = 7
    values = [{f"e{key}": int(chance.integers(3)) for key in range(60) if chance.random() < 0.7} for _ in range(days)]
    for number, table in enumerate(values):
        keys = list(table)
        for part in (0, 1):  # two files each
            columns = {"id": keys[part::2], "n": [table[key] for key in keys[part::2]]}
            (tmp_path / day(number)).mkdir(exist_ok=True)
            write_parquet(tmp_path / day(number) / f"{part}.parquet", columns)
    monkeypatch.setattr(snapshots, "SPAN", span)
    monkeypatch.setattr(snapshots, "GROUP_BYTES", group * 100)
    layout = look(tmp_path / "%Y-%m-%d/*.parquet", numbers="n")

    outputs = run(layout, tmp_path)

    wanted = []
    for number, (before, after) in enumerate(zip([{}, *values], values, strict=False)):
        for key in before.keys() | after.keys():
            sides = [{"n": table[key]} if key in table else None for table in (before, after)]
            if sides[0] != sides[1]:
                wanted.append(changed(key, number, sides[0], sides[1], "n"))
    assert outputs["rows"] == sorted(wanted)
    assert snapshots.comparison_of(layout).blocks == -(-(days - 1) // span)
    assert (snapshots.comparison_of(layout).shards > 1) == (group < 2**20)


@pytest.mark.slow
def test_the_last_read_snapshot_is_compared_and_not_inserted_again(tmp_path: Path) -> None:
    for number, values in enumerate([[1, 2], [1, 3], [1, 4]]):
        write_parquet(tmp_path / f"{day(number)}.parquet", {"id": ["a", "b"], "n": values})
    layout = look(tmp_path / "%Y-%m-%d.parquet", numbers="n")
    later = replace(layout, base=layout.files[1:2], files=layout.files[2:], earlier=2)

    outputs = run(later, tmp_path)

    assert outputs["rows"] == [changed("b", 2, {"n": 3}, {"n": 4}, "n")]
    assert [str(day(number)) in line for number, line in zip((1, 2), outputs[READ], strict=True)] == [True, True]
    assert run(replace(layout, files=(), earlier=3), tmp_path) == {"rows": [], DEAD: [], READ: []}


def test_a_missing_column_of_the_owner_is_reported(tmp_path: Path) -> None:
    write_parquet(tmp_path / f"{day(0)}.parquet", {"id": ["a"]})

    with pytest.raises(SpecError, match=r"privacy.unit: .* has no column 'who'"):
        look(tmp_path / "%Y-%m-%d.parquet", owner="who")


@pytest.mark.slow
def test_a_group_does_not_grow_with_the_number_of_snapshots(tmp_path: Path) -> None:
    """Compare the bytes of the largest group's rows, as the kernel gets them."""
    largest = []
    for days in (20, 40):
        folder = tmp_path / str(days)
        folder.mkdir()
        for number in range(days):
            keys = [f"e{key:05d}" for key in range(2000)]
            write_parquet(folder / f"{day(number)}.parquet", {"id": keys, "n": np.arange(2000) + number})
        layout = look(folder / "%Y-%m-%d.parquet", numbers="n")
        comparison = snapshots.comparison_of(layout)
        groups: Counter[int] = Counter()
        for number, file in enumerate(layout.files):
            for batch in batches(layout, Place(file.path, number)):
                for group, payload in snapshots.route(batch, comparison):
                    groups[group] += snapshots.unpack(payload).nbytes
        largest.append(max(groups.values()))
    assert largest[1] <= 1.01 * largest[0]


def batches(layout: Layout, place: Place) -> list[Any]:
    return [batch for split in splits(place, PARQUET.name) for batch in read_split(layout, split, 1000)]
