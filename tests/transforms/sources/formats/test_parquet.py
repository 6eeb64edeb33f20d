import os
from datetime import UTC as UTC_ZONE
from datetime import datetime

import numpy as np
import pyarrow as pa
import pytest

from tests.closed import close_below
from tests.transforms.writing import NOON_US, UTC, dead, look, parts, read, write_parquet
from transforms.common.batches import Batch

NOON = datetime(2013, 2, 8, 12, tzinfo=UTC_ZONE)


def columns(rows: int = 3, **more: object) -> dict[str, object]:
    return {
        "id": [f"e{row}" for row in range(rows)],
        "at": pa.array([NOON] * rows, UTC),
        "before_x": pa.array([None] * rows, pa.int64()),
        "after_x": list(range(rows)),
        **more,
    }


def test_states_under_a_prefix_are_flat_columns(tmp_path):
    write_parquet(tmp_path / "a.parquet", columns(1, before_ward=[None], after_ward=["p"]))

    assert read(look(tmp_path / "a.parquet", numbers="x", others="ward", order=("after_x",))) == [
        {
            "entry": "e0",
            "time": NOON_US,
            "order.0": 0,
            "before": False,
            "before.ward": None,
            "before.x": None,
            "after": True,
            "after.ward": "p",
            "after.x": 0,
        }
    ]


def test_states_in_structs_give_the_same_as_under_a_prefix(tmp_path):
    states = {
        "before": pa.array([None, {"x": 1, "ward": "p"}, {"x": None, "ward": None}]),
        "after": pa.array([{"x": 2, "ward": None}, None, {"x": 5, "ward": "q"}]),
    }
    nested = {"id": [1, 2, 3], "at": pa.array([NOON] * 3, UTC), **states}
    flat = {
        "id": [1, 2, 3],
        "at": pa.array([NOON] * 3, UTC),
        "before_x": [None, 1, None],
        "before_ward": [None, "p", None],
        "after_x": [2, None, 5],
        "after_ward": [None, None, "q"],
    }
    write_parquet(tmp_path / "nested.parquet", nested)
    write_parquet(tmp_path / "flat.parquet", flat)

    of_structs = read(look(tmp_path / "nested.parquet", numbers="x", others="ward", before="before", after="after"))
    of_prefix = read(look(tmp_path / "flat.parquet", numbers="x", others="ward"))

    assert [row["before"] for row in of_structs] == [False, True, False]
    assert [row["after"] for row in of_structs] == [True, False, True]
    assert of_prefix == of_structs


def test_a_state_whose_needed_columns_are_null_exists_if_another_column_is_not(tmp_path):
    write_parquet(
        tmp_path / "a.parquet",
        columns(3, after_x=pa.nulls(3, pa.int64()), after_name=["n", None, None], after_tags=[None, [], None]),
    )

    assert [row["after"] for row in read(look(tmp_path / "a.parquet", numbers="x"))] == [True, True, False]


def test_without_needed_columns_states_still_exist_or_not(tmp_path):
    write_parquet(tmp_path / "a.parquet", columns(2, after_x=[1, None]))

    rows = read(look(tmp_path / "a.parquet", order=("id",)))

    assert [(row["before"], row["after"]) for row in rows] == [(False, True), (False, False)]


def test_new_values_only_are_ordered_by_their_place_in_the_files(tmp_path):
    for name in ("a", "b"):
        write_parquet(tmp_path / f"{name}.parquet", {"id": [1, 2], "at": pa.array([NOON] * 2, UTC), "x": [3, None]})

    rows = read(look(tmp_path / "*.parquet", numbers="x", before=None, after=None))

    assert [row["order.position"] for row in rows] == [1, 2, (1 << 40) + 1, (1 << 40) + 2]
    assert [row["after"] for row in rows] == [True, False] * 2
    assert list(rows[0]) == ["entry", "time", "order.position", "after", "after.x"]


def test_a_bare_state_has_the_key_but_does_not_exist_because_of_it(tmp_path):
    write_parquet(tmp_path / "a.parquet", {"id": ["k", "l"], "at": pa.array([NOON] * 2, UTC), "x": [3, None]})

    rows = read(look(tmp_path / "a.parquet", numbers="x", others="id", before=None, after=None))

    assert [(row["after"], row["after.id"]) for row in rows] == [(True, "k"), (False, None)]


def test_texts_of_states_are_dictionaries_and_keys_are_not(tmp_path):
    words = pa.array(["p", "q", "p"]).dictionary_encode()
    write_parquet(
        tmp_path / "a.parquet",
        columns(id=words, before_w=["a", "b", None], after_w=pa.array(["a", None, "a"], pa.large_string())),
    )

    (batch,) = (part for part in parts(look(tmp_path / "a.parquet", others="w")) if isinstance(part, Batch))

    assert batch.table["entry"].type == pa.string()
    assert batch.table["before.w"].type == batch.table["after.w"].type == pa.dictionary(pa.int32(), pa.string())


@pytest.mark.parametrize(
    ("unit", "ticks", "microseconds"),
    [("s", -1, -1_000_000), ("ms", 5, 5_000), ("us", 7, 7), ("ns", 1_999, 1), ("ns", -1, -1)],
)
def test_times_of_every_unit_are_rounded_down_to_microseconds(tmp_path, unit, ticks, microseconds):
    table = pa.table(columns(1, at=pa.array([ticks], pa.timestamp(unit, "America/New_York"))))
    write_parquet(tmp_path / "a.parquet", {name: table[name] for name in table.column_names}, version="2.6")

    assert read(look(tmp_path / "a.parquet"))[0]["time"] == microseconds


def test_naive_times_are_in_the_named_zone(tmp_path):
    naive = pa.array([datetime(2013, 2, 8, 7)], pa.timestamp("us"))  # noqa: DTZ001
    write_parquet(tmp_path / "a.parquet", columns(1, at=naive))

    assert read(look(tmp_path / "a.parquet", timezone="America/New_York"))[0]["time"] == NOON_US


def test_rows_without_key_time_order_or_owner_are_dead_letters(tmp_path):
    write_parquet(
        tmp_path / "a.parquet",
        columns(
            5,
            id=["a", None, "c", "d", "e"],
            at=pa.array([NOON, NOON, None, NOON, NOON], UTC),
            lsn=[1, 2, 3, None, 5],
            person=["p", "p", "p", "p", None],
        ),
        row_group_size=2,
    )
    layout = look(tmp_path / "a.parquet", order=("lsn",), owner="person")

    assert [row["entry"] for row in read(layout)] == ["a"]
    assert dead(layout) == [
        (2, "column 'id': entry is null"),
        (3, "column 'at': time is null"),
        (4, "column 'lsn': order.0 is null"),
        (5, "column 'person': owner is null; every row must name it, a deletion too"),
    ]


def test_a_row_with_two_faults_is_one_dead_letter(tmp_path):
    write_parquet(tmp_path / "a.parquet", columns(1, id=[None], at=pa.array([None], UTC)))

    assert dead(look(tmp_path / "a.parquet")) == [(1, "column 'id': entry is null")]


def test_a_number_that_does_not_fit_is_a_dead_letter(tmp_path):
    write_parquet(tmp_path / "a.parquet", columns(2, after_x=pa.array([1, 2**64 - 1], pa.uint64())))

    assert dead(look(tmp_path / "a.parquet", numbers="x")) == [(2, "column 'after_x': value not understood as int64")]


def test_a_text_that_is_not_utf_8_makes_its_row_a_dead_letter_alone(tmp_path):
    texts = pa.array([b"p", b"\xff\xfe", b"p"], pa.binary()).view(pa.string())
    keys = pa.array([b"a", b"b", b"c\xc3"], pa.binary()).view(pa.string())
    layout = look(
        write_parquet(tmp_path / "a.parquet", columns(2, before_ward=["p", "q"], after_ward=["p", "q"])), others="ward"
    )
    write_parquet(
        tmp_path / "a.parquet", columns(3, id=keys, before_ward=texts[:1].take(pa.array([0] * 3)), after_ward=texts)
    )

    assert [row["entry"] for row in read(layout)] == ["a"]
    assert sorted(dead(layout)) == [
        (2, "column 'after_ward': not text in UTF-8"),
        (3, "column 'id': not text in UTF-8"),
    ]


def test_batches_are_cut_and_know_the_numbers_of_their_rows(tmp_path):
    keys = [None if row in (3, 4) else row for row in range(10)]
    write_parquet(tmp_path / "a.parquet", columns(10, id=keys), row_group_size=6)

    batches = [part for part in parts(look(tmp_path / "a.parquet"), batch_rows=3) if isinstance(part, Batch)]

    assert [batch.table["entry"].to_pylist() for batch in batches] == [[0, 1, 2], [5], [6, 7, 8], [9]]
    assert [batch.row_numbers(np.arange(batch.table.num_rows)).tolist() for batch in batches] == [
        [1, 2, 3],
        [6],
        [7, 8, 9],
        [10],
    ]


def test_a_batch_with_gaps_knows_the_numbers_of_its_rows(tmp_path):
    write_parquet(tmp_path / "a.parquet", columns(4, id=["a", None, "c", "d"]))

    (batch,) = (part for part in parts(look(tmp_path / "a.parquet")) if isinstance(part, Batch))

    assert batch.row_numbers(np.array([0, 1, 2])).tolist() == [1, 3, 4]


def test_a_file_without_rows_is_valid(tmp_path):
    write_parquet(tmp_path / "a.parquet", {name: pa.array(v)[:0] for name, v in columns().items()})

    assert list(parts(look(tmp_path / "a.parquet", numbers="x"))) == []


def test_whole_numbers_are_accepted_if_the_first_file_has_floats(tmp_path):
    write_parquet(tmp_path / "a.parquet", columns(1, before_x=[0.5], after_x=[1.5]))
    write_parquet(tmp_path / "b.parquet", columns(1, before_x=[1], after_x=[2]))
    layout = look(tmp_path / "*.parquet", numbers="x")

    assert [row["after.x"] for row in read(layout)] == [1.5, 2.0]
    assert dead(layout) == []


@pytest.mark.parametrize("first", ["a", "b"])
def test_a_struct_that_is_null_in_all_rows_of_a_file_has_no_states(tmp_path, first):
    """As pandas writes a file with insertions only."""
    state = [{"x": 1, "ward": "p"}]
    write_parquet(tmp_path / "a.parquet", {"id": ["k"], "at": pa.array([NOON], UTC), "before": state, "after": state})
    nothing = {"id": ["l"], "at": pa.array([NOON], UTC), "before": pa.nulls(1), "after": state}
    write_parquet(tmp_path / ("b.parquet" if first == "a" else "0.parquet"), nothing)

    layout = look(tmp_path / "*.parquet", numbers="x", others="ward", before="before", after="after")

    assert dead(layout) == []
    told = {row["entry"]: (row["before.ward"] if row["before"] else None, row["after.x"]) for row in read(layout)}
    assert told == {"k": ("p", 1), "l": (None, 1)}


def test_whole_floats_are_read_as_integers_for_any_first_file(tmp_path):
    """One row without a number turns a whole column into floats if the writer infers types from the data."""
    keys, none = [7.0, 8.0, None, 0.5, 2.0**60], pa.nulls(5)
    whole = columns(3, id=[7, 8, 9], before_x=[1, 2, 3], before_n=none[:3], after_n=["7", "8", None], lsn=[1, 2, 3])
    floats = columns(
        5, id=keys, before_x=[1.0, None, 2.5, 1, 1], before_n=none, after_n=keys[:2] + [None] * 3, lsn=[1.0] * 5
    )
    for name, (first, later) in {"whole": (whole, floats), "floats": (floats, whole)}.items():
        (tmp_path / name).mkdir()
        write_parquet(tmp_path / name / "a.parquet", first)
        write_parquet(tmp_path / name / "b.parquet", later)
    usual = {"numbers": "x", "others": "n", "order": ("lsn",), "types": (("n", "string"), ("x", "float64"))}

    for name in ("whole", "floats"):
        layout = look(tmp_path / name / "*.parquet", **usual)
        assert (layout.entry, layout.order) == ("int64", ("int64",))
        found = {(row["entry"], row["before.x"], row["after.n"]) for row in read(layout)}
        assert found == {(7, 1.0, "7"), (8, 2.0, "8"), (9, 3.0, None), (8, None, "8")}
        assert {reason for _, reason in dead(layout)} == {
            "column 'id': entry is null",
            "column 'id': value not understood as int64",
        }


def test_whole_floats_are_allowed_for_integers_and_other_floats_are_dead_letters(tmp_path):
    write_parquet(tmp_path / "a.parquet", columns(1, after_x=[1]))
    write_parquet(tmp_path / "b.parquet", columns(3, after_x=[2.0, None, 2.5]))
    layout = look(tmp_path / "*.parquet", numbers="x")

    assert [row["after.x"] for row in read(layout)] == [1, 2, None]
    assert dead(layout) == [(3, "column 'after_x': value not understood as int64")]


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"id": pa.array([NOON] * 3, UTC)}, "column 'id' is timestamp[us, tz=UTC], but the first file has string"),
        ({"after_x": ["a", "b", "c"]}, "column 'after_x' is string, but the first file has int64 there"),
        ({"at": pa.array([1, 2, 3], pa.timestamp("us"))}, "column 'at' has no time zone"),
    ],
)
def test_a_later_file_of_other_types_is_one_dead_letter(tmp_path, changed, reason):
    write_parquet(tmp_path / "a.parquet", columns())
    write_parquet(tmp_path / "b.parquet", columns(**changed))
    layout = look(tmp_path / "*.parquet", numbers="x")

    ((row, said),) = dead(layout)

    assert row is None
    assert said.startswith(reason)
    assert len(read(layout)) == 3


@pytest.mark.parametrize("states", [None, ["text"]])
def test_a_later_file_without_the_struct_of_a_state_is_one_dead_letter(tmp_path, states):
    usual = {"id": ["k"], "at": pa.array([NOON], UTC)}
    write_parquet(tmp_path / "a.parquet", {**usual, "after": [{"x": 1}]})
    write_parquet(tmp_path / "b.parquet", usual if states is None else {**usual, "after": states})

    assert dead(look(tmp_path / "*.parquet", before=None, after="after")) == [
        (None, "the file has no struct column 'after'")
    ]


def test_a_later_file_without_a_needed_column_is_one_dead_letter(tmp_path):
    write_parquet(tmp_path / "a.parquet", columns())
    write_parquet(tmp_path / "b.parquet", {name: v for name, v in columns().items() if name != "after_x"})

    assert dead(look(tmp_path / "*.parquet", numbers="x")) == [(None, "the file has no column 'after_x'")]


def test_a_damaged_page_is_one_dead_letter_of_the_file(tmp_path):
    path = write_parquet(tmp_path / "a.parquet", columns(5000), compression="zstd", use_dictionary=False)
    layout = look(path, numbers="x")
    data = bytearray(path.read_bytes())
    data[40:4000] = bytes(3960)
    path.write_bytes(data)

    ((row, reason),) = dead(layout)

    assert row is None
    assert reason.startswith("the file cannot be read")


def test_a_file_that_is_truncated_while_it_is_read_is_one_dead_letter(tmp_path):
    table = columns(50_000, before_x=pa.nulls(50_000, pa.int64()))
    path = write_parquet(tmp_path / "a.parquet", table, row_group_size=10_000, compression="none", use_dictionary=False)
    found = parts(look(path, numbers="x"))
    next(found)
    os.truncate(path, path.stat().st_size // 4)

    (letters,) = [part for part in found if isinstance(part, pa.Table) and part.num_rows]

    assert letters["row"].to_pylist() == [None]
    assert letters["reason"][0].as_py().startswith("the file cannot be read")


def test_a_file_that_cannot_be_closed_is_a_fault_of_the_disk(tmp_path):
    write_parquet(tmp_path / "a.parquet", columns(1))
    found = parts(look(tmp_path / "a.parquet", numbers="x"))
    next(found)
    close_below(tmp_path)

    (letters,) = [part for part in found if isinstance(part, pa.Table) and part.num_rows]
    assert letters["reason"].to_pylist() == [
        "cannot be read (Input/output error); check the disk, the path and your rights"
    ]
